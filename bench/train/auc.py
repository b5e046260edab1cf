"""ROC-AUC of PyTorch Geometric's GCN and of ours with default settings: same layers, features, splits and stopping rule.

Two layers of 64, dropout 0.5, Adam with rate 0.01 and decay 5e-4, at most 1000 steps, stopped when validation has not improved
for 50; no residual connections, no normalisation layers. PyTorch Geometric's side is scored by scikit-learn's roc_auc_score.
Random numbers cannot be the same on both sides: means over the splits are compared.

  python auc.py DATA [quick] [--datasets minesweeper,tolokers] [--splits 10] [--qdc PROGRAM]
"""
import argparse
import json
import pathlib
import subprocess

import numpy as np
import scipy.sparse as sp

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = {"layers": 2, "hidden": 64, "dropout": 0.5, "learning_rate": 0.01, "weight_decay": 5e-4}
STEPS, PATIENCE = 1000, 50


def transition(edges, nodes):
    """D^-1/2 (A + I) D^-1/2, which GCNConv would make of the edges."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    a = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(nodes, nodes)).tocsr()
    a = (a > 0).astype(float) + sp.eye_array(nodes, format="csr")
    d = sp.diags_array(1 / np.sqrt(a.sum(1)))
    return (d @ a @ d).tocoo()


def peer(data, name, splits):
    """Validation and test ROC-AUC of each split at the best step: higher on validation, or the same with a lower loss."""
    import torch
    import torch.nn.functional as F
    from sklearn.metrics import roc_auc_score
    from torch_geometric.nn import GCNConv
    from torch_geometric.utils import to_torch_csr_tensor

    torch.set_num_threads(1)
    hidden, p = SETTINGS["hidden"], SETTINGS["dropout"]

    class Net(torch.nn.Module):
        def __init__(self, inputs, classes):
            super().__init__()
            self.first = GCNConv(inputs, hidden, normalize=False)
            self.last = GCNConv(hidden, classes, normalize=False)

        def forward(self, x, graph):
            x = F.relu(self.first(F.dropout(x, p, self.training), graph))
            return self.last(F.dropout(x, p, self.training), graph)

    file = np.load(f"{data}/{name}.npz")
    x = torch.from_numpy(file["node_features"].astype(np.float32))
    labels = file["node_labels"].astype(np.int64)
    y = torch.from_numpy(labels)
    matrix = transition(file["edges"], len(labels))
    index = torch.from_numpy(np.stack([matrix.row, matrix.col]).astype(np.int64))
    graph = to_torch_csr_tensor(index, torch.from_numpy(matrix.data.astype(np.float32)), size=matrix.shape)

    def train(split):
        torch.manual_seed(split)
        train, val, test = (torch.from_numpy(file[k][split].astype(bool)) for k in ("train_masks", "val_masks", "test_masks"))
        net = Net(x.shape[1], int(y.max()) + 1)
        optimizer = torch.optim.Adam(net.parameters(), lr=SETTINGS["learning_rate"], weight_decay=SETTINGS["weight_decay"])
        best, since, score, steps = (-1.0, 0.0), 0, None, 0
        while steps < STEPS and since < PATIENCE:
            steps, since = steps + 1, since + 1
            net.train()
            optimizer.zero_grad()
            F.cross_entropy(net(x, graph)[train], y[train]).backward()
            optimizer.step()
            net.eval()
            with torch.no_grad():
                z = net(x, graph)
                auc = lambda mask: roc_auc_score(labels[mask.numpy()], (z[:, 1] - z[:, 0])[mask].numpy())
                now = (auc(val), -F.cross_entropy(z[val], y[val]).item())
                if now > best:
                    best, since, score = now, 0, {"validation": now[0], "test": auc(test)}
        print(name, split, score, steps, flush=True)
        return {"split": split, **score, "steps": steps}

    return [train(split) for split in range(splits)]


def own(program, data, name, splits):
    """The same from qdc."""
    command = [program, "train", f"{data}/{name}.npz", "--model", "gcn", "--metric", "auc", "--json", "--quiet",
               "--splits", f"0-{splits - 1}"]
    record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert {key: record["hyperparameters"][key] for key in SETTINGS} == SETTINGS, "these are qdc's defaults"
    return [{key: split[key] for key in ("split", "validation", "test", "steps")} for split in record["splits"]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("quick", nargs="?", help="one split of minesweeper, nothing recorded")
    parser.add_argument("--datasets", default="minesweeper,tolokers")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--qdc", default=ROOT / "target/release/qdc", help="the program")
    a = parser.parse_args()
    if a.quick:
        a.datasets, a.splits = "minesweeper", 1
    out = ROOT / "bench/train/results/auc.json"
    recorded = json.loads(out.read_text()) if out.exists() else {"rows": {}}
    for name in a.datasets.split(","):
        sides = {"qdc": own(a.qdc, a.data, name, a.splits), "pyg": peer(a.data, name, a.splits)}
        mean = {side: 100 * float(np.mean([split["test"] for split in rows])) for side, rows in sides.items()}
        row = {"splits": a.splits, **{side: round(value, 2) for side, value in mean.items()},
               "difference": round(mean["qdc"] - mean["pyg"], 2), "each": sides}
        print(json.dumps({"dataset": name, **{key: row[key] for key in ("splits", "qdc", "pyg", "difference")}}), flush=True)
        recorded["rows"][name] = row
        if not a.quick:  # quick is a trial: what is recorded stays
            recorded.update(settings=SETTINGS, steps=STEPS, patience=PATIENCE)
            out.write_text(json.dumps(recorded, indent=1))


main()
