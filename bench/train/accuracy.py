"""The accuracy of PyTorch Geometric's networks and of ours: same layers, hyper-parameters, features, splits and stopping rule.

Random numbers cannot be the same on both sides, so each trains every split with several seeds; the accuracies of a split are
averaged over them. The means over the ten splits agree if they differ by no more than one standard error of such a mean.

The peer's side takes most of the time and can be run by itself, on a GPU or elsewhere; results are kept and used again:

  python accuracy.py DATA [quick] [--datasets cora,texas,chameleon] [--models gcn,gat] [--seeds 5] [--qdc PROGRAM]
  python accuracy.py DATA --peer-only FILE.json [--device cuda]     then     python accuracy.py DATA --peer FILE.json
"""
import argparse
import json
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = {"hidden": 16, "dropout": 0.5, "learning_rate": 0.02, "weight_decay": 5e-3}
STEPS, PATIENCE, HEADS = 200, 30, 4


def peer(data, name, model, seeds, device):
    """Test accuracies, splits x seeds, at the step best on validation: higher accuracy, or the same with a lower loss."""
    import torch
    import torch.nn.functional as F
    from torch_geometric.nn import GATConv, GCNConv
    torch.set_num_threads(1)

    class Net(torch.nn.Module):
        def __init__(self, inputs, classes):
            super().__init__()
            hidden, self.p = SETTINGS["hidden"], SETTINGS["dropout"]
            self.gcn = model == "gcn"
            if self.gcn:
                self.first, self.last = GCNConv(inputs, hidden, cached=True), GCNConv(hidden, classes, cached=True)
            else:
                self.first = GATConv(inputs, hidden, heads=HEADS, dropout=self.p)
                self.last = GATConv(hidden * HEADS, classes, heads=HEADS, concat=False, dropout=self.p)

        def forward(self, x, edges):
            x = (F.relu if self.gcn else F.elu)(self.first(F.dropout(x, self.p, self.training), edges))
            return self.last(F.dropout(x, self.p, self.training), edges)

    file = np.load(f"{data}/{name}.npz")
    x = torch.from_numpy(file["node_features"].astype(np.float32)).to(device)
    y = torch.from_numpy(file["node_labels"].astype(np.int64)).to(device)
    pairs = file["edges"].astype(np.int64)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    edges = torch.from_numpy(np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0).T.copy()).to(device)

    def train(split, seed):
        torch.manual_seed(1000 * seed + split)
        train, val, test = (torch.from_numpy(file[k][split].astype(bool)).to(device) for k in ("train_masks", "val_masks", "test_masks"))
        net = Net(x.shape[1], int(y.max()) + 1).to(device)
        optimizer = torch.optim.Adam(net.parameters(), lr=SETTINGS["learning_rate"], weight_decay=SETTINGS["weight_decay"])
        best, since, score = (-1.0, 0.0), 0, 0.0
        for _ in range(STEPS):
            net.train()
            optimizer.zero_grad()
            F.cross_entropy(net(x, edges)[train], y[train]).backward()
            optimizer.step()
            net.eval()
            with torch.no_grad():
                z = net(x, edges)
                hit = z.argmax(1) == y
                now = (hit[val].float().mean().item(), -F.cross_entropy(z[val], y[val]).item())
            since += 1
            if now > best:
                best, since, score = now, 0, hit[test].float().mean().item()
            if since >= PATIENCE:
                break
        return score

    return [[train(split, seed) for seed in range(seeds)] for split in range(len(file["train_masks"]))]


def own(program, data, name, model, seeds):
    """The same from qdc."""
    columns = []
    for seed in range(seeds):
        command = [program, "train", f"{data}/{name}.npz", "--model", model, "--json", "--quiet", "--threads", "1", "--seed", str(seed),
                   "--max-steps", str(STEPS), "--patience", str(PATIENCE), "--directed", "--symmetrize", "or"]
        settings = dict(SETTINGS, **({"heads": HEADS} if model == "gat" else {}))
        command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        columns.append([split["test"] for split in record["splits"]])
    return np.array(columns).T.tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("quick", nargs="?", help="texas only, one seed, nothing recorded")
    parser.add_argument("--datasets", default="texas,cora,chameleon")
    parser.add_argument("--models", default="gcn,gat")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--qdc", default=ROOT / "target/release/qdc", help="the program")
    parser.add_argument("--device", default="cpu", help="of the peer")
    parser.add_argument("--peer", help="take the peer's accuracies from this file where it has them")
    parser.add_argument("--peer-only", help="compute the peer's accuracies only, and write them to this file")
    a = parser.parse_args()
    if a.quick:
        a.datasets, a.seeds = "texas", 1
    known = json.loads(pathlib.Path(a.peer).read_text()) if a.peer else {}
    rows, theirs = [], {}
    for name in a.datasets.split(","):
        for model in a.models.split(","):
            key = f"{name} {model}"
            theirs[key] = known.get(key) or peer(a.data, name, model, a.seeds, a.device)
            if a.peer_only:
                pathlib.Path(a.peer_only).write_text(json.dumps(theirs))
                continue
            mine, other = (np.array(side).mean(axis=1) for side in (own(a.qdc, a.data, name, model, a.seeds), theirs[key]))
            difference = float(mine.mean() - other.mean())
            error = float(other.std(ddof=1) / np.sqrt(len(other)))
            rows.append({"dataset": name, "model": model, "qdc": round(100 * float(mine.mean()), 2), "pyg": round(100 * float(other.mean()), 2),
                         "difference": round(100 * difference, 2), "standard error": round(100 * error, 2), "within one": abs(difference) <= error})
            print(json.dumps(rows[-1]), flush=True)
    if rows and not a.quick:  # quick is a trial: what is recorded stays
        out = ROOT / "bench/train/results"
        out.mkdir(exist_ok=True)
        record = {"settings": SETTINGS, "heads": HEADS, "steps": STEPS, "patience": PATIENCE, "seeds": a.seeds, "rows": rows}
        (out / "accuracy.json").write_text(json.dumps(record, indent=1))


main()
