"""Plays episodes that were recorded elsewhere through BrowserGym's MiniWoB++ environment: same seeds, same actions.

stdin: JSON {"browser", "pages", "slow": bool, "episodes": [{"task", "seed", "reward", "steps": [[type, x, y, text, submit]]}]}
stdout: JSON {"episodes", "steps", "agreed", "seconds", "cpuSeconds"}
"""

import json
import logging
import os
import sys
import time


TICKS = os.sysconf("SC_CLK_TCK")


class FixedDraw:
    """In place of the task's own generator, so that the page gets the seed that was recorded."""

    def __init__(self, seed):
        self.seed = seed

    def randint(self, low, high):
        return self.seed


def descendants_cpu(seen):
    """Adds what every process below this one has used so far; processes that ended stay at their last value."""
    parents, used = {}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(name)] = int(fields[1])
            used[int(name)] = (int(fields[11]) + int(fields[12])) / TICKS
    for process in used:
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and process != os.getpid():
            seen[process] = max(seen.get(process, 0.0), used[process])


def code(step):
    kind, x, y, text, submit = step
    # BrowserGym's pictures of these pages are one and a half times as large, and so are its coordinates.
    lines = [f"mouse_click({x * 1.5}, {y * 1.5})"]
    if kind == "write":
        lines += ["keyboard_press('ControlOrMeta+a')", f"keyboard_type({text!r})"]
        if submit:
            lines += ["keyboard_press('Enter')"]
    return "\n".join(lines)


def main():
    request = json.load(sys.stdin)
    logging.disable(logging.WARNING)
    os.environ["MINIWOB_URL"] = request["pages"]
    import browsergym.miniwob
    import playwright.sync_api
    from browsergym.core.action.highlevel import HighLevelActionSet
    from browsergym.core.env import BrowserEnv
    from browsergym.miniwob import all as tasks

    launch = playwright.sync_api.BrowserType.launch

    def launch_given(self, *args, **kwargs):
        # The chat beside the page opens a browser too, and knows only Playwright's own.
        kwargs["executable_path"] = request["browser"]
        kwargs["args"] = [*kwargs.get("args", []), *(["--no-sandbox"] if os.getuid() == 0 else [])]
        return launch(self, *args, **kwargs)

    playwright.sync_api.BrowserType.launch = launch_given
    by_name = {task.subdomain: task for task in vars(tasks).values() if hasattr(task, "subdomain")}
    actions = HighLevelActionSet(subsets=["coord"], multiaction=True)
    waits = {} if request["slow"] else {"slow_mo": 0, "pre_observation_delay": 0.0}
    agreed = steps = 0
    cpu = {}
    before = time.process_time()
    begun = time.monotonic()
    for episode in request["episodes"]:

        def entry(seed, _task=by_name[episode["task"]], _seed=episode["seed"], **kwargs):
            task = _task(seed=seed, **kwargs)
            task.random = FixedDraw(_seed)
            return task

        env = BrowserEnv(task_entrypoint=entry, action_mapping=actions.to_python_code, **waits)
        env.reset(seed=0)
        reward = 0.0
        for step in episode["steps"]:
            observation, reward, done, _, _ = env.step(code(step))
            assert observation["screenshot"].size > 0
            steps += 1
            if done:
                break
        agreed += (reward > 0) == (episode["reward"] > 0)
        descendants_cpu(cpu)
        env.close()
    seconds = time.monotonic() - begun
    own = time.process_time() - before
    json.dump(
        {
            "episodes": len(request["episodes"]),
            "steps": steps,
            "agreed": agreed,
            "seconds": seconds,
            "cpuSeconds": own + sum(cpu.values()),
        },
        sys.stdout,
    )


main()
