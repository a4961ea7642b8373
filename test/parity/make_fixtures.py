"""Runs transformers on the tiny models of configs.py and writes what it computes to test/fixtures/parity."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from configs import (
    CASES, IMAGE_TOKEN, MODELS, VISION_END, VISION_START, WIDE_MODELS, file_name, hf_config, tensor_shapes,
    written_config,
)
from counter import counter_bits, fnv1a, image, weight

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/lib"))
import torchvision_operators  # noqa: E402, F401
import transformers  # noqa: E402
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessorFast  # noqa: E402

OUT = Path(__file__).resolve().parent.parent / "fixtures" / "parity"
MIN_PIXELS, MAX_PIXELS = 3136, 1003520
# (width, height, min_pixels, max_pixels): kept, up, down, wide, tall, tiny, at the limits.
PIXEL_CASES = [
    (112, 112, MIN_PIXELS, MAX_PIXELS), (100, 100, MIN_PIXELS, MAX_PIXELS), (20, 20, MIN_PIXELS, MAX_PIXELS),
    (1, 1, MIN_PIXELS, MAX_PIXELS), (332, 214, MIN_PIXELS, MAX_PIXELS), (640, 480, MIN_PIXELS, 100352),
    (1280, 720, MIN_PIXELS, MAX_PIXELS), (1920, 1080, MIN_PIXELS, MAX_PIXELS), (900, 6, MIN_PIXELS, MAX_PIXELS),
    (7, 800, MIN_PIXELS, 50176), (57, 1500, MIN_PIXELS, MAX_PIXELS), (300, 112, 200704, MAX_PIXELS),
    (112, 300, MIN_PIXELS, MAX_PIXELS), (28, 5600, MIN_PIXELS, MAX_PIXELS), (333, 517, MIN_PIXELS, 12544),
]


def processor(min_pixels=MIN_PIXELS, max_pixels=MAX_PIXELS):
    return Qwen2VLImageProcessorFast(min_pixels=min_pixels, max_pixels=max_pixels)


def preprocess(pictures, min_pixels=MIN_PIXELS, max_pixels=MAX_PIXELS):
    batch = [torch.from_numpy(p).permute(2, 0, 1).contiguous() for p in pictures]
    out = processor(min_pixels, max_pixels)(images=batch, return_tensors="pt", disable_grouping=True)
    return out["pixel_values"], out["image_grid_thw"]


def pixel_fixture():
    cases = []
    for width, height, low, high in PIXEL_CASES:
        values, grid = preprocess([image(width, height, width + height)], low, high)
        assert values.dtype == torch.float32
        cases.append(dict(width=width, height=height, minPixels=low, maxPixels=high, grid=grid[0, 1:].tolist(),
                          hash=f"{fnv1a(values.numpy().tobytes()):016x}"))
    return {"cases": cases}


def make_ids(case, grids):
    """Token ids with one image token per image, and the same with as many as the image has merged cells."""
    words = (counter_bits(case["tokens"], case["tokens"]) % np.uint64(500)).astype(np.int64).tolist()
    short, long = [], []
    every = max(1, len(words) // (len(grids) + 1))
    for i, word in enumerate(words):
        if i % every == 0 and 0 < i // every <= len(grids):
            _, h, w = grids[i // every - 1]
            short += [VISION_START, IMAGE_TOKEN, VISION_END]
            long += [VISION_START] + [IMAGE_TOKEN] * (h * w // 4) + [VISION_END]
        short.append(word)
        long.append(word)
    assert short.count(IMAGE_TOKEN) == len(grids)
    return short, long


def load_model(model, dtype):
    with tempfile.TemporaryDirectory() as folder:
        Qwen2_5_VLConfig(**hf_config(model)).save_pretrained(folder)
        tensors = {file_name(n, "model"): torch.from_numpy(weight(n, s)) for n, s in tensor_shapes(model).items()}
        save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
        # A reload in the wanted type keeps the rotary frequencies in float32; model.to(bfloat16) would round them.
        loaded, report = Qwen2_5_VLForConditionalGeneration.from_pretrained(
            folder, dtype=dtype, attn_implementation="eager", output_loading_info=True)
    missing = [k for k in report["missing_keys"] if k != "lm_head.weight"]
    assert not missing and not report["unexpected_keys"], report
    return loaded.eval().model


def run(model, ids, pixels, grid):
    """Vision output, hidden states of every layer, positions."""
    seen = {}
    hook = model.visual.register_forward_hook(lambda m, i, o: seen.__setitem__("vision", o))
    token_ids = torch.tensor([ids])
    positions, _ = model.get_rope_index(token_ids, grid, None, attention_mask=torch.ones_like(token_ids))
    images = {} if grid is None else dict(pixel_values=pixels, image_grid_thw=grid)
    with torch.no_grad():
        out = model(input_ids=token_ids, attention_mask=torch.ones_like(token_ids), position_ids=positions,
                    output_hidden_states=True, use_cache=False, **images)
    hook.remove()
    assert torch.equal(out.hidden_states[-1], out.last_hidden_state)
    return seen.get("vision"), [h[0] for h in out.hidden_states], positions[:, 0]


def case_fixture(name, case, model, models):
    pictures = [image(w, h, 3 * i + len(name)) for i, (w, h) in enumerate(case["images"])]
    pixels, grid = preprocess(pictures) if pictures else (None, None)
    short, long = make_ids(case, [] if grid is None else grid.tolist())
    # Enough rows to see every layer, few enough for small files; the pooled vector covers them all.
    rows = np.unique(np.linspace(0, len(long) - 1, 48).round().astype(np.int64))
    tensors = {"ids": torch.tensor(short, dtype=torch.int32), "rows": torch.from_numpy(rows)}
    for label, reference in models.items():
        vision, hidden, positions = run(reference, long, pixels, grid)
        if label == "float32":
            tensors["positions"] = positions.to(torch.int32)
        if vision is not None:
            tensors[f"{label}.vision"] = vision
        for i, state in enumerate(hidden):
            tensors[f"{label}.hidden.{i}"] = state[rows]
        tensors[f"{label}.pooled"] = hidden[-1].float().mean(0)
    info = dict(images=";".join(f"{w}x{h}:{3 * i + len(name)}" for i, (w, h) in enumerate(case["images"])))
    return {k: v.contiguous() for k, v in tensors.items()}, info


def model_fixture(model):
    """What the C++ test needs to write the same checkpoint."""
    layout = model["layout"]
    return dict(config=written_config(model), dtype=layout["dtype"], shards=layout["shards"],
                tensors=[dict(name=n, file=file_name(n, layout["names"]), shape=s)
                         for n, s in tensor_shapes(model).items()])


class Writer:
    def __init__(self, check, out, limit):
        self.check, self.out, self.limit = check, out, limit
        self.changed = []

    def json(self, path, value):
        text = json.dumps(value, indent=1) + "\n"
        if not path.exists() or path.read_text() != text:
            self._change(path, lambda: path.write_text(text))

    def tensors(self, path, tensors, info):
        if not path.exists() or not self._equal(load_file(path), tensors):
            self._change(path, lambda: save_file(tensors, path, info))
        assert self.check or path.stat().st_size <= self.limit, path

    def _change(self, path, write):
        self.changed.append(str(path.relative_to(self.out)))
        if not self.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            write()

    @staticmethod
    def _equal(old, new):
        if old.keys() != new.keys():
            return False
        for name, value in new.items():
            before = old[name]
            if before.dtype != value.dtype or before.shape != value.shape:
                return False
            if not value.is_floating_point():
                if not torch.equal(before, value):
                    return False
                continue
            limit = 1e-2 if name.startswith("bfloat16") else 1e-6
            if (before.double() - value.double()).norm() > limit * value.double().norm():
                return False
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where something differs")
    parser.add_argument("--wide", type=Path, metavar="FOLDER",
                        help="write the models at the widths of the 3B model, there, and nothing else")
    arguments = parser.parse_args()
    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    if (5, 3) <= version <= (5, 5):
        sys.exit(f"transformers {transformers.__version__} computes wrong image positions; use 4.57.1")
    torch.set_num_threads(1)
    out, chosen = (arguments.wide, WIDE_MODELS) if arguments.wide else (OUT, MODELS)
    writer = Writer(arguments.check, out, limit=1 << 30 if arguments.wide else 1 << 20)
    if not arguments.wide:
        writer.json(out / "pixels.json", pixel_fixture())
    for label, model in chosen.items():
        writer.json(out / label / "model.json", model_fixture(model))
        models = {"float32": load_model(model, torch.float32), "bfloat16": load_model(model, torch.bfloat16)}
        for name, case in CASES.items():
            writer.tensors(out / label / f"{name}.safetensors", *case_fixture(name, case, model, models))
    for path in writer.changed:
        print(path)
    print(f"{len(writer.changed)} file(s) {'differ' if arguments.check else 'written'}")
    sys.exit(1 if arguments.check and writer.changed else 0)


if __name__ == "__main__":
    main()
