"""The accuracy of PyTorch Geometric's networks and of ours: same layers, hyper-parameters, splits and stopping rule.

Seeds differ, so the means over ten splits agree only statistically: their difference is compared with the standard error
of the difference of the paired splits.

  python accuracy.py DATA [quick] [--datasets cora,texas,chameleon] [--models gcn,gat] [--qdc PROGRAM]
"""
import argparse
import json
import pathlib
import subprocess

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GCNConv

ROOT = pathlib.Path(__file__).resolve().parents[2]
# hidden, heads, dropout, learning rate, weight decay, steps, patience
SETTINGS = {"hidden": 16, "dropout": 0.5, "learning_rate": 0.02, "weight_decay": 5e-3}
STEPS, PATIENCE, HEADS = 200, 30, 4


class Net(torch.nn.Module):
    def __init__(self, model, inputs, classes):
        super().__init__()
        hidden, p = SETTINGS["hidden"], SETTINGS["dropout"]
        self.gcn, self.p = model == "gcn", p
        if self.gcn:
            self.first, self.last = GCNConv(inputs, hidden, cached=True), GCNConv(hidden, classes, cached=True)
        else:
            self.first = GATConv(inputs, hidden, heads=HEADS, dropout=p)
            self.last = GATConv(hidden * HEADS, classes, heads=HEADS, concat=False, dropout=p)

    def forward(self, x, edges):
        x = (F.relu if self.gcn else F.elu)(self.first(F.dropout(x, self.p, self.training), edges))
        return self.last(F.dropout(x, self.p, self.training), edges)


def peer(model, x, edges, y, masks):
    """Test accuracy at the step that was best on validation: higher accuracy, or the same with a lower loss."""
    net = Net(model, x.shape[1], int(y.max()) + 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=SETTINGS["learning_rate"], weight_decay=SETTINGS["weight_decay"])
    train, val, test = masks
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("quick", nargs="?", help="texas only")
    parser.add_argument("--datasets", default="texas,cora,chameleon")
    parser.add_argument("--models", default="gcn,gat")
    parser.add_argument("--qdc", default=ROOT / "target/release/qdc", help="the program")
    a = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in ("texas" if a.quick else a.datasets).split(","):
        data = np.load(f"{a.data}/{name}.npz")
        x = torch.from_numpy(data["node_features"].astype(np.float32))
        y = torch.from_numpy(data["node_labels"].astype(np.int64))
        pairs = data["edges"].astype(np.int64)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        edges = torch.from_numpy(np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0).T.copy())
        for model in a.models.split(","):
            command = [a.qdc, "train", f"{a.data}/{name}.npz", "--model", model, "--json", "--quiet", "--threads", "1",
                       "--max-steps", str(STEPS), "--patience", str(PATIENCE), "--directed", "--symmetrize", "or"]
            settings = dict(SETTINGS, **({"heads": HEADS} if model == "gat" else {}))
            command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
            record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            own = np.array([split["test"] for split in record["splits"]])
            theirs = []
            for split in range(len(own)):
                torch.manual_seed(split)
                masks = [torch.from_numpy(data[k][split].astype(bool)) for k in ("train_masks", "val_masks", "test_masks")]
                theirs.append(peer(model, x, edges, y, masks))
            theirs = np.array(theirs)
            difference = own - theirs
            error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
            row = {"dataset": name, "model": model, "qdc": round(100 * float(own.mean()), 2), "pyg": round(100 * float(theirs.mean()), 2),
                   "difference": round(100 * float(difference.mean()), 2), "standard error": round(100 * error, 2),
                   "within one": bool(abs(difference.mean()) <= max(error, own.std(ddof=1) / np.sqrt(len(own))))}
            rows.append(row)
            print(json.dumps(row), flush=True)
    out = ROOT / "bench/train/results"
    out.mkdir(exist_ok=True)
    (out / "accuracy.json").write_text(json.dumps({"settings": SETTINGS, "steps": STEPS, "patience": PATIENCE, "rows": rows}, indent=1))


main()
