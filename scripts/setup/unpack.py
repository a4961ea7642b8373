"""unpack.py WHEEL FOLDER PATTERN: unpacks the members whose names match PATTERN, checking each one's CRC."""

import re
import sys
import zipfile

wheel, folder, pattern = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    members = [name for name in archive.namelist() if re.match(pattern, name)]
    if not members:
        sys.exit(f"{wheel} holds nothing that matches {pattern}")
    archive.extractall(folder, members)
