"""Optuna opens, agrees with and continues studies of ours, and we continue Optuna's.

  python exchange.py PARABOLA FOLDER      PARABOLA: the example program of qdc-tune; run once per version of Optuna
"""
import json
import math
import subprocess
import sys
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
parabola, folder = sys.argv[1], sys.argv[2]
version = optuna.__version__


def ours(address, name, trials, *options):
    command = [parabola, address, name, str(trials), *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def objective(trial):
    p = {
        "layers": trial.suggest_categorical("layers", [1, 2]),
        "hidden": trial.suggest_categorical("hidden", [2, 4, 8, 16, 32, 64, 128]),
        "dropout": trial.suggest_float("dropout", 0.0, 0.99),
        "mu": trial.suggest_float("mu", -1.0, 1.0),
        "sigma": trial.suggest_float("sigma", 0.1, 1.0),
        "epsilon": trial.suggest_float("epsilon", 1e-7, 1e-1, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 0.0, 0.9),
    }
    return -((p["mu"] - 0.2) ** 2) - (p["sigma"] - 0.3) ** 2


def url(address):
    return address if "://" in address else f"sqlite:///{address}"


def check(address):
    best = ours(address, "ours", 20)
    study = optuna.load_study(study_name="ours", storage=url(address))
    assert len(study.trials) == 20 and study.direction.name == "MAXIMIZE"
    assert study.best_trial.number == best["best"], (study.best_trial.number, best)
    assert study.best_value == best["value"] and study.best_params == best["parameters"], best
    assert study.trials[3].user_attrs["test"] == [study.trials[3].value, 3]
    assert study.user_attrs["objective"] == "parabola"
    assert all(t.state.name == "COMPLETE" and t.datetime_complete >= t.datetime_start for t in study.trials)
    study.enqueue_trial({"mu": 0.25})
    study.optimize(objective, n_trials=5)
    study.enqueue_trial({"mu": 0.125, "hidden": 32})
    again = ours(address, "ours", 30)
    study = optuna.load_study(study_name="ours", storage=url(address))
    assert [t.number for t in study.trials] == list(range(30)) and again["trials"] == 30
    assert study.trials[20].params["mu"] == 0.25
    assert study.trials[25].params["mu"] == 0.125 and study.trials[25].params["hidden"] == 32

    theirs = optuna.create_study(study_name="theirs", storage=url(address), direction="maximize")
    theirs.optimize(objective, n_trials=15)
    best = ours(address, "theirs", 25)
    theirs = optuna.load_study(study_name="theirs", storage=url(address))
    assert len(theirs.trials) == 25 and math.isclose(theirs.best_value, best["value"], rel_tol=0)
    theirs.optimize(objective, n_trials=3)
    assert len(theirs.trials) == 28


check(f"{folder}/exchange-{version}.db")
for address in sys.argv[3:]:
    check(address)
print(f"Optuna {version}: {1 + len(sys.argv[3:])} storages agree")
