"""What a table says of the machine it was measured on."""

import pathlib
import platform


def instructions(cpuinfo):
    """What decides how fast products are, as the kernel names it."""
    known = {"avx512_bf16": "AVX512-BF16", "avx512f": "AVX-512", "avx2": "AVX2"}
    return next((f", {name}" for flag, name in known.items() if flag in cpuinfo), "")


def machine():
    name = platform.processor() or platform.machine()
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        text = cpuinfo.read_text()
        models = [line.split(":")[1].strip() for line in text.splitlines() if "model name" in line]
        name = f"{len(models)} cores of {models[0]}{instructions(text)}"
    return name
