"""The same gradient step in PyTorch: python torch_side.py DATA --variant eager|fused [--precision bfloat16]

eager: as published PyTorch IQL code writes it (update order, per-tensor modules, .item() of every loss, numpy indices
into resident tensors): after algorithms/offline/iql.py of corl-team/CORL at eeeeef2, with Best-of-Q's networks, loss,
clipping, schedule and hard target copies, without its actor.
fused: the same with Adam(fused=True).
compiled: fused, with the losses under torch.compile; on CUDA with its CUDA graphs (mode max-autotune-no-cudagraphs is
not used: reduce-overhead captures the graph).

Reads "steps N" and "score N" (values of one state and three candidates) from stdin and answers each with one line of
JSON, as boq_bench_iql does.
"""

import argparse
import contextlib
import copy
import json
import pathlib
import resource
import sys
import time

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

GAMMA, TAU, BATCH, PERIOD, STEPS = 0.99, 0.7, 128, 100, 50000
HIDDEN = (1024, 1024, 512, 256, 128, 64)


class Net(nn.Module):
    def __init__(self, width, streams):
        super().__init__()
        self.projections = nn.ModuleList(nn.Linear(width, 1024) for _ in range(streams))
        layers, size = [], 1024 * streams
        for out in HIDDEN:
            layers += [nn.Linear(size, out), nn.ReLU(), nn.Dropout(0.1)]
            size = out
        self.trunk = nn.Sequential(*layers, nn.Linear(size, 1))

    def forward(self, *inputs):
        return self.trunk(torch.cat([p(x) for p, x in zip(self.projections, inputs)], -1)).squeeze(-1)


def asymmetric_l2_loss(u, tau):
    return torch.mean(torch.abs(tau - (u < 0).float()) * u**2)


class ImplicitQLearning:
    def __init__(self, width, device, variant, precision):
        self.half = precision == "bfloat16"
        self.device = device
        self.qf, self.vf = Net(width, 3).to(device), Net(width, 2).to(device)
        self.q_target = copy.deepcopy(self.qf).requires_grad_(False).eval()
        adam = {"lr": 3e-4, "weight_decay": 1e-4, "fused": None if variant == "eager" else True}
        self.optimizers = [torch.optim.Adam(self.vf.parameters(), **adam), torch.optim.Adam(self.qf.parameters(), **adam)]
        self.schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, STEPS) for o in self.optimizers]
        self.total_it = 0
        self.v_loss, self.q_loss = self._v_loss, self._q_loss
        if variant == "compiled":
            mode = "reduce-overhead" if device.type == "cuda" else "default"
            self.v_loss, self.q_loss = (torch.compile(f, mode=mode) for f in (self._v_loss, self._q_loss))

    def products(self):
        return torch.autocast(self.device.type, torch.bfloat16) if self.half else contextlib.nullcontext()

    def _v_loss(self, s, a, t):
        with self.products():
            with torch.no_grad():
                target = self.q_target(s, a, t)
            v = self.vf(s, t)
        return asymmetric_l2_loss(target.float() - v.float(), TAU)

    def _q_loss(self, s, a, t, next_s, reward, done):
        with self.products():
            with torch.no_grad():
                self.vf.eval()
                next_v = self.vf(next_s, t)
                self.vf.train()
            q = self.qf(s, a, t)
        y = reward + (1.0 - done) * GAMMA * next_v.float()
        return functional.mse_loss(q.float(), y)

    def descend(self, loss, net, optimizer):
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    def train(self, batch):
        s, a, t, next_s, reward, done = batch
        self.total_it += 1
        log = {}
        v_loss = self.v_loss(s, a, t)
        log["value_loss"] = v_loss.item()
        self.descend(v_loss, self.vf, self.optimizers[0])
        q_loss = self.q_loss(s, a, t, next_s, reward, done)
        log["q_loss"] = q_loss.item()
        self.descend(q_loss, self.qf, self.optimizers[1])
        for schedule in self.schedules:
            schedule.step()
        if self.total_it % PERIOD == 0:
            self.q_target.load_state_dict(self.qf.state_dict())
        return log


class Replay:
    """Rows resident on the device, in float32."""

    def __init__(self, folder, device):
        index = load_file(folder / "index.safetensors", str(device))
        for stream in ("state", "action", "task"):
            rows = load_file(folder / f"{stream}-00000.safetensors", str(device))["rows"]
            setattr(self, stream, rows.float())
        self.index = {name: value for name, value in index.items()}
        self.size = len(index["state"])

    def sample(self):
        i = torch.as_tensor(np.random.randint(0, self.size, size=BATCH), device=self.state.device)
        rows = {name: self.index[name][i] for name in ("state", "action", "task", "next_state", "reward", "done")}
        return [
            self.state[rows["state"]],
            self.action[rows["action"]],
            self.task[rows["task"]],
            self.state[rows["next_state"].clamp_min(0)],
            rows["reward"],
            rows["done"].float(),
        ]


class Scoring:
    """Q of three candidates and V of their state, as a user of PyTorch would compute them."""

    def __init__(self, trainer, width):
        self.q, self.v = trainer.qf.eval(), trainer.vf.eval()
        self.row, self.rows = torch.randn(1, width), torch.randn(3, width)

    @torch.inference_mode()
    def run(self):
        many = self.row.expand(3, -1)
        return self.q(many, self.rows, many).tolist(), self.v(self.row, self.row).item()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--variant", choices=("eager", "fused", "compiled"), default="eager")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="bfloat16: autocast")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    replay = Replay(options.data, device)
    trainer = ImplicitQLearning(replay.state.shape[1], device, options.variant, options.precision)
    for line in sys.stdin:
        work, count = line.split()[0], int(line.split()[1])
        scoring = Scoring(trainer, replay.state.shape[1]) if work == "score" else None
        cpu, start = cpu_seconds(), time.perf_counter()
        log = {"q_loss": 0.0}
        for _ in range(count):
            if scoring:
                scoring.run()
            else:
                log = trainer.train(replay.sample())
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        answer = {"work": work, "count": count, "seconds": seconds, "cpuSeconds": cpu_seconds() - cpu}
        print(json.dumps(answer | {"threads": torch.get_num_threads(), "lossQ": log["q_loss"]}), flush=True)


if __name__ == "__main__":
    main()
