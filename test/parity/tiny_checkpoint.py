"""The definition of the tiny checkpoint's weights, written again in Python, to prove that the text defines them.

python test/parity/tiny_checkpoint.py > test/fixtures/tiny-checkpoint.json
"""
import hashlib
import json
import math

import numpy as np

MASK = 0xFFFFFFFF
TENSORS = {  # name: (centre, spread, index far into the tensor)
    "model.embed_tokens.weight": (0.0, math.sqrt(3), 151_935 * 128 + 127),
    "model.layers.1.mlp.down_proj.weight": (0.0, math.sqrt(3 / 256), 128 * 256 - 1),
    "model.layers.0.self_attn.q_proj.bias": (0.0, 0.125, 127),
    "model.norm.weight": (1.0, 0.25, 127),
    "visual.patch_embed.proj.weight": (0.0, math.sqrt(3 / 1176), 32 * 1176 - 1),
}


def mix(x):
    x ^= x >> 16
    x = x * 0x7FEB352D & MASK
    x ^= x >> 15
    x = x * 0x846CA68B & MASK
    return x ^ (x >> 16)


def value(name, i, centre, spread):
    digest = hashlib.sha256(f"boq-tiny-2/{name}".encode()).digest()
    k0, k1 = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")
    h = mix((mix(i ^ k0) + k1) & MASK)
    u = (2 * (h >> 9) + 1 - 2**23) / 2**23
    word = int(np.float32(centre + float(np.float32(spread)) * u).view(np.uint32))
    return (word + 0x7FFF + (word >> 16 & 1)) >> 16 & 0xFFFF


print(json.dumps({"tensors": {
    name: {"first": [value(name, i, c, s) for i in range(8)], "at": {str(far): value(name, far, c, s)}}
    for name, (c, s, far) in TENSORS.items()}}, indent=1))
