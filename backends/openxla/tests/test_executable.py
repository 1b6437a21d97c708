"""What XLA's executable promises beyond tests/test_executables.py: sizes, errors, layouts, the user's jax."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import jax
import pytest
import torch

from fairlead import interpret
from fairlead.backend import Executable
from fairlead.ir import Builder, DType, Graph, Input, Kind, Node, Output, Symbol, TensorType, Token, Value
from fairlead_openxla import OpenXLAOptions, backend
from fairlead_openxla._lower import Written, compile_written
from fairlead_openxla._memory import by_the_public_way
from fairlead_openxla._releases import wide_types
from fairlead_openxla._settings import calling


def tensor(id_: int, *shape: int | str, dtype: DType = DType.f32) -> Value:
    return Value(id_, TensorType(dtype, shape))


def graph(inputs: list[Value], nodes: list[Node], *outputs: Value, symbols: tuple[Symbol, ...] = ()) -> Graph:
    return Graph(
        "g", Kind.inference, tuple(map(Input, inputs)), tuple(nodes), tuple(Output(o) for o in outputs), symbols
    )


def of_any_length(options: OpenXLAOptions | None = None) -> Executable:
    x, out = tensor(0, "s"), tensor(1, "s")
    g = graph([x], [Node("aten.neg.default", (x,), (out,))], out, symbols=(Symbol("s", 0, None, (0, 0)),))
    return backend.compile(g, options or OpenXLAOptions(), {})


def embedding() -> Executable:
    weight, at, out = tensor(0, 4, 2), tensor(1, 3, dtype=DType.i64), tensor(2, 3, 2)
    node = Node("aten.embedding.default", (weight, at, -1, False, False), (out,))
    return backend.compile(graph([weight, at], [node], out), OpenXLAOptions(), {})


def test_importing_the_backend_loads_neither_jax_nor_torch() -> None:
    code = "import fairlead_openxla, sys; print({'torch', 'jax', 'jaxlib', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_the_probe_names_the_versions_and_a_device() -> None:
    probe = backend.probe()
    assert probe.ok
    assert probe.devices == ("cpu",)
    assert set(probe.versions) == {"jax", "jaxlib"}


def test_the_probe_does_not_import_jax() -> None:
    code = "import sys; from fairlead_openxla import backend; backend.probe(); print('jax' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_one_more_set_of_sizes_than_allowed_is_an_error_that_says_what_to_do() -> None:
    run = of_any_length(OpenXLAOptions(executables=2))
    for size in (1, 2, 1, 2):
        assert torch.equal(run([torch.ones(size)])[0], -torch.ones(size))
    with pytest.raises(RuntimeError, match="s=3 would be one more") as caught:
        run([torch.ones(3)])
    what, where, what_next = str(caught.value).splitlines()
    assert "2 sets" in what
    assert where.startswith("  from: ")
    assert '{"executables": 4}' in what_next
    assert torch.equal(run([torch.ones(2)])[0], -torch.ones(2))


@pytest.mark.parametrize("index", [4, -1])
def test_an_index_that_is_out_of_range_is_an_error(index: int) -> None:
    run, weight = embedding(), torch.randn(4, 2)
    with pytest.raises(IndexError, match=r"out of range for 4 elements in aten\.embedding"):
        run([weight, torch.tensor([0, index, 1])])
    assert torch.equal(run([weight, torch.tensor([3, 0, 0])])[0], weight[[3, 0, 0]])


def test_of_several_tables_the_one_that_has_no_such_row_is_named() -> None:
    """Indices of one shape are looked at in one loop, and none of them may be."""
    b = Builder()
    tables = [b.input(f"f32[{rows}, 2]") for rows in (4, 6, 5)]
    places = [b.input(f"i64[{count}]") for count in (3, 3, 0)]
    rows = [b.op("aten.index.Tensor", table, (at,)) for table, at in zip(tables, places, strict=True)]
    b.output(b.op("aten.cat.default", tuple(rows), 0))
    run = backend.compile(b.graph(), OpenXLAOptions(), {})
    given, none = [torch.randn(rows, 2) for rows in (4, 6, 5)], torch.tensor([], dtype=torch.int64)
    first, second = torch.tensor([3, 0, -4]), torch.tensor([5, -6, 1])
    assert torch.equal(run([*given, first, second, none])[0], torch.cat([given[0][first], given[1][second]]))
    with pytest.raises(IndexError, match="out of range for 6 elements"):
        run([*given, first, second + 1, none])
    with pytest.raises(IndexError, match="out of range for 4 elements"):
        run([*given, first + 1, second, none])


def test_an_integer_that_is_divided_by_zero_is_an_error() -> None:
    x, y, out = (tensor(i, 2, dtype=DType.i64) for i in range(3))
    node = Node("aten.div.Tensor_mode", (x, y, "floor"), (out,))
    run = backend.compile(graph([x, y], [node], out), OpenXLAOptions(), {})
    assert run([torch.tensor([7, -7]), torch.tensor([2, 2])])[0].tolist() == [3, -4]
    with pytest.raises(ZeroDivisionError, match="divided by zero"):
        run([torch.tensor([7, 7]), torch.tensor([2, 0])])


def test_a_dimension_that_is_not_there_is_an_error() -> None:
    x, out = tensor(0, 2, 3), tensor(1, 2, 3)
    g = graph([x], [Node("aten._softmax.default", (x, 7, False), (out,))], out)
    with pytest.raises(IndexError, match="no dimension 7 of 2"):
        backend.compile(g, OpenXLAOptions(), {})


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_memory_of_any_alignment_is_read(offset: int) -> None:
    x = torch.randn(64)[offset : offset + 5]
    assert torch.equal(of_any_length()([x])[0], -x)


def test_the_public_way_into_memory_is_right_too() -> None:
    given = torch.tensor([1, 2**40])
    with calling():
        array = by_the_public_way(given)
        assert array.dtype == "int64"
        assert array.tolist() == [1, 2**40]


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)])
@pytest.mark.parametrize("shape", [(5, 3, 1, 1), (1, 4, 1, 2), (0, 1, 2, 1), (1, 1, 1, 1)])
def test_dimensions_of_one_may_have_any_stride(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    given = torch.randn(shape).permute(order)
    x, out = tensor(0, *given.shape), tensor(1, *given.shape)
    run = backend.compile(graph([x], [Node("aten.neg.default", (x,), (out,))], out), OpenXLAOptions(), {})
    assert torch.equal(run([given])[0], -given)


def test_a_result_that_is_an_input_is_a_copy_of_it() -> None:
    x, same, viewed = tensor(0, 4), tensor(1, 4), tensor(2, 2, 2)
    nodes = [Node("aten.clone.default", (x, None), (same,)), Node("aten.view.default", (x, (2, 2)), (viewed,))]
    given = torch.arange(4.0)
    found = backend.compile(graph([x], nodes, same, viewed), OpenXLAOptions(), {})([given])
    given.fill_(9)
    found[0].add_(1)
    assert found[0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert found[1].tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_a_result_outlives_its_executable_and_its_inputs() -> None:
    run = of_any_length()
    (found,) = run([torch.full((1000,), 2.0)])
    del run
    assert torch.equal(found, torch.full((1000,), -2.0))


def convolution(*, baked: bool, twice: bool = False) -> tuple[Executable, list[torch.Tensor]]:
    x, w, y, z = tensor(0, 1, 3, 6, 6), tensor(1, 4, 3, 3, 3), tensor(2, 1, 4, 6, 6), tensor(3, 4, 3, 3, 3)
    settings: tuple[Any, ...] = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    nodes = [Node("aten.convolution.default", (x, w, None, *settings), (y,))]
    if twice:
        nodes.append(Node("aten.neg.default", (w,), (z,)))
    weight = torch.randn(4, 3, 3, 3)
    g = graph([x, w], nodes, *((y, z) if twice else (y,)))
    return backend.compile(g, OpenXLAOptions(), {1: weight} if baked else {}), [weight]


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("baked", [False, True])
def test_a_convolution_reads_its_weight_however_it_was_placed(baked: bool, twice: bool) -> None:
    run, weights = convolution(baked=baked, twice=twice)
    x = torch.randn(1, 3, 6, 6)
    found = run([x] if baked else [x, *weights])
    torch.testing.assert_close(found[0], torch.conv2d(x, weights[0], None, 1, 1), rtol=1e-5, atol=1e-5)
    assert not twice or torch.equal(found[1], -weights[0])


def test_a_new_weight_of_a_convolution_is_laid_out_anew() -> None:
    run, _ = convolution(baked=True)
    weight, x = torch.randn(4, 3, 3, 3), torch.randn(1, 3, 6, 6)
    run.refit({1: weight})  # type: ignore[attr-defined]
    torch.testing.assert_close(run([x])[0], torch.conv2d(x, weight, None, 1, 1), rtol=1e-5, atol=1e-5)


def tied_embedding(weight: torch.Tensor) -> Executable:
    """Rows of a weight, and their products with all of its rows."""
    rows, width = weight.shape
    at, w, found, out = tensor(0, 5, dtype=DType.i64), tensor(1, rows, width), tensor(2, 5, width), tensor(3, 5, rows)
    nodes = [
        Node("aten.embedding.default", (w, at, -1, False, False), (found,)),
        Node("aten.linear.default", (found, w, None), (out,)),
    ]
    return backend.compile(graph([at, w], nodes, out), OpenXLAOptions(), {1: weight})


@pytest.mark.parametrize("rows", [1, 384, 385, 1000])
def test_a_weight_is_placed_in_each_layout_in_which_it_is_read(rows: int) -> None:
    first, second = torch.randn(2, rows, 24)
    at = torch.arange(5) % rows
    run = tied_embedding(first)
    torch.testing.assert_close(run([at])[0], first[at] @ first.T)
    run.refit({1: second})  # type: ignore[attr-defined]
    torch.testing.assert_close(run([at])[0], second[at] @ second.T)


@pytest.mark.parametrize("baked", [False, True])
@pytest.mark.parametrize("op", ["mm", "addmm", "linear"])
def test_a_product_reads_its_weight_however_it_was_placed(op: str, baked: bool) -> None:
    shape = (900, 24) if op == "linear" else (24, 900)
    x, weight, bias = given = torch.randn(3, 24), torch.randn(shape), torch.randn(900)
    a, b, c, out = tensor(0, 3, 24), tensor(1, *shape), tensor(2, 900), tensor(3, 3, 900)
    arguments: dict[str, tuple[Any, ...]] = {"mm": (a, b), "addmm": (c, a, b, 1, 1), "linear": (a, b, c)}
    g = graph([a, b, c], [Node(f"aten.{op}.default", arguments[op], (out,))], out)
    run = backend.compile(g, OpenXLAOptions(), {1: weight} if baked else {})
    expected = x @ (weight.T if op == "linear" else weight) + (0 if op == "mm" else bias)
    found = run([t for i, t in enumerate(given) if not (baked and i == 1)])
    torch.testing.assert_close(found[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("strides", [(1, 5), (4, 1)])
def test_an_input_is_read_whatever_strides_it_was_declared_with(strides: tuple[int, int]) -> None:
    x, out = Value(0, TensorType(DType.f32, (5, 4), strides)), tensor(1, 5, 4)
    run = backend.compile(graph([x], [Node("aten.neg.default", (x,), (out,))], out), OpenXLAOptions(), {})
    for given in (torch.randn(5, 4), torch.randn(4, 5).T, torch.randn(5, 8)[:, ::2]):
        assert torch.equal(run([given])[0], -given)


@pytest.mark.parametrize("is_transpose", [False, True])
@pytest.mark.parametrize("baked", [False, True])
@pytest.mark.parametrize("rows", [1, 20, 700])
def test_the_transpose_of_a_matrix_is_a_factor(rows: int, baked: bool, is_transpose: bool) -> None:
    x, weight = torch.randn(rows, 24), torch.randn(24, 1024).T if is_transpose else torch.randn(1024, 24)
    w = Value(1, TensorType(DType.f32, (1024, 24), tuple(weight.stride())))
    a, turned, first, second = tensor(0, rows, 24), tensor(2, 24, 1024), tensor(3, rows, 1024), tensor(4, rows, 24)
    nodes = [
        Node("aten.permute.default", (w, (1, 0)), (turned,)),
        Node("aten.mm.default", (a, turned), (first,)),
        Node("aten.mm.default", (first, w), (second,)),
    ]
    run = backend.compile(graph([a, w], nodes, first, second), OpenXLAOptions(), {1: weight} if baked else {})
    found = run([x] if baked else [x, weight])
    torch.testing.assert_close(found[0], x @ weight.T, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(found[1], x @ weight.T @ weight, rtol=1e-5, atol=1e-2)


def test_the_users_configuration_of_jax_stays_and_changes_nothing() -> None:
    x, out = tensor(0, 2, dtype=DType.i64), tensor(1, 2, dtype=DType.i64)
    g = graph([x], [Node("aten.add.Tensor", (x, 1, 1), (out,))], out)
    with wide_types(False), jax.debug_nans(True), jax.numpy_rank_promotion("raise"), jax.disable_jit(True):
        assert backend.compile(g, OpenXLAOptions(), {})([torch.tensor([2**40, 1])])[0].tolist() == [2**40 + 1, 2]
        assert jax.numpy.arange(2).dtype == "int32"
        assert jax.config.jax_debug_nans


def test_a_constant_is_not_taken_together_with_the_next() -> None:
    x, y, z = (tensor(i, 3) for i in range(3))
    nodes = [Node("aten.add.Tensor", (x, 1e8, 1), (y,)), Node("aten.sub.Tensor", (y, 1e8, 1), (z,))]
    given = torch.tensor([1.0, 2.3, 7.1])
    assert torch.equal(backend.compile(graph([x], nodes, z), OpenXLAOptions(), {})([given])[0], given + 1e8 - 1e8)


@pytest.mark.parametrize("divisor", [3.0, torch.tensor(3.0), torch.tensor([3.0]), torch.full((2, 1), 3.0)])
def test_a_quotient_is_rounded_once(divisor: float | torch.Tensor) -> None:
    x, out = tensor(0, 2, 250), tensor(1, 2, 250)
    by = tensor(2, *divisor.shape) if isinstance(divisor, torch.Tensor) else divisor
    inputs = [x, by] if isinstance(by, Value) else [x]
    run = backend.compile(graph(inputs, [Node("aten.div.Tensor", (x, by), (out,))], out), OpenXLAOptions(), {})
    given = torch.randn(2, 250)
    assert torch.equal(run([given, divisor][: len(inputs)])[0], given / divisor)


def test_two_quotients_are_rounded_twice() -> None:
    x, y, z, first, out = (tensor(i, 500) for i in range(5))
    nodes = [Node("aten.div.Tensor", (x, y), (first,)), Node("aten.div.Tensor", (first, z), (out,))]
    a, b, c = torch.randn(3, 500)
    assert torch.equal(backend.compile(graph([x, y, z], nodes, out), OpenXLAOptions(), {})([a, b, c])[0], a / b / c)


def test_a_half_is_rounded_between_two_ops() -> None:
    x, y, z = (tensor(i, 300, dtype=DType.bf16) for i in range(3))
    nodes = [Node("aten.mul.Tensor", (x, 1.37), (y,)), Node("aten.mul.Tensor", (y, 2.71), (z,))]
    given = torch.randn(300).bfloat16()
    assert torch.equal(backend.compile(graph([x], nodes, z), OpenXLAOptions(), {})([given])[0], given * 1.37 * 2.71)


def test_a_number_that_is_nearly_zero_has_the_logarithm_of_zero() -> None:
    x, out = tensor(0, 2), tensor(1, 2)
    run = backend.compile(graph([x], [Node("aten.log.default", (x,), (out,))], out), OpenXLAOptions(), {})
    assert run([torch.tensor([1e-40, 1.0])])[0].tolist() == [-math.inf, 0.0]


@pytest.mark.parametrize("dtype", [DType.i64, DType.i32, DType.u8])
def test_a_float_beyond_an_integer_becomes_what_torch_makes_of_it(dtype: DType) -> None:
    x, out = tensor(0, 7), tensor(1, 7, dtype=dtype)
    node = Node("aten._to_copy.default", (x, Token("dtype", dtype), None, None, None, False, None), (out,))
    given = torch.tensor([math.nan, math.inf, -math.inf, 300.7, -1.5, 1e30, -1e30])
    expected = given.to(interpret.torch_dtype(dtype))
    assert torch.equal(backend.compile(graph([x], [node], out), OpenXLAOptions(), {})([given])[0], expected)


@pytest.mark.parametrize("op", ["gcd", "lcm"])
def test_the_common_divisor_of_the_least_integer_is_found_in_the_end(op: str) -> None:
    x, y, out = (tensor(i, 3, dtype=DType.i32) for i in range(3))
    run = backend.compile(graph([x, y], [Node(f"aten.{op}.default", (x, y), (out,))], out), OpenXLAOptions(), {})
    given = torch.tensor([-(2**31), 12, 0], dtype=torch.int32), torch.tensor([6, -18, 0], dtype=torch.int32)
    assert torch.equal(run(given)[0], getattr(torch, op)(*given))


@pytest.mark.parametrize("dtype", [DType.f32, DType.f64])
@pytest.mark.parametrize("factor", [None, 0.3])
def test_a_product_is_rounded_before_it_is_added(dtype: DType, factor: float | None) -> None:
    x, y, z, first, second, out = (tensor(i, 500, dtype=dtype) for i in range(6))
    by = y if factor is None else factor
    nodes = [
        Node("aten.mul.Tensor", (x, by), (first,)),
        Node("aten.mul.Tensor", (z, by), (second,)),
        Node("aten.sub.Tensor", (first, second, 1), (out,)),
    ]
    a, b, c = torch.randn(3, 500, dtype=interpret.torch_dtype(dtype))
    found = backend.compile(graph([x, y, z], nodes, out), OpenXLAOptions(), {})([a, b, c])[0]
    assert torch.equal(found, a * (b if factor is None else factor) - c * (b if factor is None else factor))


@pytest.mark.parametrize("op", ["sum.dim_IntList", "mean.dim"])
def test_a_sum_is_rounded_once(op: str) -> None:
    x, out = tensor(0, 5, 5, 50), tensor(1)
    g = graph([x], [Node(f"aten.{op}", (x, (0, 1, 2), False, None), (out,))], out)
    given = torch.rand(5, 5, 50, generator=torch.Generator().manual_seed(0))
    exact = given.double().sum() if op.startswith("sum") else given.double().mean()
    assert torch.equal(backend.compile(g, OpenXLAOptions(), {})([given])[0], exact.float())


def test_an_option_that_xla_does_not_know_is_an_error() -> None:
    with pytest.raises(Exception, match="xla_no_such_option"):
        of_any_length(OpenXLAOptions(compiler_options={"xla_no_such_option": True}))([torch.ones(1)])


class _Lowered:
    """Stands for what jax compiles, and keeps the options that it was told."""

    def compile(self, compiler_options: dict[str, Any]) -> None:
        self.told = compiler_options


@pytest.mark.parametrize(("given", "most"), [({}, 16 << 20), ({"xla_multiheap_size_constraint_per_heap": -1}, -1)])
def test_no_piece_of_a_calls_memory_is_so_large_that_the_c_library_gives_it_back(given: Any, most: int) -> None:
    """Glibc maps what has 32 MiB and more anew each time, and each page is faulted in."""
    lowered = _Lowered()
    compile_written(Written(lowered, torch.device("cpu"), ()), OpenXLAOptions(compiler_options=given))
    assert lowered.told["xla_multiheap_size_constraint_per_heap"] == most
