"""Whole runs of `qdc train`: ten splits on one thread and on two, the plain graph against the kernel, memory on Pubmed.

  python runs.py DATA [quick] [--qdc PROGRAM]
"""
import argparse
import json
import pathlib
import resource
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def train(program, data, name, model, *options):
    command = [program, "train", f"{data}/{name}.npz", "--model", model, "--directed", "--symmetrize", "or", "--json", "--quiet", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("quick", nargs="?", help="cora only, few steps, nothing recorded")
    parser.add_argument("--qdc", default=ROOT / "target/release/qdc", help="the program")
    parser.add_argument("--only", default="memory,splits,kernel", help="which of the three")
    a = parser.parse_args()
    steps = ["--max-steps", "20"] if a.quick else []
    results = {}
    if "memory" in a.only and not a.quick:  # first: the record of children is the largest of all so far
        for model in ("gcn", "gat"):
            run = train(a.qdc, a.data, "pubmed", model, "--splits", "0", "--max-steps", "20", "--threads", "1")
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
            results[f"pubmed {model}, one split, peak MB"] = peak
    if "splits" in a.only:
        for name, model in [("cora", "gcn"), ("chameleon", "gcn"), ("cora", "gat")][: 1 if a.quick else 3]:
            one, two = (train(a.qdc, a.data, name, model, "--threads", threads, *steps) for threads in "12")
            assert [split["test"] for split in one["splits"]] == [split["test"] for split in two["splits"]]
            results[f"{name} {model}, ten splits, seconds on 1 and 2 threads, ratio"] = [
                round(one["seconds"], 2), round(two["seconds"], 2), round(one["seconds"] / two["seconds"], 2)]
    if "kernel" in a.only:
        for name in ["cora", "chameleon"][: 1 if a.quick else 2]:
            for model in ("gcn", "gcn+qdc"):
                extra = ["--set", "mu=0.5", "--set", "sigma=0.1"] if "qdc" in model else []
                run = train(a.qdc, a.data, name, model, "--threads", "1", "--splits", "0-2", *(steps or ["--max-steps", "100"]), *extra)
                taken = sum(split["seconds"] for split in run["splits"]) / sum(split["steps"] for split in run["splits"])
                results[f"{name} {model}: preparation s, a step ms"] = [round(run["rewiring_seconds"], 2), round(1e3 * taken, 2)]
    print(json.dumps(results, indent=1))
    if a.quick:
        return  # a trial: what is recorded stays
    out = ROOT / "bench/train/results"
    out.mkdir(exist_ok=True)
    (out / "runs.json").write_text(json.dumps(results, indent=1))


main()
