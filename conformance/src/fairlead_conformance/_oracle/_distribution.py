"""Whether two tensors of random numbers could have been drawn alike."""

from __future__ import annotations

import math

import torch

__all__ = ["same_distribution"]

CHANCE = 1e-9
"""How often two samples of one distribution may be told apart by mistake."""


def same_distribution(got: torch.Tensor, eager: torch.Tensor) -> str:
    """A sentence where the two-sample test of Kolmogorov and Smirnov tells them apart; empty otherwise.

    Few numbers say little: below about twenty, anything passes that is finite where eager's are.
    """
    if torch.equal(got, eager):
        return ""
    a, b = _flat(got), _flat(eager)
    if bool(a.isnan().any()) != bool(b.isnan().any()):
        return "there are NaNs on one side only"
    if not a.numel():
        return ""
    points = torch.cat([a, b])
    n, m = a.numel(), b.numel()
    below_a = torch.searchsorted(a, points, right=True).double() / n
    below_b = torch.searchsorted(b, points, right=True).double() / m
    apart = float((below_a - below_b).abs().max())
    limit = math.sqrt(-math.log(CHANCE / 2) / 2 * (n + m) / (n * m))
    return (
        f"the numbers are distributed otherwise: apart by {apart:.2f}, where {limit:.2f} is chance"
        if apart > limit
        else ""
    )


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return parts.reshape(-1).double().sort().values
