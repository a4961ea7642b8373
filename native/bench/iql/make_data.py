"""Random transitions as an embedding folder, for benchmarks: python make_data.py OUT --width 2048 --transitions 20000

Memory stays at one shard, so that folders larger than the machine's memory can be made.
"""

import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file

STEPS = 10  # of every episode


def write_stream(out, name, rows, width, shard_rows):
    """Rows in shards, as the manifest lists them."""
    shards = []
    for first in range(0, rows, shard_rows):
        shard = f"{name}-{len(shards):05d}.safetensors"
        values = torch.randn(min(shard_rows, rows - first), width).to(torch.bfloat16)
        save_file({"rows": values}, out / shard)
        shards.append(shard)
    return {"rows": rows, "shards": shards}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--transitions", type=int, default=20000)
    parser.add_argument("--tasks", type=int, default=590)
    parser.add_argument("--shard-rows", type=int, default=100000)
    options = parser.parse_args()
    torch.manual_seed(0)
    out, width = options.out, options.width
    out.mkdir(parents=True, exist_ok=True)
    episodes = options.transitions // STEPS
    n = episodes * STEPS
    streams = {
        name: write_stream(out, name, rows, width, options.shard_rows)
        for name, rows in (("state", n), ("action", n), ("task", options.tasks))
    }
    row = torch.arange(n)
    last = row % STEPS == STEPS - 1
    episode = (row // STEPS).int()
    success = torch.arange(episodes) % 2
    i32, u8 = torch.int32, torch.uint8
    index = {
        "state": row,
        "action": row.clone(),
        "task": episode.long() % options.tasks,
        "next_state": torch.where(last, -1, row + 1),
        "reward": (last & (success[episode.long()] == 1)).float(),
        "done": last.to(u8),
        "timeout": torch.zeros(n, dtype=u8),
        "episode": episode,
        "step": (row % STEPS).to(i32),
        "chosen": torch.zeros(n, dtype=i32),
        "explored": torch.zeros(n, dtype=u8),
        "candidate_offset": torch.arange(n + 1),
        "candidate_action": row.clone(),
        "episode_task": (torch.arange(episodes) % options.tasks).to(i32),
        "episode_success": success.to(u8),
        "episode_first": torch.arange(episodes) * STEPS,
        "episode_steps": torch.full((episodes,), STEPS, dtype=i32),
        "episode_split": torch.rand(episodes),
    }
    save_file({name: tensor.contiguous() for name, tensor in index.items()}, out / "index.safetensors")
    manifest = {
        "version": 1,
        "fingerprint": "random",
        "profile": {},
        "width": width,
        "dtype": "bfloat16",
        "rowsPerShard": options.shard_rows,
        "streams": streams,
        "index": "index.safetensors",
        "transitions": n,
        "candidates": n,
        "episodes": episodes,
        "taskNames": [f"task-{i}" for i in range(options.tasks)],
        "successRate": 0.5,
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2))


if __name__ == "__main__":
    main()
