"""Ops that torch's own table takes apart with other results than their kernels have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._decomp import get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

from fairlead._capture._decompositions import table

from .conftest import Compile

FAR = [
    -(2**31), -400, -277, -253, -252, -200, -149, -127, -126, -24, -1,
    0, 1, 14, 126, 127, 200, 252, 277, 400, 2**31 - 1,
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.0, -1.9, 1e-45, -3e-39, 1e-30, 1e30, -3e38, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int16], ids=str)
def test_a_number_is_scaled_as_far_as_it_goes(dtype: torch.dtype, kind: torch.dtype, program: Compile) -> None:
    x = torch.tensor(NUMBERS, dtype=dtype)[:, None].repeat(1, len(FAR))
    most = torch.iinfo(kind).max
    exponents = torch.tensor(FAR).clamp(-most, most).to(kind).repeat(len(NUMBERS), 1)
    found = program(torch.ldexp)(x, exponents)
    assert found.dtype is dtype
    torch.testing.assert_close(found, torch.ldexp(x, exponents), rtol=0, atol=0, equal_nan=True)


ACTIVATIONS = {
    "elu": lambda x: nn.functional.elu(x, 0.7),
    "selu": nn.functional.selu,
    "celu": nn.functional.celu,
    "elu in place": lambda x: nn.functional.elu(x * 1.0, 0.7, inplace=True),
    "hardswish": nn.functional.hardswish,
    "hardtanh": nn.functional.hardtanh,
    "relu6": nn.functional.relu6,
    "smooth l1": lambda x: nn.functional.smooth_l1_loss(x, torch.zeros_like(x), reduction="none", beta=0.7),
    "mean of smooth l1": lambda x: nn.functional.smooth_l1_loss(x, torch.zeros_like(x)),
    "sum of l1": lambda x: nn.functional.smooth_l1_loss(x, torch.zeros_like(x), reduction="sum", beta=0.0),
}
PLACES = [0.0, -0.0, 0.3, 0.7, -0.7, 1.0, -1.0, -2.9, 3.0, -3.0, 6.0, 9.0, -40.0, float("inf"), float("-inf")]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_gradients_are_the_kernels_wherever_they_are_taken_and_at_nan(
    function: Callable[[Tensor], Tensor], dtype: torch.dtype, program: Compile
) -> None:
    numbers = torch.tensor([*PLACES, float("nan")], dtype=dtype).repeat_interleave(64)  # none is left over of vectors
    x, y = (numbers.clone().requires_grad_() for _ in range(2))
    for given, run in ((x, function), (y, program(function))):
        out = run(given)
        out.backward(torch.full_like(out, 2.0))
    torch.testing.assert_close(y.grad, x.grad, equal_nan=True)


@pytest.mark.parametrize("name", ["elu_backward", "hardswish_backward", "hardtanh_backward"])
def test_on_other_devices_gradients_of_activations_are_torchs(name: str) -> None:
    op = getattr(torch.ops.aten, name).default
    given = operands(op)
    assert given is not None
    there = [x.to("meta") if isinstance(x, Tensor) else x for x in given]
    ours, torchs, on_a_cpu = (
        [node.target for node in make_fx(op, decomposition_table=rules)(*args).graph.nodes]
        for args, rules in ((there, table()), (there, get_decompositions([op])), (given, table()))
    )
    assert ours == torchs
    assert ours != on_a_cpu


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 2)], ids=str)
def test_weights_of_one_dimension_have_norms_as_others_do(shape: tuple[int, ...], program: Compile) -> None:
    v, g = torch.randn(shape), torch.rand(shape[0], *[1] * (len(shape) - 1)) + 0.5
    for given in ((v, g), (v.bfloat16(), g.bfloat16())):
        found, expected = program(torch._weight_norm)(*given), torch._weight_norm(*given)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("x", "exponent"),
    [
        (torch.arange(5), torch.tensor(2.0, dtype=torch.half)),
        (torch.arange(5), torch.tensor([2.0], dtype=torch.half)),
        (torch.arange(5), torch.tensor(3)),
        (torch.tensor([True]), torch.tensor(2.0, dtype=torch.bfloat16)),
        (torch.tensor([1e-30]), torch.tensor([200.0])),
        (torch.tensor([0.5], dtype=torch.half), torch.tensor([2.0], dtype=torch.float64)),
        (torch.tensor([0.5], dtype=torch.half), torch.tensor(2.0, dtype=torch.float64)),
        (torch.tensor([0.5], dtype=torch.float64), torch.tensor([2])),
        (torch.tensor([1e-30 + 1j]), torch.tensor([20])),
    ],
)
def test_any_other_operands_are_multiplied_in_the_dtype_that_eager_has(
    x: Tensor, exponent: Tensor, program: Compile
) -> None:
    found, expected = program(torch.ldexp)(x, exponent), torch.ldexp(x, exponent)
    assert found.dtype is expected.dtype
    assert torch.equal(found, expected)


EAGERS_OWN = {
    "aten.isin.Scalar_Tensor": "among ten elements or more it compares a Python number in float64",
    "aten.soft_margin_loss_backward.default": "it is NaN where an exponential overflows, and so is not the gradient",
}
"""In what the kernel of an op that is taken apart stands alone."""


def operands(op: torch._ops.OpOverload) -> list[Any] | None:
    """One for each parameter without a default, as plain as its kind is; None where one is of another kind."""
    tensors = iter(torch.meshgrid(*[torch.tensor([*PLACES, float("nan")])] * 3, indexing="ij"))
    plain = {"number": 0.7, "float": 0.7, "bool": False, "int": 0, "SymInt": 0}
    found: list[Any] = []
    for kind in (str(a.type) for a in op._schema.arguments if not a.has_default_value()):
        value = next(tensors, None) if kind == "Tensor" else plain.get(kind)
        if value is None:
            return None
        found.append(value.reshape(-1).clone() if isinstance(value, Tensor) else value)
    return found


def computed(op: torch._ops.OpOverload) -> tuple[list[Any], Any] | None:
    """Such operands and the results of the kernel; None for an op that does not take them, or writes to them."""
    given = None if op._schema.is_mutable else operands(op)
    if not given or not any(isinstance(x, Tensor) for x in given):
        return None
    try:
        return given, op(*given)
    except (RuntimeError, IndexError, NotImplementedError):
        return None


COMPUTED = {str(op): (op, found) for op in table() if (found := computed(op)) and str(op) not in EAGERS_OWN}


@pytest.mark.parametrize(("op", "found"), COMPUTED.values(), ids=COMPUTED)
def test_what_is_taken_apart_is_what_the_kernel_computes_at_edges_infinity_and_nan(op, found) -> None:
    given, expected = found
    parts = make_fx(op, decomposition_table=table(), tracing_mode="fake")(*given)
    assert not any(node.target is op for node in parts.graph.nodes)
    torch.testing.assert_close(parts(*given), expected, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_most_of_what_is_taken_apart_takes_plain_operands() -> None:
    assert len(COMPUTED) >= 90
