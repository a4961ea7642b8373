"""Weights and images as pure functions of a name and an index; native/test/counter_weights.h makes the same."""

import numpy as np


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def counter_bits(seed: int, count: int) -> np.ndarray:
    """splitmix64 of seed + index: [count] uint64."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def weight(name: str, shape: list[int]) -> np.ndarray:
    """Signed bytes over a power of two near the square root of the fan-in; norms are 1 + n / 128, n in [0, 64)."""
    bits = counter_bits(fnv1a(name.encode()), int(np.prod(shape)))
    if "norm" in name or "ln_q" in name:
        values = 1.0 + (bits >> np.uint64(58)).astype(np.float64) / 128.0
    else:
        fan_in = 64 if len(shape) == 1 else int(np.prod(shape[1:]))
        exponent = 7 + int(round(np.log2(fan_in) / 2))
        if "embed_tokens" in name:
            exponent = 6
        values = ((bits >> np.uint64(56)).astype(np.float64) - 128.0) / 2.0**exponent
    return values.reshape(shape).astype(np.float32)


def image(width: int, height: int, seed: int) -> np.ndarray:
    """RGB bytes [height, width, 3]: slopes, a hard edge, and noise on top."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    base = x * (c + 2) + y * 3 + seed * 17
    edge = ((x // 16 + y // 16) % 2) * 90
    noise = (counter_bits(seed, width * height * 3).reshape(height, width, 3) & np.uint64(31)).astype(np.int64)
    return ((base + edge + noise) % 256).astype(np.uint8)
