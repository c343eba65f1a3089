"""Muon (https://kellerjordan.github.io/posts/muon) for the matrices of the blocks, AdamW for the rest."""

import torch
from torch import Tensor, nn


def orthogonalize(matrix: Tensor) -> Tensor:
    """The nearest matrix, roughly, whose singular values are all 1: five Newton-Schulz steps."""
    x = (matrix / (matrix.norm() + 1e-7)).bfloat16()
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return (x.T if tall else x).float()


class Optimizer:
    def __init__(self, model: nn.Module, matrix_rate: float = 0.02, other_rate: float = 3e-3):
        self.matrix_rate, self.other_rate = matrix_rate, other_rate
        block_weights = [weight for weight in model.blk.parameters() if weight.ndim == 2]
        self.momenta = {weight: torch.zeros_like(weight) for weight in block_weights}
        others = [weight for weight in model.parameters() if weight not in self.momenta]
        self.adam = torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0)

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """Applies and clears the gradients, at `scale` times the learning rates."""
        for group in self.adam.param_groups:
            group["lr"] = self.other_rate * scale
        self.adam.step()
        self.adam.zero_grad()
        rate = self.matrix_rate * scale
        for weight, momentum in self.momenta.items():
            momentum.mul_(0.95).add_(weight.grad)
            update = orthogonalize(weight.grad + 0.95 * momentum)
            weight.mul_(1 - 0.01 * rate)
            weight.add_(update, alpha=-rate * max(1, weight.shape[0] / weight.shape[1]) ** 0.5)
            weight.grad = None
