"""A synthetic task with unique noisy states, and the Q that independent PyTorch trainings learn on it.

    python test/parity/iql_agreement.py            # writes test/fixtures/parity/iql/agreement.safetensors

An episode has up to LIMIT steps and a hidden stage that nobody observes: a state is the stage's vector and the
progress of the task in noise, so no state occurs twice, as on the web. In every stage one action of the task leads on,
most of the time; some others end the episode. The fixture holds the recorded episodes, states that were not recorded,
and the Q of several seeds of the reference for every action there. What a C++ training learns on the same episodes
must agree with the reference as well as its seeds agree with one another.
"""

import itertools
import json
import pathlib

import torch
from iql_reference import Net, Reference
from safetensors.torch import save_file

WIDTH, STAGES, ACTIONS, TASKS, LIMIT = 16, 4, 6, 3, 7
EPISODES, UNSEEN, SEEDS = 300, 200, 4
NETS = {"width": WIDTH, "projection": 32, "hidden": (64, 32)}
SETTINGS = {"gamma": 0.95, "tau": 0.7, "lr": 1e-3, "weight_decay": 1e-4, "clip": 1.0, "period": 10}
STEPS, BATCH = 3000, 64


def play(generator, leads_on, ends):
    """One episode: [(stage, action)], success."""
    draw = lambda: torch.rand((), generator=generator).item()
    stage, moves = 0, []
    while len(moves) < LIMIT:
        action = int(torch.randint(ACTIONS, (), generator=generator))
        if draw() < 0.4:
            action = leads_on[stage]
        moves.append((stage, action))
        if action == leads_on[stage] and draw() < 0.9:
            stage += 1
            if stage == STAGES:
                return moves, 1.0
        elif action in ends[stage]:
            break
    return moves, 0.0


def observe(generator, stages, vectors):
    return vectors[stages] + 0.5 * torch.randn(len(stages), WIDTH, generator=generator)


def record(generator):
    vectors = torch.randn(STAGES, WIDTH, generator=generator)
    leads_on = torch.randint(ACTIONS, (TASKS, STAGES), generator=generator).tolist()
    ends = [[{(a + 1) % ACTIONS, (a + 3) % ACTIONS} for a in row] for row in leads_on]
    rows = {"stage": [], "action": [], "episode": []}
    task, reward = [], []
    for e in range(EPISODES):
        task.append(e % TASKS)
        moves, success = play(generator, leads_on[task[-1]], ends[task[-1]])
        reward.append(success)
        for stage, action in moves:
            for name, value in (("stage", stage), ("action", action), ("episode", e)):
                rows[name].append(value)
    stage = torch.tensor(rows["stage"])
    unseen = torch.randint(STAGES, (UNSEEN,), generator=generator)
    return {
        "states": observe(generator, stage, vectors),
        "actions": torch.randn(ACTIONS, WIDTH, generator=generator),
        "tasks": torch.randn(TASKS, WIDTH, generator=generator),
        "action": torch.tensor(rows["action"]),
        "episode": torch.tensor(rows["episode"]),
        "episode_task": torch.tensor(task),
        "episode_reward": torch.tensor(reward),
        "unseen.states": observe(generator, unseen, vectors),
        "unseen.task": torch.arange(UNSEEN) % TASKS,
    }


def learn(data, seed):
    torch.manual_seed(seed)
    q, v = Net(3, **NETS), Net(2, **NETS)
    reference = Reference(q, v, SETTINGS, STEPS)
    n = len(data["action"])
    done = torch.ones(n)
    done[:-1] = (data["episode"][1:] != data["episode"][:-1]).float()
    task = data["episode_task"][data["episode"]]
    reward = done * data["episode_reward"][data["episode"]]
    for _ in range(STEPS):
        i = torch.randint(n, (BATCH,))
        following = data["states"][(i + 1).clamp_max(n - 1)]
        actions, tasks = data["actions"][data["action"][i]], data["tasks"][task[i]]
        reference.step(data["states"][i], actions, tasks, reward[i], following, done[i])
    pairs = torch.tensor(list(itertools.product(range(UNSEEN), range(ACTIONS))))
    states, tasks = data["unseen.states"][pairs[:, 0]], data["tasks"][data["unseen.task"][pairs[:, 0]]]
    with torch.no_grad():
        return q(states, data["actions"][pairs[:, 1]], tasks)


def rank_correlation(a, b):
    x, y = (v.argsort().argsort().double() for v in (a, b))
    return torch.corrcoef(torch.stack([x, y]))[0, 1].item()


def main():
    torch.set_num_threads(1)
    data = record(torch.Generator().manual_seed(1))
    values = [learn(data, seed) for seed in range(SEEDS)]
    agreement = [rank_correlation(a, b) for a, b in itertools.combinations(values, 2)]
    print(f"{len(data['action'])} transitions, {data['episode_reward'].mean():.2f} successful, seeds agree:", agreement)
    settings = SETTINGS | {"steps": STEPS, "batch": BATCH, "projection": NETS["projection"], "hidden": NETS["hidden"]}
    path = pathlib.Path(__file__).parent.parent / "fixtures" / "parity" / "iql" / "agreement.safetensors"
    save_file(data | {"q": torch.stack(values)}, path, metadata={"settings": json.dumps(settings)})


if __name__ == "__main__":
    main()
