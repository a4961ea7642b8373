"""IQL in plain PyTorch, written from the paper's equations and the IQL paper's update order, as an independent check.

    python test/parity/iql_reference.py            # writes test/fixtures/parity/iql/trace.safetensors

The fixture holds a narrow net's initial parameters, a small table of transitions, the rows of 50 batches, and what
every step of the reference reports. The C++ learner is fed the same and must report the same.
"""

import copy
import json
import math
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn

WIDTH, PROJECTION, HIDDEN = 6, 12, (20, 8)
BATCH, STEPS, HORIZON, ROWS = 16, 50, 60, 80
SETTINGS = {"gamma": 0.99, "tau": 0.8, "lr": 1e-3, "weight_decay": 1e-2, "clip": 0.5, "period": 7}


class Net(nn.Module):
    def __init__(self, streams, width=WIDTH, projection=PROJECTION, hidden=HIDDEN):
        super().__init__()
        self.projections = nn.ModuleList(nn.Linear(width, projection) for _ in range(streams))
        sizes = (streams * projection, *hidden)
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(sizes[-1], 1)

    def forward(self, *inputs):
        h = torch.cat([project(x) for project, x in zip(self.projections, inputs)], dim=1)
        for layer in self.hidden:
            h = torch.relu(layer(h))
        return self.out(h).squeeze(1)


def named(net, streams):
    """Parameters under the names of model.safetensors."""
    tensors = {}
    for stream, layer in zip(streams, net.projections):
        tensors[f"{stream}_proj.weight"], tensors[f"{stream}_proj.bias"] = layer.weight, layer.bias
    for i, layer in enumerate(net.hidden):
        tensors[f"hidden.{i}.weight"], tensors[f"hidden.{i}.bias"] = layer.weight, layer.bias
    tensors["out.weight"], tensors["out.bias"] = net.out.weight, net.out.bias
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def expectile(u, tau):
    return (torch.abs(tau - (u < 0).to(u.dtype)) * u**2).mean()


class Reference:
    def __init__(self, q, v, settings, horizon):
        self.q, self.v, self.s = q, v, settings
        self.target = copy.deepcopy(q)
        adam = {"lr": settings["lr"], "weight_decay": settings["weight_decay"]}
        self.q_adam = torch.optim.Adam(q.parameters(), **adam)
        self.v_adam = torch.optim.Adam(v.parameters(), **adam)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR
        self.schedules = [cosine(self.q_adam, horizon), cosine(self.v_adam, horizon)]
        self.steps = 0

    def step(self, s, a, t, reward, following, done):
        with torch.no_grad():
            q_target = self.target(s, a, t)
        v = self.v(s, t)
        loss_v = expectile(q_target - v, self.s["tau"])
        v_norm = self.descend(self.v, self.v_adam, loss_v)
        with torch.no_grad():
            y = reward + self.s["gamma"] * (1 - done) * self.v(following, t)
        loss_q = ((y - self.q(s, a, t)) ** 2).mean()
        q_norm = self.descend(self.q, self.q_adam, loss_q)
        for schedule in self.schedules:
            schedule.step()
        self.steps += 1
        if self.steps % self.s["period"] == 0:
            self.target.load_state_dict(self.q.state_dict())
        return [loss_v, loss_q, v.mean(), q_target.mean(), v_norm, q_norm]

    def descend(self, net, adam, loss):
        adam.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), self.s["clip"])
        adam.step()
        return norm


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    q, v = Net(3), Net(2)
    tensors = {f"q.{name}": x for name, x in named(q, ("state", "action", "task")).items()}
    tensors |= {f"v.{name}": x for name, x in named(v, ("state", "task")).items()}
    table = {name: torch.randn(ROWS, WIDTH) for name in ("state", "action", "task", "next_state")}
    reward = (torch.rand(ROWS) < 0.3).float()
    done = (torch.rand(ROWS) < 0.4).float()
    rows = torch.randint(ROWS, (STEPS, BATCH))
    tensors |= {f"data.{name}": x for name, x in table.items()}
    tensors |= {"data.reward": reward, "data.done": done, "rows": rows}
    reference = Reference(q, v, SETTINGS, HORIZON)
    reports = []
    for i in rows:
        report = reference.step(
            table["state"][i], table["action"][i], table["task"][i], reward[i], table["next_state"][i], done[i]
        )
        reports.append(torch.stack([value.detach() for value in report]))
        assert all(math.isfinite(value) for value in reports[-1])
    tensors["reports"] = torch.stack(reports)
    tensors |= {f"final.q.{name}": x for name, x in named(q, ("state", "action", "task")).items()}
    tensors |= {f"final.v.{name}": x for name, x in named(v, ("state", "task")).items()}
    path = pathlib.Path(__file__).parent.parent / "fixtures" / "parity" / "iql" / "trace.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, metadata={"settings": json.dumps(SETTINGS | {"horizon": HORIZON})})


if __name__ == "__main__":
    main()
