"""Promises about ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._catalogue import BACKENDS, Section
from ._through import Through

__all__ = ["PROMISES"]

promise = Section("`torch.func`")
PROMISES = promise.promises


IN_EAGER = dict.fromkeys(BACKENDS, "compile the transform instead")


def summed(x: Tensor) -> Tensor:
    return (torch.tanh(x) * x).sum()


def inside(through: Through, transform: Callable[..., Any]) -> None:
    def program(x: Tensor) -> Tensor:
        return transform(summed)(x)

    through.agrees(through.compile(program, fullgraph=True), program, through.randn(3, 4))
    assert through.kinds == ["inference"]


def outside(through: Through, transform: Callable[..., Any]) -> None:
    x = through.randn(3, 4)
    through.close(transform(through.compile(summed))(x), transform(summed)(x))


@promise("`grad` in a program")
def grad_inside(through: Through) -> None:
    inside(through, torch.func.grad)


@promise("`vmap` in a program")
def vmap_inside(through: Through) -> None:
    inside(through, torch.func.vmap)


@promise("`jacrev` in a program")
def jacrev_inside(through: Through) -> None:
    inside(through, torch.func.jacrev)


@promise("`grad` of a compiled function", declined=IN_EAGER)
def grad_outside(through: Through) -> None:
    outside(through, torch.func.grad)


@promise("`vmap` of a compiled function", declined=IN_EAGER)
def vmap_outside(through: Through) -> None:
    outside(through, torch.func.vmap)


@promise("`jacrev` of a compiled function", declined=IN_EAGER)
def jacrev_outside(through: Through) -> None:
    outside(through, torch.func.jacrev)
