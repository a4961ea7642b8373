"""The other side of the benchmark: Hugging Face transformers, trunk only, on the same inputs.

Reads `WORK MODE` per line from stdin, answers each with one line of JSON. usage:
transformers_side.py MODEL INPUTS --threads N --device cpu|cuda
Modes: `default` (sdpa, glibc's allocator as it is), `sdpa` and `eager` (allocator told to keep its memory).
Items go one by one, as they come in an agent; `actions-padded` is one padded batch of all actions.
"""

import argparse
import ctypes
import json
import os
import resource
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts/lib"))
import torchvision_operators  # noqa: E402, F401
from transformers import Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessorFast  # noqa: E402


# malloc.h: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX
ALLOCATOR = {
    # Where glibc's adaptive thresholds end up after the first large blocks were freed.
    "default": {-1: 64 << 20, -3: 32 << 20, -4: 65536},
    # Blocks of any size come from the heap, and the heap keeps its memory.
    "tuned": {-1: 2**31 - 1, -4: 0},
}


def set_mode(model, mode):
    for parameter, value in ALLOCATOR["default" if mode == "default" else "tuned"].items():
        ctypes.CDLL(None).mallopt(parameter, value)
    model.set_attn_implementation("eager" if mode == "eager" else "sdpa")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="bfloat16")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    start = time.perf_counter()
    loaded = Qwen2_5_VLForConditionalGeneration.from_pretrained(
        arguments.model, dtype=getattr(torch, arguments.dtype), attn_implementation="sdpa")
    model = loaded.model.eval().to(arguments.device)
    processor = Qwen2VLImageProcessorFast(min_pixels=3136, max_pixels=12845056)
    inputs = load_file(arguments.inputs)

    def say(**values):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps(dict(values, peakMb=peak)), flush=True)

    def embed(name):
        ids = inputs[f"{name}.ids"].long()
        images = {}
        if f"{name}.image" in inputs:
            pixels = processor(images=[inputs[f"{name}.image"].permute(2, 0, 1)], return_tensors="pt")
            images = {k: v.to(arguments.device) for k, v in pixels.items()}
            h, w = pixels["image_grid_thw"][0, 1:].tolist()
            at = int((ids == 151655).nonzero()[0])
            ids = torch.cat([ids[:at], ids.new_full((h * w // 4,), 151655), ids[at + 1:]])
        ids = ids[None].to(arguments.device)
        model.rope_deltas = None
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **images)
        return out.last_hidden_state[0].float().mean(0).cpu()

    def embed_padded(names):
        rows = [inputs[f"{n}.ids"].long() for n in names]
        mask = torch.zeros(len(rows), max(len(r) for r in rows), dtype=torch.long)
        ids = torch.zeros_like(mask)
        for i, row in enumerate(rows):
            ids[i, :len(row)] = row
            mask[i, :len(row)] = 1
        model.rope_deltas = None
        out = model(input_ids=ids.to(arguments.device), attention_mask=mask.to(arguments.device), use_cache=False)
        weights = mask.to(arguments.device).float()[..., None]
        return ((out.last_hidden_state.float() * weights).sum(1) / weights.sum(1)).cpu()[0]

    def step(prefix):
        return [embed(prefix + n) for n in ("state", "action.0", "action.1", "action.2", "task")][0]

    def episode(name):
        steps = sum(k.startswith(f"{name}.") and k.endswith("state.ids") for k in inputs)
        return [step(f"{name}.{i}.") for i in range(steps)][0]

    actions = sorted((k[:-4] for k in inputs if k.startswith("actions.")), key=lambda n: int(n.split(".")[1]))
    work = {
        "warm": lambda: embed("task"),
        "state": lambda: embed("state"),
        "step": lambda: step(""),
        "episode": lambda: episode("episode"),
        "episode-changing": lambda: episode("episode-changing"),
        "actions": lambda: [embed(n) for n in actions][0],
        "actions-padded": lambda: embed_padded(actions),
    }
    say(loadSeconds=round(time.perf_counter() - start, 3), threads=torch.get_num_threads())
    with torch.inference_mode():
        for line in sys.stdin:
            name, mode = line.split()
            set_mode(model, mode)
            start, cpu = time.perf_counter(), time.process_time()
            vector = work[name]()
            say(work=name, mode=mode, seconds=round(time.perf_counter() - start, 4), cpuSeconds=round(time.process_time() - cpu, 4),
                probe=[round(v, 7) for v in vector[:64].tolist()])


if __name__ == "__main__":
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    main()
