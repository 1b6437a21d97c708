"""What an executable promises whose weights are in a vendor's session: fresh outputs, any strides, sizes, threads."""

from __future__ import annotations

import threading

import pytest
import torch

from fairlead.backend import Backend, Executable, Refittable
from fairlead.ir import (
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    ScalarType,
    Symbol,
    TensorType,
    Value,
    parse_graph,
)
from fairlead.registry import registry


@pytest.fixture(params=["onnxrt", "openvino", "openxla", "ipex", "tvm"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return registry.ready(request.param)


def tensor(id_: int, *shape: int | str, dtype: DType = DType.f32) -> Value:
    return Value(id_, TensorType(dtype, shape))


def graph(inputs: list[Value], nodes: list[Node], *outputs: Value, symbols: tuple[Symbol, ...] = ()) -> Graph:
    return Graph(
        "g", Kind.inference, tuple(map(Input, inputs)), tuple(nodes), tuple(Output(o) for o in outputs), symbols
    )


def linear(backend: Backend, weight: torch.Tensor | None = None) -> Executable:
    """x @ weight.T on 4 x 8 inputs; the weight is baked in where it is given."""
    x, w, out = tensor(0, 4, 8), tensor(1, 3, 8), tensor(2, 4, 3)
    g = graph([x, w], [Node("aten.linear.default", (x, w, None), (out,))], out)
    return backend.compile(g, backend.options_type(), {} if weight is None else {1: weight})


def test_a_later_call_does_not_write_into_an_earlier_result(backend: Backend) -> None:
    run = linear(backend, torch.randn(3, 8))
    (first,) = run([torch.ones(4, 8)])
    kept = first.clone()
    run([torch.zeros(4, 8)])
    assert run.fresh_outputs
    assert torch.equal(first, kept)


def test_inputs_of_any_strides_are_read_as_they_are(backend: Backend) -> None:
    weight = torch.randn(3, 8)
    transposed = torch.randn(8, 4).t()
    (out,) = linear(backend, weight)([transposed])
    torch.testing.assert_close(out, transposed @ weight.t())


def test_a_new_value_behind_the_same_address_is_seen(backend: Backend) -> None:
    weight, x = torch.randn(3, 8), torch.ones(4, 8)
    run = linear(backend, weight)
    run([x])
    x.zero_()
    assert torch.equal(run([x])[0], torch.zeros(4, 3))


def test_weights_that_are_passed_are_not_baked(backend: Backend) -> None:
    run = linear(backend)
    x, weight = torch.randn(4, 8), torch.randn(3, 8)
    assert run.baked == frozenset()
    torch.testing.assert_close(run([x, weight])[0], x @ weight.t())


def test_refitting_uses_the_new_weights_from_the_next_call_on(backend: Backend) -> None:
    run = linear(backend, torch.randn(3, 8))
    x, weight = torch.randn(4, 8), torch.randn(3, 8)
    assert run.baked == frozenset({1})
    assert isinstance(run, Refittable)
    run.refit({1: weight})
    torch.testing.assert_close(run([x])[0], x @ weight.t())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.int64, torch.float32])
def test_a_weight_of_any_element_type_is_baked(backend: Backend, dtype: torch.dtype) -> None:
    kind = {torch.bfloat16: DType.bf16, torch.float16: DType.f16, torch.bool: DType.bool}.get(dtype)
    kind = kind or (DType.i64 if dtype is torch.int64 else DType.f32)
    x, w, out = tensor(0, 3, dtype=kind), tensor(1, 3, dtype=kind), tensor(2, 3, dtype=kind)
    g = graph([x, w], [Node("aten.add.Tensor", (x, w, 1), (out,))], out)
    left, right = torch.tensor([0, 1, 1]).to(dtype), torch.tensor([0, 0, 1]).to(dtype)
    (found,) = backend.compile(g, backend.options_type(), {1: right})([left])
    assert found.dtype is dtype
    assert torch.equal(found, left + right)


def test_sizes_may_change_from_call_to_call(backend: Backend) -> None:
    x, n = tensor(0, "s", 2), Value(1, ScalarType(DType.i64))
    out = tensor(2, "n", "s", 2)
    node = Node("aten.expand.default", (x, (DimExpr("n"), DimExpr("s"), 2), False), (out,))
    symbols = (Symbol("s", 0, None, (0, 0)), Symbol("n", 0, None, (1, None)))
    run = backend.compile(graph([x, n], [node], out, symbols=symbols), backend.options_type(), {})
    for size, count in ((3, 2), (1, 4), (5, 1)):
        given = torch.randn(size, 2)
        assert torch.equal(run([given, count])[0], given.expand(count, size, 2))


def test_an_output_of_no_elements_has_its_shape(backend: Backend) -> None:
    x, out = tensor(0, 2, 4), tensor(1, 2, 0)
    run = backend.compile(
        graph([x], [Node("aten.slice.Tensor", (x, 1, 2, 2, 1), (out,))], out), backend.options_type(), {}
    )
    assert run([torch.randn(2, 4)])[0].shape == (2, 0)


@pytest.mark.parametrize("place", [-5, -4, 3, 4])
@pytest.mark.parametrize("count", [3, "n"])
@pytest.mark.parametrize(
    "node",
    [
        "aten.embedding.default(%0, %1, -1, false, false)",
        "aten.index_select.default(%0, 0, %1)",
        "aten.index.Tensor(%0, [%1])",
    ],
)
def test_an_index_out_of_range_is_an_error_where_it_is_one_in_torch(
    backend: Backend, node: str, count: int | str, place: int
) -> None:
    g = parse_graph(
        ("" if count == 3 else "symbol n in [0, inf] from in1.dim0\n")
        + 'graph @g inference {\n  in %0 user "table" : f32[4, 2]\n'
        + f'  in %1 user "places" : i64[{count}]\n  %2 = {node} : f32[{count}, 2]\n  out %2 user\n}}'
    )
    table, right, wrong = torch.randn(4, 2), torch.tensor([0, 3, 1]), torch.tensor([0, 3, place])
    compiled = backend.compile(g, backend.options_type(), {})
    for _ in range(2):
        torch.testing.assert_close(compiled([table, right])[0], table[right])
        if 0 <= place < 4 or (place == -4 and "aten.index." in node):
            torch.testing.assert_close(compiled([table, wrong])[0], table[wrong])
        else:
            with pytest.raises((IndexError, RuntimeError), match=r"ind(ex|ices)"):
                compiled([table, wrong])


def test_threads_do_not_disturb_each_other(backend: Backend) -> None:
    weight = torch.randn(3, 8)
    run = linear(backend, weight)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = torch.full((4, 8), float(seed))
        expected = x @ weight.t()
        wrong.extend(seed for _ in range(200) if not torch.allclose(run([x])[0], expected, atol=1e-4))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_call_in_inference_mode_leaves_later_calls_alone(backend: Backend) -> None:
    run = linear(backend, torch.randn(3, 8))
    x = torch.randn(4, 8)
    with torch.inference_mode():
        (first,) = run([x])
    assert torch.equal(run([x])[0], first)


def test_a_default_device_or_dtype_of_the_caller_does_not_matter(backend: Backend) -> None:
    run = linear(backend, torch.randn(3, 8))
    torch.set_default_dtype(torch.float64)
    try:
        assert run([torch.randn(4, 8, dtype=torch.float32)])[0].dtype is torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
