"""Sizes as the image processor of transformers rounds them, for the localizers.

python test/parity/smart_resize.py    # writes test/fixtures/smart-resize.json
"""

import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/lib"))
import torchvision_operators  # noqa: E402, F401
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize  # noqa: E402

RULES = [(28, 56 * 56, 1280 * 28 * 28), (32, 64 * 32 * 32, 1280 * 32 * 32)]
SIZES = [(1204, 1204), (1710, 852), (1280, 720), (70, 42), (98, 14), (10, 500), (1, 1), (3000, 20), (4000, 4000)]

draw = random.Random(0)
sizes = SIZES + [(draw.randint(1, 4000), draw.randint(1, 4000)) for _ in range(60)]
cases = []
for factor, low, high in RULES:
    for width, height in sizes:
        if max(width, height) / min(width, height) > 200:
            continue
        rows, columns = smart_resize(height, width, factor, low, high)
        cases.append([factor, low, high, width, height, columns, rows])
path = Path(__file__).parents[1] / "fixtures" / "smart-resize.json"
path.write_text("[\n" + ",\n".join("  " + json.dumps(case) for case in cases) + "\n]\n")
