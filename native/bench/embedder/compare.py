"""The embedder and Hugging Face transformers, taking turns on one machine in one run, on the same inputs and threads.

    npm run bench:embed -- [--layers 36] [--vision-blocks 32] [--threads 2] [--rounds 3] [--works state,step,...]
                           [--model FOLDER] [--dtype float32] [--beside TEXT] [--append]

Builds random weights at the true 3B shape (or a stated number of its layers, which is a benchmark of that model and
of no other), in --model or below the system's temporary folder, once. Trunk only on both sides: no language head, no
key-value cache. Needs the C++ benchmark and a Python with torch, torchvision, transformers, safetensors and Pillow:
    cmake -S . -B build-cmake/bench -DBOQ_BUILD_ADDON=OFF -DBOQ_BUILD_BENCH=ON && cmake --build build-cmake/bench

Prints a table in Markdown; --append adds it to docs/benchmarks/embedder.md. Ratios are transformers over this package;
that of processor time stays meaningful where other programs share the machine.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from machine import machine  # noqa: E402

ROOT = HERE.parent.parent.parent
# torchvision may be there and not load by itself: beside a CPU build of torch its operators are declared first.
NEEDED = "import torch, transformers, safetensors, PIL, importlib.util as util; assert util.find_spec('torchvision')"
TITLES = {
    "state": "one state",
    "step": "one step: state, three actions, task",
    "actions": "64 actions",
    "episode": "episode of ten recorded steps",
    "episode-changing": "the same, every pixel changed at every step",
}


def find_python():
    """A Python that has what the other side needs; this program itself needs nothing."""
    tried = []
    for candidate in (os.environ.get("BOQ_PYTHON"), sys.executable, shutil.which("python3"), shutil.which("python")):
        if candidate and candidate not in tried:
            tried.append(candidate)
            if subprocess.run([candidate, "-c", NEEDED], capture_output=True).returncode == 0:
                return candidate
    sys.exit(f"no Python with torch, torchvision, transformers, safetensors and Pillow among {', '.join(tried)}; name one with BOQ_PYTHON")


class Side:
    """A program that answers each line with one line of JSON."""

    def __init__(self, name, command):
        self.name, self.answers = name, {}
        # Both sides: threads that spin while they wait would measure who else uses the machine.
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "TRANSFORMERS_VERBOSITY": "error"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([str(c) for c in command], stdin=pipe, stdout=pipe, text=True, env=environment)
        self.loaded = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended; its message is above")
        return json.loads(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.read()
        self.answers.setdefault(line, []).append(answer)
        return answer

    def seconds(self, line, key="cpuSeconds"):
        return [answer[key] for answer in self.answers[line]]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def gflop(layers, blocks, tokens, patches):
    """Matrix products with weights; attention's are a few percent more."""
    vision = patches * (blocks * (1280 * 3840 + 1280 * 1280 + 3 * 1280 * 3420) + 1280 * 1176)
    merger = patches / 4 * (5120 * 5120 + 5120 * 2048)
    text = tokens * layers * (2048 * 2560 + 2048 * 2048 + 3 * 2048 * 11008)
    return 2e-9 * (vision + merger + text)


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b))
    return dot / (sum(x * x for x in a) ** 0.5 * sum(y * y for y in b) ** 0.5)


