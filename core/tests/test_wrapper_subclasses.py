"""Tensors that are made of others come out of a program as they come out of eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal.two_tensor import TwoTensor

import fairlead

CALLS = 3
"""The first compiles; later ones take the way past AOTAutograd where there is one."""


def two() -> TwoTensor:
    return TwoTensor(torch.ones(2, 3), torch.zeros(2, 3))


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (lambda x: x * 2, two),
        (lambda x: (x.a + 1, x.b), two),
        (lambda x: (x + 1, x.sum()), two),
        (lambda x: TwoTensor(x + 1, x + 2), lambda: torch.ones(2, 3)),
        (lambda x: [x.exp(), {"both": TwoTensor(x, x + 2)}], lambda: torch.ones(2, 3)),
    ],
    ids=["taken and given", "taken", "taken and given with another", "given", "given within"],
)
def test_results_are_of_the_type_that_eager_gives(function: Callable[[Any], Any], made: Callable[[], Tensor]) -> None:
    torch._dynamo.reset()
    compiled = fairlead.compile(function, backend="eager", fallback=())
    with torch.no_grad():
        for _ in range(CALLS):
            compare(compiled(made()), function(made()))


def test_weights_may_be_made_of_others() -> None:
    torch._dynamo.reset()
    layer = torch.nn.Linear(3, 2)
    layer.weight = torch.nn.Parameter(TwoTensor(torch.randn(2, 3), torch.randn(2, 3)))
    compiled = fairlead.compile(layer, backend="eager", fallback=())
    x = torch.randn(4, 3)
    with torch.no_grad():
        for _ in range(CALLS):
            compare(compiled(x), layer(x))


def compare(mine: Any, eagers: Any) -> None:
    found, wanted = (torch.utils._pytree.tree_leaves(tree) for tree in (mine, eagers))
    for each, right in zip(found, wanted, strict=True):
        assert type(each) is type(right)
        if isinstance(right, TwoTensor):
            compare([each.a, each.b], [right.a, right.b])
        else:
            torch.testing.assert_close(each, right)
