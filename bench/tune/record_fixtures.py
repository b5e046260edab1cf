"""Records what Optuna's TPE suggests, for the tests of qdc-tune.

  python record_fixtures.py OUT      with Optuna 5.0.0: tpe_multivariate_*.json; with 3.6.1: tpe_integers.json

Per trial: params in the order of the space (a category as its index), value, tied (other candidates whose score lies
within 1e-9 of the best), and the next double of both random streams after the trial. `batch` trials are asked before
the first of them is told, so that the others count as running.
"""
import copy
import json
import math
import sys
import warnings

import numpy
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

warnings.filterwarnings("ignore")

# Equal observations take their bandwidths in the order of NumPy's argsort, which is not stable and depends on the CPU.
# With a stable sort the fixtures are the same everywhere (whole numbers repeat; reals do not).
unstable = numpy.argsort
numpy.argsort = lambda values, *args, **kwargs: unstable(values, *args, **{**kwargs, "kind": "stable"})

optuna.logging.set_verbosity(optuna.logging.ERROR)

QDC = [
    ("layers", CategoricalDistribution([1, 2])),
    ("hidden", CategoricalDistribution([2, 4, 8, 16, 32, 64, 128])),
    ("dropout", FloatDistribution(0.0, 0.99)),
    ("mu", FloatDistribution(-1.0, 1.0)),
    ("sigma", FloatDistribution(0.1, 1.0)),
    ("epsilon", FloatDistribution(1e-7, 1e-1, log=True)),
    ("learning_rate", FloatDistribution(1e-4, 1e-1, log=True)),
    ("weight_decay", FloatDistribution(0.0, 0.9)),
]
INTEGERS = [
    ("heads", IntDistribution(1, 5)),
    ("iterations", IntDistribution(10, 1000, log=True)),
    ("top_k", IntDistribution(8, 128, step=8)),
    ("tau", FloatDistribution(1.0, 500.0, log=True)),
    ("grid", FloatDistribution(0.0, 1.0, step=0.125)),
    ("kind", CategoricalDistribution(["a", "b", "c"])),
    ("only", CategoricalDistribution(["one"])),
]


def value(space, params):
    total = 0.0
    for index, (name, distribution) in enumerate(space):
        x = distribution.to_internal_repr(params[name])
        if isinstance(distribution, CategoricalDistribution):
            total -= 0.1 * (x - 1) ** 2
        else:
            low, high = distribution.low, distribution.high
            place = (math.log(x / low) / math.log(high / low)) if distribution.log else (x - low) / (high - low)
            total -= (place - 0.2 - 0.07 * index) ** 2
    return total


def describe(name, distribution):
    return {"name": name, "distribution": json.loads(optuna.distributions.distribution_to_json(distribution))}


def record(path, space, seed, trials, batch, multivariate):
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=multivariate)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    last = {}
    compare = sampler._compare

    def spy(samples, scores):
        best = int(numpy.argmax(scores))
        tied = [
            {name: values[i].item() for name, values in samples.items()}
            for i in range(len(scores))
            if i != best and abs(scores[i] - scores[best]) < 1e-9
            and any(values[i] != values[best] for values in samples.values())
        ]
        last.setdefault("tied", []).extend(tied)
        return compare(samples, scores)

    optuna.samplers.TPESampler._compare = staticmethod(spy)
    rows, pending = [], []
    for number in range(trials):
        last.clear()
        trial = study.ask()
        params = {name: trial._suggest(name, distribution) for name, distribution in space}
        peek = lambda rng: float(copy.deepcopy(rng).random_sample())
        rows.append({
            "params": [distribution.to_internal_repr(params[name]) for name, distribution in space],
            "value": value(space, params),
            "tied": last.get("tied", []),
            "next_startup": peek(sampler._random_sampler._rng.rng),
            "next_main": peek(sampler._rng.rng),
        })
        pending.append((trial, rows[-1]["value"]))
        if len(pending) == batch:
            for asked, result in pending:
                study.tell(asked, result)
            pending.clear()
    with open(path, "w") as file:
        json.dump({
            "tools": {"optuna": optuna.__version__, "numpy": numpy.__version__},
            "sampler_seed": seed, "direction": "maximize", "multivariate": multivariate, "batch": batch,
            "space": [describe(*entry) for entry in space],
            "trials": rows,
        }, file, indent=None)
        file.write("\n")


out = sys.argv[1]
if optuna.__version__ == "5.0.0":
    record(f"{out}/tpe_multivariate_qdc.json", QDC, 1234, 60, 1, True)
    record(f"{out}/tpe_multivariate_integers.json", INTEGERS, 99, 60, 1, True)
    record(f"{out}/tpe_multivariate_batch.json", QDC, 4321, 60, 4, True)
elif optuna.__version__ == "3.6.1":
    record(f"{out}/tpe_integers.json", INTEGERS, 99, 60, 1, False)
else:
    sys.exit(f"Optuna 5.0.0 or 3.6.1 is needed, found {optuna.__version__}")
