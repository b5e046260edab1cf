"""Two builds of qdc on what bench/kernel and bench/spectrum record, alternating in one run, the least of some runs each.

usage: QDC_DATA=folder builds.py OLD NEW [--repeats 5] [--only TEXT] > table.md

One thread, CPU seconds of the whole command, as machines are shared. Every run has an empty cache folder of its own,
so that no stored spectrum helps.
"""

import argparse
import json
import os
import subprocess
import tempfile

GAUSSIAN = ["--mu", "0.5", "--sigma", "0.1", "--epsilon", "1e-4"]
PPR = ["--filter", "ppr", "--alpha", "0.15", "--epsilon", "1e-4"]


def commands():
    for name in ("cora", "chameleon", "squirrel"):
        yield f"kernel {name}, gaussian", ["kernel", name, *GAUSSIAN]
        yield f"kernel {name}, ppr", ["kernel", name, *PPR]
    yield "kernel cora, gaussian, 512 pairs", ["kernel", "cora", *GAUSSIAN, "--pairs", "512"]
    yield "kernel pubmed, gaussian, top-64", ["kernel", "pubmed", "--mu", "0.5", "--sigma", "0.1", "--top-k", "64"]
    for name in ("cornell", "chameleon", "cora", "citeseer", "squirrel", "actor", "pubmed"):
        for mu in ("-0.5", "0.0", "0.5"):
            yield f"spectrum {name}, 512 pairs around {mu}", ["spectrum", name, "--pairs", "512", f"--around={mu}"]


def run(binary, arguments):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        output = ["-o", os.path.join(folder, "out.npz")]
        command = [binary, *arguments, *output, "--json", "--quiet", "--threads", "1", "--memory", "4GB"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        report = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: {report}")
    return usage.ru_utime, report.get("method") or report["solver"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| what | old s | by | new s | by | new / old |\n| --- | --- | --- | --- | --- | --- |")
    for what, arguments in commands():
        if options.only not in what:
            continue
        pairs = [[run(binary, arguments) for binary in (options.old, options.new)] for _ in range(options.repeats)]
        (old, by), (new, now) = (min(runs) for runs in zip(*pairs))
        ratio = f"{new / old:.2f}" if old > 0 else "-"
        print(f"| {what} | {old:.2f} | {by} | {new:.2f} | {now} | {ratio} |", flush=True)


main()
