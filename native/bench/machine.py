"""The machine that a benchmark runs on: what it can do, and what a table says of it."""

import pathlib
import platform


def instructions(text):
    """What decides how fast products are, as the kernel names it."""
    known = {"avx512_bf16": "AVX512-BF16", "avx512f": "AVX-512", "avx2": "AVX2"}
    return next((f", {name}" for flag, name in known.items() if flag in text), "")


def cpuinfo():
    path = pathlib.Path("/proc/cpuinfo")
    return path.read_text() if path.exists() else ""


def has_bfloat16():
    """True where bfloat16 products have instructions of their own (those with AMX have AVX512-BF16 too)."""
    return "avx512_bf16" in cpuinfo()


def machine():
    name = platform.processor() or platform.machine()
    if text := cpuinfo():
        models = [line.split(":")[1].strip() for line in text.splitlines() if "model name" in line]
        name = f"{len(models)} cores of {models[0]}{instructions(text)}"
    return name
