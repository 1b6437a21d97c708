"""Gradients of attention, through every backend against float64.

torch's own table of core decompositions takes CPU attention apart into steps whose second result is the weights, where
the backward expects the logsumexp: the forward is right then, and gradients are off by several times their size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import fairlead
from fairlead.interpret import _bfloat16

from .conftest import BACKENDS

ALLOWANCE = 8.0
"""How many times eager's own error a gradient may be off by: docs/accuracy.md, "What is right"."""

LEAVE = ("tvm",)
"""They leave some to others, here to eager: the gradient of shared heads."""

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 4, 9, 13, 8

Case = tuple[list[Tensor], dict[str, Any]]


def cases() -> dict[str, Case]:
    """The tensors that gradients are of, in float32, and the other arguments."""
    torch.manual_seed(3)

    def some(queries: int = QUERIES, heads: int = HEADS) -> Tensor:
        return torch.randn(BATCH, heads, queries, WIDTH).bfloat16().float()  # the same numbers in 16 bits

    seen = torch.rand(BATCH, 1, QUERIES, KEYS) > 0.3
    seen[0, 0, 2] = False  # a query that sees no key
    added = torch.randn(QUERIES, KEYS).bfloat16()

    def square() -> list[Tensor]:
        return [some(), some(), some()]

    def other() -> list[Tensor]:
        return [some(), some(KEYS), some(KEYS)]

    return {
        "plain": (square(), {}),
        "causal": (square(), {"is_causal": True}),
        "scaled": (square(), {"scale": 0.7}),
        "other length": (other(), {}),
        "causal, other length": (other(), {"is_causal": True}),
        "masked": (other(), {"attn_mask": seen}),
        "with a bias": (other(), {"attn_mask": added}),
        "heads that share keys": ([some(), some(heads=2), some(heads=2)], {"enable_gqa": True}),
    }


def attend(given: list[Case]) -> list[Tensor]:
    return [scaled_dot_product_attention(*tensors, **others) for tensors, others in given]


def gradients(function: Callable[[list[Case]], list[Tensor]], dtype: torch.dtype) -> dict[str, list[Tensor]]:
    """Of each case the output, and the gradients of the query, the key and the value."""
    given = {name: cast(case, dtype) for name, case in cases().items()}
    outs = function(list(given.values()))
    leaves = [x for tensors, _ in given.values() for x in tensors]
    coming = [torch.linspace(-1, 2, out.numel()).bfloat16().to(dtype).view_as(out) for out in outs]
    found = iter(torch.autograd.grad(outs, leaves, coming))
    return {name: [out.detach(), *itertools.islice(found, 3)] for name, out in zip(given, outs, strict=True)}


def cast(case: Case, dtype: torch.dtype) -> Case:
    tensors, others = case
    cast = {k: v.to(dtype) if torch.is_tensor(v) and v.is_floating_point() else v for k, v in others.items()}
    return [x.to(dtype).requires_grad_() for x in tensors], cast


def off(found: Tensor, exact: Tensor) -> float:
    """Relative to the size of the whole tensor."""
    return ((found.double() - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", BACKENDS)
def test_gradients_are_as_near_to_float64_as_eagers(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bfloat16, "multiplies_bfloat16", lambda: False)  # or it is left to torch
    program = fairlead.compile(attend, backend=name, fallback="eager", fullgraph=True)
    exact, eager, found = gradients(attend, torch.float64), gradients(attend, dtype), gradients(program, dtype)
    wrong = {}
    for case, tensors in found.items():
        assert [x.dtype for x in tensors] == [dtype] * 4
        mine, its = ([off(*pair) for pair in zip(of[case], exact[case], strict=True)] for of in (found, eager))
        if any(m > ALLOWANCE * e for m, e in zip(mine, its, strict=True)):
            wrong[case] = mine, its
    assert wrong == {}
    assert [graph.kind.value for graph in program.fairlead.placement.graphs] == ["forward", "backward"]
    assert name in LEAVE or program.fairlead.placement.declines == ()
