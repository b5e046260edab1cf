"""Tuning GCN+QDC with Optuna and PyTorch Geometric: what `qdc tune` is compared with.

  python optuna_pyg.py DATASET.npz POINTS.db --trials 10 [--splits 10]      one thread; prints one JSON object

The points are those of a study of `qdc tune`, so that both do the same work. A trial builds and sparsifies the kernel from
one eigendecomposition kept for all trials (the 512 eigenpairs nearest mu), and trains on the splits for up to 1000 epochs,
stopping after 50 without a better validation accuracy, or the same with a lower loss: the rule of `qdc`. With fewer
splits the time of training is scaled up to ten.
"""
import argparse
import json
import time

import numpy as np
import optuna
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv


class Net(torch.nn.Module):
    def __init__(self, fin, hidden, fout, layers, dropout):
        super().__init__()
        dims = [fin, fout] if layers == 1 else [fin, hidden, fout]
        self.convs = torch.nn.ModuleList(GCNConv(i, o, normalize=False) for i, o in zip(dims, dims[1:]))
        self.dropout = dropout

    def forward(self, x, edges, weights):
        for i, conv in enumerate(self.convs):
            x = F.dropout(x if i == 0 else F.relu(x), self.dropout, self.training)
            x = conv(x, edges, weights)
        return x


parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("points")
parser.add_argument("--trials", type=int, default=10)
parser.add_argument("--splits", type=int, default=10)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(options.seed)
optuna.logging.set_verbosity(optuna.logging.ERROR)
wall, cpu = time.perf_counter(), time.process_time()
data = np.load(options.dataset)
n = len(data["node_labels"])
edges = data["edges"]
a = sp.coo_matrix((np.ones(2 * len(edges)), np.concatenate([edges, edges[:, ::-1]]).T), shape=(n, n)).tocsr()
a.setdiag(0)
a.eliminate_zeros()
a.data[:] = 1
a = a + sp.identity(n)
d = sp.diags(1 / np.sqrt(np.asarray(a.sum(1)).ravel()))
energies, vectors = np.linalg.eigh((d @ a @ d).toarray())
x = torch.from_numpy(data["node_features"].astype(np.float32))
y = torch.from_numpy(data["node_labels"].astype(np.int64))
classes = int(y.max()) + 1
masks = [[torch.from_numpy(np.flatnonzero(data[k + "_masks"][s])) for k in ("train", "val", "test")]
         for s in range(options.splits)]
epochs, training = 0, 0.0


def objective(trial):
    global epochs, training
    layers = trial.suggest_categorical("layers", [1, 2])
    hidden = trial.suggest_categorical("hidden", [2, 4, 8, 16, 32, 64, 128])
    dropout = trial.suggest_float("dropout", 0.0, 0.99)
    mu, sigma = trial.suggest_float("mu", -1, 1), trial.suggest_float("sigma", 0.1, 1.0)
    epsilon = trial.suggest_float("epsilon", 1e-7, 1e-1, log=True)
    rate, decay = trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True), trial.suggest_float("weight_decay", 0.0, 0.9)
    near = np.argsort(np.abs(energies - mu))[:512]
    u = vectors[:, near] * np.exp(-((energies[near] - mu) ** 2) / (4 * sigma * sigma))
    q = u @ u.T
    q[q < epsilon] = 0
    q = sp.coo_matrix(q)
    degree = np.asarray(q.sum(1)).ravel()
    inverse = np.divide(1, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    index = torch.from_numpy(np.stack([q.row, q.col]).astype(np.int64))
    weight = torch.from_numpy((q.data * inverse[q.row] * inverse[q.col]).astype(np.float32))
    scores = []
    begin = time.process_time()
    for train, validation, _ in masks:
        net = Net(x.shape[1], hidden, classes, layers, dropout)
        adam = torch.optim.Adam(net.parameters(), lr=rate, weight_decay=decay)
        best, bad = (-1.0, 0.0), 0
        for _ in range(1000):
            net.train()
            adam.zero_grad()
            F.cross_entropy(net(x, index, weight)[train], y[train]).backward()
            adam.step()
            net.eval()
            epochs += 1
            with torch.no_grad():
                out = net(x, index, weight)[validation]
                score = ((out.argmax(1) == y[validation]).float().mean().item(), -F.cross_entropy(out, y[validation]).item())
            best, bad = (score, 0) if score > best else (best, bad + 1)
            if bad >= 50:
                break
        scores.append(best[0])
    training += time.process_time() - begin
    return float(np.mean(scores))


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=options.seed))
[theirs] = optuna.get_all_study_names(f"sqlite:///{options.points}")
for trial in optuna.load_study(study_name=theirs, storage=f"sqlite:///{options.points}").trials[:options.trials]:
    study.enqueue_trial(trial.params)
study.optimize(objective, n_trials=options.trials)
cpu = time.process_time() - cpu + training * (10 / options.splits - 1)
print(json.dumps({
    "tool": "optuna+pyg", "dataset": options.dataset, "trials": options.trials, "splits": options.splits, "epochs": epochs,
    "seconds": round(time.perf_counter() - wall, 2), "cpu_seconds": round(cpu, 2),
    "best_validation": study.best_value, "optuna": optuna.__version__, "torch": torch.__version__,
}))
