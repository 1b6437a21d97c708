"""What the IR has no word for is said in a few words, and torch runs it as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing._internal.two_tensor import TwoTensor

from fairlead._capture._types import Uncapturable, type_of

from .conftest import Compile


def in_halves(x: Tensor) -> Tensor:
    return x.to(torch.complex32)


def past_the_view(x: Tensor) -> Tensor:
    return x[1:].as_strided((2,), (1,)) + 1


def scaled(x: Tensor) -> Tensor:
    return x.new_zeros(int(x.shape[0] * 0.5))


def mean_size(x: Tensor) -> Tensor:
    return x * (x.shape[0] / 3)


@pytest.mark.parametrize(
    ("function", "x", "dynamic", "reason"),
    [
        (in_halves, torch.ones(4), None, "the dtype torch.complex32"),
        (past_the_view, torch.arange(4.0), None, "as_strided of a view of an input"),
        (mean_size, torch.ones(4), True, "a symbolic number of type SymFloat"),
    ],
)
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_the_reason_is_a_few_words(
    program: Compile, function: Callable[[Tensor], Tensor], x: Tensor, dynamic: bool | None, reason: str
) -> None:
    run = program(function, dynamic=dynamic)
    assert run(x).tolist() == function(x).tolist()
    assert run.reason == reason


def test_a_size_that_is_no_integer_expression_is_named(program: Compile) -> None:
    run = program(scaled, dynamic=True)
    assert run(torch.ones(10)).shape == (5,)
    assert run.reason.startswith("the symbolic number ")


class Tagged(Tensor):
    """A subclass that says nothing of how it is taken apart."""


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (torch.ones(2).as_subclass(Tagged), "a tensor subclass, Tagged"),
        (torch.eye(3).to_sparse(), "a tensor of layout torch.sparse_coo"),
        (torch.empty(2, dtype=torch.float8_e8m0fnu), "the dtype torch.float8_e8m0fnu"),
    ],
)
def test_a_tensor_that_the_ir_has_no_type_for_is_named(tensor: Tensor, reason: str) -> None:
    with pytest.raises(Uncapturable) as caught:
        type_of(tensor)
    assert str(caught.value) == reason


def test_parameters_have_a_type() -> None:
    assert type_of(torch.nn.Parameter(torch.ones(2, 3).t())).strides == (1, 3)


def test_a_subclass_that_can_be_taken_apart_is_captured_in_parts(program: Compile) -> None:
    run = program(lambda x: x * 2)
    found = run(TwoTensor(torch.ones(3), torch.zeros(3)))
    assert (found.a.tolist(), found.b.tolist()) == ([2.0] * 3, [0.0] * 3)
    assert [n.op for n in run.graph.nodes] == ["aten.mul.Tensor"] * 2


def test_a_size_that_depends_on_data_is_named(program: Compile) -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        run = program(lambda x: x.nonzero() * 2)
        x = torch.tensor([0.0, 1.0, 2.0])
        assert torch.equal(run(x), x.nonzero() * 2)
    assert run.reason == "a check of a number that is known only after data has been computed"
