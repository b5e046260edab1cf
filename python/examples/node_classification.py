"""PyTorch Geometric's own GCN example before and after QDC.

QDC_DATA=/path/to/datasets python node_classification.py texas cornell
"""

import sys

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import Compose, NormalizeFeatures

import qdc
from qdc.pyg import QDC, Dataset


class GCN(torch.nn.Module):
    def __init__(self, data, classes):
        super().__init__()
        normalize = "edge_weight" not in data  # a kernel is normalised already
        self.conv1 = GCNConv(data.num_features, 16, normalize=normalize)
        self.conv2 = GCNConv(16, classes, normalize=normalize)

    def forward(self, data):
        edges = data.edge_index, data.get("edge_weight")
        x = self.conv1(F.dropout(data.x, training=self.training), *edges).relu()
        return self.conv2(F.dropout(x, training=self.training), *edges)


def test_accuracy(data, classes, split):
    """Test accuracy, in percent, at the step with the best validation accuracy."""
    torch.manual_seed(split)
    model, best = GCN(data, classes), (0.0, 0.0)
    decay = [{"params": model.conv1.parameters(), "weight_decay": 5e-4}, {"params": model.conv2.parameters()}]
    optimizer = torch.optim.Adam(decay, lr=0.01)
    train, validation, test = (mask[:, split] for mask in (data.train_mask, data.val_mask, data.test_mask))
    for _ in range(200):
        optimizer.zero_grad()
        F.cross_entropy(model.train()(data)[train], data.y[train]).backward()
        optimizer.step()
        right = 100 * (model.eval()(data).argmax(dim=1) == data.y).float()
        best = max(best, (right[validation].mean(), right[test].mean()), key=lambda pair: pair[0])
    return best[1]


for name in sys.argv[1:] or ["texas", "cornell"]:
    for rewiring in [], [QDC(mu=0.0, sigma=0.5, sparsify=qdc.TopK(2))]:
        dataset = Dataset(name, pre_transform=Compose([NormalizeFeatures(), *rewiring]))
        scores = torch.tensor([test_accuracy(dataset[0], dataset.num_classes, split) for split in range(10)])
        print(f"{name:10} {scores.mean():.1f} +- {scores.std(correction=0):.1f}  {rewiring or 'plain graph'}")
