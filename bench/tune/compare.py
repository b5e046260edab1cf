"""The ratio of CPU seconds of two runs of bench/tune/run.sh."""
import json
import sys

theirs, ours = (json.load(open(path)) for path in sys.argv[1:3])
cpu = sum(float(part) for part in open(sys.argv[3]).read().split())
print(json.dumps({
    "optuna_pyg_cpu_seconds": theirs["cpu_seconds"], "qdc_cpu_seconds": round(cpu, 2),
    "ratio": round(theirs["cpu_seconds"] / cpu, 1), "trials": theirs["trials"], "splits_of_peer": theirs["splits"],
    "best_validation": [theirs["best_validation"], ours["best"]["validation"]],
}))
