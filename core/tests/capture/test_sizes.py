"""Symbolic sizes as torch writes them and as the IR does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fairlead.ir import Role, Symbol, dims

from .conftest import Compile


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (lambda a, b: a + b, "a + b"),
        (lambda a, b: 2 * a - 1, "2*a - 1"),
        (lambda a, b: a * b + 3, "a*b + 3"),
        (lambda a, b: a**2, "a*a"),
        (lambda a, b: a**3 + a, "a*a*a + a"),
        (lambda a, b: a // 2, "a//2"),
        (lambda a, b: (a + 1) // b, "(a + 1)//b"),
        (lambda a, b: -(-a // 4), "-((-a)//4)"),
        (lambda a, b: a % 7 + 2, "a%7 + 2"),
        (lambda a, b: (a * b) % 5 + 2, "(a*b)%5 + 2"),
        (lambda a, b: (a // 2) % 4 + 2, "(a//2)%4 + 2"),
        (lambda a, b: torch.sym_max(a, b), "max(a, b)"),
        (lambda a, b: torch.sym_min(a, 5) + torch.sym_max(3, b), "min(a, 5) + max(b, 3)"),
        (lambda a, b: a * b // 4, "(a*b)//4"),
        (lambda a, b: a - 2 + b - a, "b - 2"),
    ],
)
def test_a_size_is_an_expression_over_symbols(program: Compile, size: Callable[[int, int], int], expected: str) -> None:
    def f(x: Tensor) -> Tensor:
        return x.new_zeros(size(*x.shape))

    run = program(f, dynamic=True)
    for shape in ((60, 9), (54, 7)):
        assert run(torch.ones(shape)).shape == (size(*shape),)
    (captured,) = run.graph.output_values()
    x = next(i.value.tensor.shape for i in run.graph.inputs if i.role is Role.user)
    names = dict(zip(map(str, x), "ab", strict=True))
    assert dims.rename(captured.tensor.shape[0], names) == dims.normalize(expected)


def test_a_symbol_knows_its_range_and_where_it_is_read_from(program: Compile) -> None:
    run = program(lambda x: x * 2)
    x = torch.ones(6, 3)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
    run(x)
    (symbol,) = run.graph.symbols
    assert (symbol.lo, symbol.hi, symbol.source) == (2, 64, (0, None))
    assert [(i.role, i.name) for i in run.graph.inputs] == [(Role.symbol, symbol.name), (Role.user, "L['x']")]


def test_an_unbounded_symbol_has_no_upper_end(program: Compile) -> None:
    run = program(lambda x: x * 2, dynamic=True)
    run(torch.ones(6, 3))
    assert [(s.lo, s.hi) for s in run.graph.symbols] == [(2, None), (2, None)]


def test_one_symbol_stands_for_sizes_that_have_to_be_equal(program: Compile) -> None:
    run = program(lambda x, y: x + y, dynamic=True)
    run(torch.ones(6, 3), torch.ones(6, 3))
    assert len(run.graph.symbols) == 2


def test_a_graph_without_symbolic_sizes_has_no_symbols(program: Compile) -> None:
    run = program(lambda x: x * 2, dynamic=False)
    run(torch.ones(6, 3))
    assert run.graph.symbols == ()


def test_an_integer_argument_is_a_symbol(program: Compile) -> None:
    run = program(lambda x, n: x * n, dynamic=True)
    x = torch.arange(3.0)
    assert [run(x, n).tolist() for n in (4, 7)] == [[0.0, 4.0, 8.0], [0.0, 7.0, 14.0]]
    role = {i.role for i in run.graph.inputs if i.value.id == 0}
    assert role == {Role.symbol}


def test_an_integer_argument_may_be_negative(program: Compile) -> None:
    run = program(lambda x, n: x * n, dynamic=True)
    x = torch.arange(3.0)
    assert run(x, -4).tolist() == [0.0, -4.0, -8.0]
    assert sorted(s.lo for s in run.graph.symbols) == [-(2**63), 2]


def test_a_guard_bounds_an_integer_argument_from_above_alone(program: Compile) -> None:
    run = program(lambda x, end: x + torch.arange(0, end, -1), dynamic=True)
    for end in (-4, -7):
        assert run(torch.zeros(1), end).tolist() == [0.0, *range(-1, end, -1)]
    (symbol,) = (s for s in run.graph.symbols if s.source[1] is None)
    assert (symbol.lo, symbol.hi) == (-(2**63), -2)


def test_a_float_argument_is_a_number_of_double_precision(program: Compile) -> None:
    run = program(lambda x, a: x * a + a, dynamic=True)
    x = torch.arange(3.0)
    assert torch.equal(run(x, 2.5), x * 2.5 + 2.5)
    assert torch.equal(run(x, 0.1), x * 0.1 + 0.1)
    assert sorted(str(i.value.tensor.dtype) for i in run.graph.inputs if i.role is Role.user) == ["f32", "f64"]


def test_sizes_that_are_returned_are_expressions(program: Compile) -> None:
    run = program(lambda x: (x.shape[0] * 2, x + 1, 7), dynamic=True)
    assert run(torch.ones(5))[0] == 10
    assert run(torch.ones(6))[0] == 12


def test_the_strides_of_contiguous_tensors_of_symbolic_sizes_are_left_out(program: Compile) -> None:
    run = program(lambda x, w: functional.conv2d(x, w, stride=2, padding=1), dynamic=True)
    run(torch.ones(2, 3, 9, 7), torch.ones(4, 3, 3, 3))
    (out,) = run.graph.output_values()
    assert out.tensor.strides is None
    assert not out.tensor.is_static


def test_the_strides_of_other_tensors_are_expressions(program: Compile) -> None:
    run = program(lambda x: x.t(), dynamic=True)
    run(torch.ones(5, 7))
    (out,) = run.graph.output_values()
    assert out.tensor.strides == (1, out.tensor.shape[0])


def test_training_passes_symbols_on_to_the_backward_graph(program: Compile) -> None:
    run = program(lambda x: (x * x.shape[0]).sin(), dynamic=True)
    for n in (5, 8):
        x = torch.rand(n, 3, requires_grad=True)
        run(x).sum().backward()
        y = x.detach().clone().requires_grad_()
        (y * n).sin().sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    forward, backward = run.graphs
    assert {s.name for s in backward.symbols} <= {s.name for s in forward.symbols}
    assert all(isinstance(s, Symbol) for s in backward.symbols)
    assert backward.symbols
