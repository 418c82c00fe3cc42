"""Muon, the optimiser of the weight matrices."""

# pyright: reportMissingImports=false
# (torch belongs to the `train` extra only)
from __future__ import annotations

import torch
from torch import Tensor


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised by Newton-Schulz iterations (Jordan et al., 2024); for weight
    matrices.
    """

    def __init__(
        self, params: list[Tensor], lr: float, momentum: float = 0.95, decay: float = 0.01
    ) -> None:
        """Take matrices only."""
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix once."""
        for group in self.param_groups:
            momentum = group["momentum"]
            weights = [weight for weight in group["params"] if weight.grad is not None]
            for weight in weights:
                if "momentum" not in self.state[weight]:
                    self.state[weight]["momentum"] = torch.zeros_like(weight)
            averages = [self.state[weight]["momentum"] for weight in weights]
            gradients = [weight.grad for weight in weights]
            torch._foreach_mul_(averages, momentum)
            torch._foreach_add_(averages, gradients)
            updates = torch._foreach_add(gradients, averages, alpha=momentum)
            torch._foreach_mul_(weights, 1 - group["lr"] * group["decay"])
            shapes: dict[torch.Size, list[int]] = {}
            for k, weight in enumerate(weights):
                shapes.setdefault(weight.shape, []).append(k)
            for shape, members in shapes.items():
                stacked = orthogonal(torch.stack([updates[k] for k in members]).bfloat16())
                rate = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for k, direction in zip(members, stacked, strict=True):
                    weights[k].add_(direction, alpha=-rate)


def orthogonal(x: Tensor, steps: int = 5) -> Tensor:
    """Return roughly the nearest matrices with orthonormal rows or columns, of a bf16 stack of
    matrices.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    flipped = x.shape[1] > x.shape[2]
    if flipped:
        x = x.transpose(1, 2).contiguous()
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(steps):
        gram = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if flipped else x
