"""An Optuna study over mu and sigma. The eigenpairs are computed once; each trial only filters them.

python optuna_study.py [DATASET] [TRIALS]
"""

import sys

import numpy as np
import optuna
from sklearn.linear_model import LogisticRegression

import qdc


def main(name="csbm:n=600,homophily=0.2,seed=0", trials=30):
    dataset = qdc.datasets.load(name)
    features = dataset.features if isinstance(dataset.features, np.ndarray) else dataset.features.toarray()
    spectrum = qdc.Spectrum(dataset.graph)  # serves every mu, sigma and k below

    def accuracy(smoothed, masks):
        scores = []
        for train, scored in zip(dataset.train_masks, masks, strict=True):
            model = LogisticRegression(max_iter=200).fit(smoothed[train], dataset.labels[train])
            scores.append(model.score(smoothed[scored], dataset.labels[scored]))
        return float(np.mean(scores))

    def smooth(mu, sigma, k):
        kernel = spectrum.kernel(mu=mu, sigma=sigma, sparsify=qdc.TopK(k))
        return np.hstack([features, kernel @ features])

    def objective(trial):
        mu = trial.suggest_float("mu", -1.0, 1.0)
        sigma = trial.suggest_float("sigma", 0.02, 1.0, log=True)
        k = trial.suggest_int("top_k", 2, 64, log=True)
        return accuracy(smooth(mu, sigma, k), dataset.validation_masks)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=trials)
    best = study.best_params
    print(f"{dataset}")
    print(f"features alone  test {accuracy(features, dataset.test_masks):.3f}")
    chosen = smooth(best["mu"], best["sigma"], best["top_k"])
    print(f"with the kernel test {accuracy(chosen, dataset.test_masks):.3f}  validation {study.best_value:.3f}  {best}")
    return study


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(text) for text in sys.argv[2:3]))
