"""IQL's gradient step, ours and PyTorch's, taking turns on one machine in one run.

    npm run bench:iql -- [--width 2048] [--threads 2] [--rounds 5] [--steps 20] [--device cpu] [--append]
    npm run bench:iql -- --score [--steps 200]    # values of one state and three candidates instead
    npm run bench:iql -- --models 5               # several models in one run, beside as many runs in a row

Needs a Python with torch, numpy and safetensors, and the C++ benchmark:
    cmake -S . -B build-cmake/bench -DBOQ_BUILD_ADDON=OFF -DBOQ_BUILD_BENCH=ON && cmake --build build-cmake/bench

Prints a table in Markdown; --append adds it to docs/benchmarks/iql.md. Processor time stands beside wall time because
it stays meaningful where other programs share the machine.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from machine import has_bfloat16, machine  # noqa: E402

ROOT = HERE.parent.parent.parent
SIDES = {
    "this package, bfloat16": ("ours", ["--precision", "bfloat16"]),
    "this package, float32": ("ours", ["--precision", "float32"]),
    "PyTorch, eager (after CORL eeeeef2)": ("torch", ["--variant", "eager"]),
    "PyTorch, fused Adam": ("torch", ["--variant", "fused"]),
    "PyTorch, fused Adam, bfloat16 autocast": ("torch", ["--variant", "fused", "--precision", "bfloat16"]),
}

SCORERS = {
    "this package": ("ours", []),
    "PyTorch, eager": ("torch", ["--variant", "eager"]),
}


def floor(width, batch=128):
    """Arithmetic of one step in GFLOP, and the memory traffic of Adam in MB."""

    def net(streams):
        sizes = [1024 * streams, 1024, 1024, 512, 256, 128, 64, 1]
        hidden = sum(a * b for a, b in zip(sizes, sizes[1:]))
        return streams * width * 1024, hidden

    flops, parameters = 0, 0
    for streams in (3, 2):
        projections, hidden = net(streams)
        # Forward twice (once for targets), gradients of all weights, gradients of the hidden layers' inputs.
        flops += 2 * batch * (3 * projections + 4 * hidden)
        parameters += projections + hidden
    return flops / 1e9, 28 * parameters / 1e6


class Side:
    def __init__(self, name, command, times=1):
        self.name, self.wall, self.cpu, self.times = name, [], [], times
        # Both sides: threads that spin while they wait would measure who else uses the machine.
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def work(self, what, count):
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended; its message is above")
        return json.loads(line)

    def measure(self, what, count):
        answer = self.work(what, count * self.times)
        self.wall.append(1000 * answer["seconds"] / count)
        self.cpu.append(1000 * answer["cpuSeconds"] / count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--models", type=int, default=1)
    parser.add_argument("--append", action="store_true")
    options = parser.parse_args()
    what, count = ("score", 10 * options.steps) if options.score else ("steps", options.steps)
    found = sorted(ROOT.glob("build-cmake/*/native/bench/boq_bench_iql"), key=lambda path: path.stat().st_mtime)
    if not found:
        sys.exit("boq_bench_iql is not built; the command stands at the top of native/bench/iql/compare.py")
    with tempfile.TemporaryDirectory() as folder:
        make = [sys.executable, str(HERE / "make_data.py"), folder, "--width", str(options.width)]
        subprocess.run([*make, "--transitions", "10000"], check=True)
        common = ["--threads", str(options.threads), "--device", options.device]
        programs = {"ours": [str(found[-1]), folder], "torch": [sys.executable, str(HERE / "torch_side.py"), folder]}
        chosen = SCORERS if options.score else SIDES
        if options.device == "cpu" and not has_bfloat16():
            # Emulated, a step takes twenty times as long on either side.
            chosen = {name: side for name, side in chosen.items() if "bfloat16" not in side[1]}
        sides = [Side(name, [*programs[kind], *extra, *common]) for name, (kind, extra) in chosen.items()]
        if options.models > 1:
            together = [*programs["ours"], "--models", str(options.models), *common]
            sides = [
                Side(f"{options.models} models in one run", together),
                Side(f"{options.models} runs in a row", [*programs["ours"], *common], times=options.models),
            ]
        for side in sides:
            side.work(what, 5)
        for _ in range(options.rounds):
            for side in sides:
                side.measure(what, count)
        for side in sides:
            side.process.stdin.close()
            side.process.wait()
    base = statistics.median(sides[0].wall), statistics.median(sides[0].cpu)
    gflop, megabytes = floor(options.width)
    each, digits = ("call", 3) if options.score else ("step", 1)
    shape = "Q of three candidates and V" if options.score else "batch 128"
    shape += f", {options.models} models" if options.models > 1 else ""
    rounds = f"{options.rounds} rounds of {count} {each}s, taking turns."
    if not options.score:
        rounds += f" Arithmetic {gflop:.1f} GFLOP and {megabytes:.0f} MB of Adam traffic a step."
    lines = [
        f"Width {options.width}, {shape}, {options.threads} threads, {machine()}; {rounds}",
        "",
        f"| | ms a {each}, median (range) | processor ms a {each} | ratio, wall | ratio, processor |",
        "|---|---|---|---|---|",
    ]
    for side in sides:
        wall, cpu = statistics.median(side.wall), statistics.median(side.cpu)
        lines.append(
            f"| {side.name} | {wall:.{digits}f} ({min(side.wall):.{digits}f} to {max(side.wall):.{digits}f}) "
            f"| {cpu:.{digits}f} "
            f"| {wall / base[0]:.2f} | {cpu / base[1]:.2f} |"
        )
    text = "\n".join(lines) + "\n"
    print(text)
    if options.append:
        path = ROOT / "docs" / "benchmarks" / "iql.md"
        old = path.read_text() if path.exists() else "# IQL's gradient step\n\nMade by `npm run bench:iql -- --append`.\n"
        path.write_text(f"{old}\n{text}")


if __name__ == "__main__":
    main()
