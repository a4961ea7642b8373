"""Writes a random checkpoint at the true 3B widths, and the inputs that both sides embed.

usage: make_work.py FOLDER [--vision-blocks 32] [--layers 36]
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

WIDTH, INNER, HEADS, KV_HEADS, VOCABULARY = 2048, 11008, 16, 2, 151936
VISION, VISION_INNER, VISION_HEADS = 1280, 3420, 16
EPISODE = Path(__file__).parent / "episode"
IMAGE_TOKEN, VISION_START, VISION_END = 151655, 151652, 151653


def config(layers, blocks):
    return {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "torch_dtype": "bfloat16",
        "hidden_act": "silu", "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": layers,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": VOCABULARY,
        "max_position_embeddings": 128000, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "tie_word_embeddings": True,
        "use_sliding_window": False, "image_token_id": IMAGE_TOKEN, "video_token_id": 151656,
        "vision_start_token_id": VISION_START, "vision_end_token_id": VISION_END,
        "vision_config": {
            "model_type": "qwen2_5_vl", "depth": blocks, "hidden_size": VISION, "intermediate_size": VISION_INNER,
            "num_heads": VISION_HEADS, "in_channels": 3, "patch_size": 14, "temporal_patch_size": 2,
            "spatial_merge_size": 2, "window_size": 112, "out_hidden_size": WIDTH, "hidden_act": "silu",
            # Every eighth block looks at the whole image; of fewer than eight blocks, the last one.
            "fullatt_block_indexes": [i for i in (7, 15, 23, 31) if i < blocks] or [blocks - 1],
        },
    }


def shapes(layers, blocks):
    kv = WIDTH // HEADS * KV_HEADS
    yield "model.embed_tokens.weight", [VOCABULARY, WIDTH]
    for i in range(layers):
        p = f"model.layers.{i}."
        for name, rows, columns in (("q", WIDTH, WIDTH), ("k", kv, WIDTH), ("v", kv, WIDTH)):
            yield f"{p}self_attn.{name}_proj.weight", [rows, columns]
            yield f"{p}self_attn.{name}_proj.bias", [rows]
        yield f"{p}self_attn.o_proj.weight", [WIDTH, WIDTH]
        yield f"{p}mlp.gate_proj.weight", [INNER, WIDTH]
        yield f"{p}mlp.up_proj.weight", [INNER, WIDTH]
        yield f"{p}mlp.down_proj.weight", [WIDTH, INNER]
        yield f"{p}input_layernorm.weight", [WIDTH]
        yield f"{p}post_attention_layernorm.weight", [WIDTH]
    yield "model.norm.weight", [WIDTH]
    yield "visual.patch_embed.proj.weight", [VISION, 3, 2, 14, 14]
    for j in range(blocks):
        p = f"visual.blocks.{j}."
        for name, rows, columns in (("attn.qkv", 3 * VISION, VISION), ("attn.proj", VISION, VISION),
                                    ("mlp.gate_proj", VISION_INNER, VISION), ("mlp.up_proj", VISION_INNER, VISION),
                                    ("mlp.down_proj", VISION, VISION_INNER)):
            yield f"{p}{name}.weight", [rows, columns]
            yield f"{p}{name}.bias", [rows]
        yield f"{p}norm1.weight", [VISION]
        yield f"{p}norm2.weight", [VISION]
    yield "visual.merger.ln_q.weight", [VISION]
    for name, rows in (("0", 4 * VISION), ("2", WIDTH)):
        yield f"visual.merger.mlp.{name}.weight", [rows, 4 * VISION]
        yield f"visual.merger.mlp.{name}.bias", [rows]


def write_checkpoint(folder, layers, blocks):
    # A stretch of one long random vector for every tensor: fast to make, and as good as fresh numbers for timing.
    pool = torch.randn(1 << 24, generator=torch.Generator().manual_seed(1))
    offset, shards, shard, size, index = 0, [], {}, 0, {}
    for name, shape in shapes(layers, blocks):
        count = int(np.prod(shape))
        if "norm" in name or "ln_q" in name:
            tensor = torch.ones(shape)
        else:
            start = offset % 65536
            tensor = pool[start:start + min(count, len(pool) - 65536)]
            tensor = tensor.repeat(-(-count // len(tensor)))[:count].view(shape) * 0.02
            offset += 7919
        shard[name] = tensor.to(torch.bfloat16).contiguous()
        size += count * 2
        if size > 1 << 30:
            shards.append(shard)
            shard, size = {}, 0
            save_file(shards[-1], folder / f"part-{len(shards)}.safetensors", {"format": "pt"})
            index |= {n: f"part-{len(shards)}.safetensors" for n in shards[-1]}
            shards[-1] = None
    save_file(shard, folder / f"part-{len(shards) + 1}.safetensors", {"format": "pt"})
    index |= {n: f"part-{len(shards) + 1}.safetensors" for n in shard}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (folder / "config.json").write_text(json.dumps(config(layers, blocks), indent=1))


def screenshot(width, height):
    """Flat areas, lines of small marks and some noise, as a page has them."""
    rng = np.random.default_rng(3)
    picture = np.full((height, width, 3), 250, np.uint8)
    picture[:60] = (40, 60, 120)
    for y in range(90, height - 20, 18):
        marks = rng.random((10, width // 6)).repeat(6, 1) > 0.6
        picture[y:y + 10, :marks.shape[1]][marks] = rng.integers(0, 120, 3)
    picture[200:420, 800:1200] = rng.integers(0, 255, (220, 400, 3))
    return picture


def write_inputs(path):
    rng = np.random.default_rng(5)
    words = lambda n: rng.integers(0, 150000, n, dtype=np.int32)  # noqa: E731
    state = np.concatenate([words(200), [VISION_START, IMAGE_TOKEN, VISION_END], words(2)]).astype(np.int32)
    tensors = {"state.ids": state, "state.image": screenshot(1280, 720), "task.ids": words(30)}
    for i, n in enumerate((38, 41, 35)):
        tensors[f"action.{i}.ids"] = words(n)
    # As many tokens as real actions have, in the same frame of the chat format; no two say the same.
    steps = json.loads((EPISODE / "steps.json").read_text())["steps"]
    wordings = [a for s in steps for a in s["actions"]]
    frame = os.path.commonprefix(wordings)
    for i in range(64):
        length = len(wordings[i % len(wordings)]) - len(frame) - 2
        ending = np.array(wordings[0][-2:], np.int32)
        tensors[f"actions.{i}.ids"] = np.concatenate([np.array(frame, np.int32), words(length), ending])
    for i, step in enumerate(steps):
        picture = np.asarray(Image.open(EPISODE / step["screenshot"]).convert("RGB"))
        # The same with every pixel changed at every step.
        noisy = np.clip(picture.astype(np.int16) + rng.integers(-9, 10, picture.shape), 0, 255).astype(np.uint8)
        for name, image in (("episode", picture), ("episode-changing", noisy)):
            prefix = f"{name}.{i}."
            tensors[prefix + "state.ids"] = np.array(step["state"], np.int32)
            tensors[prefix + "state.image"] = image.copy()
            tensors[prefix + "task.ids"] = np.array(step["task"], np.int32)
            for j, action in enumerate(step["actions"]):
                tensors[f"{prefix}action.{j}.ids"] = np.array(action, np.int32)
    save_file({k: torch.from_numpy(v) for k, v in tensors.items()}, path)


def changed_pixels():
    """Share of pixels that differ from the step before, step by step."""
    steps = json.loads((EPISODE / "steps.json").read_text())["steps"]
    pictures = [np.asarray(Image.open(EPISODE / s["screenshot"]).convert("RGB")) for s in steps]
    return [float((a != b).any(-1).mean()) for a, b in zip(pictures, pictures[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vision-blocks", type=int, default=32)
    parser.add_argument("--layers", type=int, default=36)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_inputs(arguments.folder / "inputs.safetensors")
    if not os.path.exists(arguments.folder / "config.json"):
        write_checkpoint(arguments.folder, arguments.layers, arguments.vision_blocks)
    print(json.dumps({"changedPixels": changed_pixels()}))


if __name__ == "__main__":
    main()