def spread(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


class Table:
    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs
        self.lines = [
            "| work | side | wall s, median (range) | processor s, median (range) | ratio, wall | ratio, processor |",
            "|---|---|---|---|---|---|",
        ]

    def add(self, work, side, label, line, base=None):
        cells = [work, label]
        ratios = []
        for key in ("seconds", "cpuSeconds"):
            cells.append(spread(side.seconds(line, key)))
            pairs = [a / b for a, b in zip(side.seconds(line, key), self.ours.seconds(base, key))] if base else []
            ratios.append(f"**{statistics.median(pairs):.2f}** ({min(pairs):.2f} to {max(pairs):.2f})" if pairs else "")
        self.lines.append(f"| {' | '.join([*cells, *ratios])} |")


def measure(ours, theirs, options):
    """Every round asks every side for every work; returns the mode that is transformers' best for a state."""
    ours.ask("warm plain")
    theirs.ask("warm default")
    for mode in ("sdpa", "eager"):
        theirs.ask(f"state {mode}")
    best = min(("sdpa", "eager"), key=lambda mode: theirs.seconds(f"state {mode}")[0])
    if options.rounds > 1:
        theirs.answers.clear()
    for _ in range(options.rounds):
        for work in options.works.split(","):
            if work in ("state", "step"):
                ours.ask(f"{work} plain")
                theirs.ask(f"{work} default")
                if options.rounds > 1 or work != "state":
                    theirs.ask(f"{work} {best}")
                ours.ask(f"{work} reusing")
            elif work == "actions":
                ours.ask("actions plain")
                theirs.ask(f"actions {best}")
                ours.ask("actions reusing")
                theirs.ask(f"actions-padded {best}")
            else:
                ours.ask(f"{work} reusing")
                theirs.ask(f"{work} {best}")
            ours.ask("gemm")
    return best


def report(ours, theirs, best, options, changed):
    table = Table(ours, theirs)
    best_label = f"transformers, best ({best}, allocator tuned)"
    for work in options.works.split(","):
        title = TITLES[work]
        if work in ("state", "step"):
            base = f"{work} plain"
            table.add(title, ours, "this package, everything computed", base)
            table.add(title, theirs, "transformers, default (sdpa)", f"{work} default", base)
            table.add(title, theirs, best_label, f"{work} {best}", base)
            table.add(title, ours, "this package, equal windows once", f"{work} reusing")
            table.add(title, theirs, best_label, f"{work} {best}", f"{work} reusing")
        elif work == "actions":
            table.add(title, ours, "this package, one call, nothing shared", "actions plain")
            table.add(title, ours, "this package, one call, beginnings shared", "actions reusing")
            table.add(title, theirs, f"{best_label}, one by one", f"actions {best}", "actions reusing")
            table.add(title, theirs, f"{best_label}, one padded batch", f"actions-padded {best}", "actions reusing")
        else:
            table.add(title, ours, "this package, reuse on", f"{work} reusing")
            table.add(title, theirs, best_label, f"{work} {best}", f"{work} reusing")
    lines = table.lines
    rate = statistics.median(a["gflop"] / a["cpuSeconds"] for a in ours.answers["gemm"])
    notes = []
    if "state plain" in ours.answers:
        state = ours.answers["state plain"][0]
        floor = gflop(options.layers, options.vision_blocks, state["tokens"], 4784)
        share = floor / rate / statistics.median(ours.seconds("state plain"))
        same = cosine(state["probe"], theirs.answers[f"state {best}"][0]["probe"])
        notes.append(
            f"One state is {floor:.0f} GFLOP of products with weights; at the {rate:.0f} GFLOP a processor second that a "
            f"product alone reaches in the same run ([1400, 2048] x [2048, 22016]) they take {floor / rate:.1f} s: "
            f"{100 * share:.0f} % of this package's time. Both sides' vectors: cosine {same:.5f} over the first 64 values.")
    for work in ("episode", "episode-changing"):
        if f"{work} reusing" in ours.answers:
            last = ours.answers[f"{work} reusing"][0]
            notes.append(
                f"{TITLES[work].capitalize()}: {last['computedTokens']} of {last['tokens']} tokens, "
                f"{last['computedImages']} of {last['images']} images and {last['computedWindows']} of {last['windows']} "
                "windows of these were computed.")
    if "episode" in options.works:
        shares = ", ".join(f"{100 * c:.1f}" for c in changed)
        notes.append(f"Pixels changed from step to step in the recorded episode, in percent: {shares}.")
    peaks = [max(a["peakMb"] for answers in side.answers.values() for a in answers if "peakMb" in a) for side in (ours, theirs)]
    notes.append(
        f"Loading (page cache warm): this package {ours.loaded['loadSeconds']:.1f} s, of which mapping and checking the files "
        f"{ours.loaded['mapSeconds']:.2f} s; transformers {theirs.loaded['loadSeconds']:.1f} s. Peak memory: this package "
        f"{peaks[0]} MB with weights of {ours.loaded['weightsMb']} MB, transformers {peaks[1]} MB.")
    head = (
        f"{options.layers} of 36 text layers and {options.vision_blocks} of 32 vision blocks at the widths of the 3B model, "
        f"random weights, {options.dtype}; screenshots of 1280x720; {options.threads} threads, {machine()}; {options.rounds} "
        f"rounds, the sides taking turns. Beside it ran: {options.beside}.")
    return "\n".join([head, "", *lines, "", *[f"- {note}" for note in notes]]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=36)
    parser.add_argument("--vision-blocks", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--works", default=",".join(TITLES))
    parser.add_argument("--beside", default="nothing that this program knows of")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"], help="of both sides")
    parser.add_argument("--program", type=pathlib.Path, help="boq_bench_embedder, if it is not below build-cmake")
    parser.add_argument("--append", action="store_true")
    options = parser.parse_args()
    python = find_python()
    found = sorted(ROOT.glob("build-cmake/*/native/bench/boq_bench_embedder"), key=lambda path: path.stat().st_mtime)
    program = options.program or (found[-1] if found else None)
    if program is None:
        sys.exit("boq_bench_embedder is not built; the command stands at the top of native/bench/embedder/compare.py")
    name = f"boq-bench-{options.layers}-{options.vision_blocks}"
    model = options.model or pathlib.Path(tempfile.gettempdir()) / name
    make = [python, HERE / "make_work.py", model, "--layers", options.layers, "--vision-blocks", options.vision_blocks]
    made = subprocess.run([str(part) for part in make], check=True, stdout=subprocess.PIPE, text=True)
    common = ["--threads", options.threads, "--device", options.device, "--dtype", options.dtype]
    inputs = model / "inputs.safetensors"
    ours = Side("boq_bench_embedder", [program, model, "--inputs", inputs, *common])
    theirs = Side("transformers", [python, HERE / "transformers_side.py", model, inputs, *common])
    best = measure(ours, theirs, options)
    for side in (ours, theirs):
        side.end()
    text = report(ours, theirs, best, options, json.loads(made.stdout)["changedPixels"])
    print(text)
    if options.append:
        path = ROOT / "docs" / "benchmarks" / "embedder.md"
        path.write_text(f"{path.read_text()}\n{text}")


if __name__ == "__main__":
    main()
