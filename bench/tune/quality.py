"""Is our search as good as Optuna 3.6's? Three analytic objectives on the published space, 250 trials, 20 seeds.

  python quality.py PARABOLA [--seeds 20] [--trials 250]      PARABOLA: target/release/examples/parabola

Prints, per objective, the median of the best values found by each and how often ours was at least as good.
"""
import argparse
import json
import math
import statistics
import subprocess
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def evaluate(objective, p):
    epsilon, rate = (math.log10(p["epsilon"]) + 7) / 6, (math.log10(p["learning_rate"]) + 4) / 3
    width = math.log2(p["hidden"]) / 7
    if objective == "ridge":
        return (-(p["mu"] - 1.5 * p["sigma"] + 0.4) ** 2 - 0.1 * (p["sigma"] - 0.6) ** 2 - 2 * p["weight_decay"]
                - 0.3 * (rate - 0.7) ** 2 - 0.2 * (width - 0.8) ** 2)
    if objective == "steps":
        smooth = (1 - (p["mu"] - 0.3) ** 2 - (epsilon - 0.5) ** 2 - (rate - 0.6) ** 2 - p["weight_decay"] ** 2
                  - 0.2 * (p["dropout"] - 0.5) ** 2 - 0.1 * (2 - p["layers"]))
        return math.floor(smooth * 59) / 59
    return (-(p["mu"] - 0.2) ** 2 - (p["sigma"] - 0.3) ** 2 - (epsilon - 0.4) ** 2 - (rate - 0.66) ** 2
            - (p["weight_decay"] - 0.05) ** 2 - (p["dropout"] - 0.4) ** 2 - (width - 0.7) ** 2 - 0.1 * (2 - p["layers"]))


def suggest(trial):
    return {
        "layers": trial.suggest_categorical("layers", [1, 2]),
        "hidden": trial.suggest_categorical("hidden", [2, 4, 8, 16, 32, 64, 128]),
        "dropout": trial.suggest_float("dropout", 0.0, 0.99),
        "mu": trial.suggest_float("mu", -1.0, 1.0),
        "sigma": trial.suggest_float("sigma", 0.1, 1.0),
        "epsilon": trial.suggest_float("epsilon", 1e-7, 1e-1, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 0.0, 0.9),
    }


def theirs(objective, seed, trials):
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(lambda trial: evaluate(objective, suggest(trial)), n_trials=trials)
    return study.best_value


def ours(program, objective, seed, trials, batch):
    command = [program, "memory", "s", str(trials), "--objective", objective, "--seed", str(seed), "--batch", str(batch)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["value"]


parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--seeds", type=int, default=20)
parser.add_argument("--trials", type=int, default=250)
options = parser.parse_args()
for objective in ("parabola", "ridge", "steps"):
    seeds = range(options.seeds)
    one = [ours(options.program, objective, seed, options.trials, 1) for seed in seeds]
    four = [ours(options.program, objective, seed, options.trials, 4) for seed in seeds]
    other = [theirs(objective, seed, options.trials) for seed in seeds]
    median = statistics.median
    print(json.dumps({
        "objective": objective, "seeds": options.seeds, "trials": options.trials, "optuna": optuna.__version__,
        "median_optuna": round(median(other), 5), "median_qdc": round(median(one), 5),
        "median_qdc_batch_4": round(median(four), 5),
        "wins": sum(a >= b for a in one for b in other) / len(one) / len(other),
    }), flush=True)
