"""The executable's promises: fresh outputs, any strides, any thread, weights by reference, sizes that change."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch

from fairlead.backend import Executable, Refittable
from fairlead.ir import DimExpr, DType, Graph, Input, Kind, Node, Output, ScalarType, Symbol, TensorType, Value
from fairlead_openvino import backend


def tensor(id_: int, *shape: int | str, dtype: DType = DType.f32) -> Value:
    return Value(id_, TensorType(dtype, shape))


def graph(inputs: list[Value], nodes: list[Node], *outputs: Value, symbols: tuple[Symbol, ...] = ()) -> Graph:
    return Graph(
        "g", Kind.inference, tuple(map(Input, inputs)), tuple(nodes), tuple(Output(o) for o in outputs), symbols
    )


def linear(weight: torch.Tensor | None = None) -> Executable:
    """x @ weight.T on 4 x 8 inputs; the weight is baked in where it is given."""
    x, w, out = tensor(0, 4, 8), tensor(1, 3, 8), tensor(2, 4, 3)
    g = graph([x, w], [Node("aten.linear.default", (x, w, None), (out,))], out)
    return backend.compile(g, backend.options_type(), {} if weight is None else {1: weight})


def test_importing_the_backend_loads_neither_the_sdk_nor_torch() -> None:
    code = "import fairlead_openvino, sys; print({'torch', 'openvino', 'onnx_ir', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_the_probe_names_the_versions_and_a_device() -> None:
    probe = backend.probe()
    assert probe.ok
    assert probe.devices
    assert set(probe.versions) == {"openvino", "onnx-ir"}


def test_a_later_call_does_not_write_into_an_earlier_result() -> None:
    run = linear(torch.randn(3, 8))
    (first,) = run([torch.ones(4, 8)])
    kept = first.clone()
    run([torch.zeros(4, 8)])
    assert run.fresh_outputs
    assert torch.equal(first, kept)


def test_inputs_of_any_strides_are_read_as_they_are() -> None:
    weight = torch.randn(3, 8)
    transposed = torch.randn(8, 4).t()
    (out,) = linear(weight)([transposed])
    torch.testing.assert_close(out, transposed @ weight.t())


def test_a_new_value_behind_the_same_address_is_seen() -> None:
    weight, x = torch.randn(3, 8), torch.ones(4, 8)
    run = linear(weight)
    run([x])
    x.zero_()
    assert torch.equal(run([x])[0], torch.zeros(4, 3))


def test_weights_that_are_passed_are_not_baked() -> None:
    run = linear()
    x, weight = torch.randn(4, 8), torch.randn(3, 8)
    assert run.baked == frozenset()
    torch.testing.assert_close(run([x, weight])[0], x @ weight.t())


def test_refitting_uses_the_new_weights_from_the_next_call_on() -> None:
    run = linear(torch.randn(3, 8))
    x, weight = torch.randn(4, 8), torch.randn(3, 8)
    assert run.baked == frozenset({1})
    assert isinstance(run, Refittable)
    run.refit({1: weight})
    torch.testing.assert_close(run([x])[0], x @ weight.t())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.int64, torch.float32])
def test_a_weight_of_any_element_type_is_baked(dtype: torch.dtype) -> None:
    kind = {torch.bfloat16: DType.bf16, torch.float16: DType.f16, torch.bool: DType.bool}.get(dtype)
    kind = kind or (DType.i64 if dtype is torch.int64 else DType.f32)
    x, w, out = tensor(0, 3, dtype=kind), tensor(1, 3, dtype=kind), tensor(2, 3, dtype=kind)
    g = graph([x, w], [Node("aten.add.Tensor", (x, w, 1), (out,))], out)
    left, right = torch.tensor([0, 1, 1]).to(dtype), torch.tensor([0, 0, 1]).to(dtype)
    (found,) = backend.compile(g, backend.options_type(), {1: right})([left])
    assert found.dtype is dtype
    assert torch.equal(found, left + right)


def test_sizes_may_change_from_call_to_call() -> None:
    x, n = tensor(0, "s", 2), Value(1, ScalarType(DType.i64))
    out = tensor(2, "n", "s", 2)
    node = Node("aten.expand.default", (x, (DimExpr("n"), DimExpr("s"), 2)), (out,))
    symbols = (Symbol("s", 0, None, (0, 0)), Symbol("n", 0, None, (1, None)))
    run = backend.compile(graph([x, n], [node], out, symbols=symbols), backend.options_type(), {})
    for size, count in ((3, 2), (1, 4), (5, 1)):
        given = torch.randn(size, 2)
        assert torch.equal(run([given, count])[0], given.expand(count, size, 2))


def test_an_output_of_no_elements_has_its_shape() -> None:
    x, out = tensor(0, 2, 4), tensor(1, 2, 0)
    run = backend.compile(
        graph([x], [Node("aten.slice.Tensor", (x, 1, 2, 2, 1), (out,))], out), backend.options_type(), {}
    )
    assert run([torch.randn(2, 4)])[0].shape == (2, 0)


def test_threads_do_not_disturb_each_other() -> None:
    weight = torch.randn(3, 8)
    run = linear(weight)
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


def test_a_call_in_inference_mode_leaves_later_calls_alone() -> None:
    run = linear(torch.randn(3, 8))
    x = torch.randn(4, 8)
    with torch.inference_mode():
        (first,) = run([x])
    assert torch.equal(run([x])[0], first)


def test_a_default_device_or_dtype_of_the_caller_does_not_matter() -> None:
    run = linear(torch.randn(3, 8))
    torch.set_default_dtype(torch.float64)
    try:
        assert run([torch.randn(4, 8, dtype=torch.float32)])[0].dtype is torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def wide(op: str, *rest: object, dtype: DType = DType.i64) -> Executable:
    x, out = tensor(0, 2, dtype=DType.i64), tensor(1, 2, dtype=dtype)
    return backend.compile(graph([x], [Node(op, (x, *rest), (out,))], out), backend.options_type(), {})


def test_an_integer_that_the_plugin_would_cut_keeps_all_of_its_digits() -> None:
    run = wide("aten.neg.default")
    assert run([torch.tensor([1, -2])])[0].tolist() == [-1, 2]
    assert run([torch.tensor([1, 2**53 + 1])])[0].tolist() == [-1, -(2**53) - 1]


def test_a_sum_that_the_plugin_would_cut_keeps_all_of_its_digits() -> None:
    x, out = tensor(0, 2, dtype=DType.i64), tensor(1, 2, dtype=DType.i64)
    g = graph([x], [Node("aten.add.Tensor", (x, x, 3), (out,))], out)
    assert backend.compile(g, backend.options_type(), {})([torch.tensor([2**30, 1])])[0].tolist() == [2**32, 4]
    assert wide("aten.add.Tensor", 2**40, 1)([torch.tensor([0, 1])])[0].tolist() == [2**40, 2**40 + 1]


def test_an_integer_is_refused_where_no_other_implementation_has_the_op() -> None:
    x, y = tensor(0, 1, 1, 2, 2), tensor(1, 1, 1, 3, 3)
    n, m = tensor(2, 2, dtype=DType.i64), tensor(3, 2, dtype=DType.i64)
    nodes = [
        Node("aten.convolution.default", (x, x, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1), (y,)),
        Node("aten.neg.default", (n,), (m,)),
    ]
    run = backend.compile(graph([x, n], nodes, y, m), backend.options_type(), {})
    with pytest.raises(OverflowError, match="64-bit integers in 32 bits"):
        run([torch.randn(1, 1, 2, 2), torch.tensor([1, 2**40])])


def test_a_constant_that_the_plugin_would_cut_is_refused() -> None:
    x, w, out = (tensor(i, 2, dtype=DType.i64) for i in range(3))
    g = graph([x, w], [Node("aten.add.Tensor", (x, w, 1), (out,))], out)
    with pytest.raises(OverflowError, match="a constant has one beyond"):
        backend.compile(g, backend.options_type(), {1: torch.tensor([0, 2**40])})


def test_f32_is_not_computed_in_less() -> None:
    weight = torch.randn(3, 8)
    x = torch.randn(4, 8)
    torch.testing.assert_close(linear(weight)([x])[0], x @ weight.t(), rtol=1e-5, atol=1e-5)


def test_large_integers_are_picked_by_two_indices_of_either_sign() -> None:
    x, i, j, out = (Value(k, TensorType(DType.i64, shape)) for k, shape in enumerate([(3, 4, 2), (5,), (5,), (5, 2)]))
    node = Node("aten.index.Tensor", (x, (i, j)), (out,))
    run = backend.compile(graph([x, i, j], [node], out), backend.options_type(), {})
    given = torch.arange(24).view(3, 4, 2) + (1 << 40)
    places = torch.tensor([0, 2, -1, 1, -3]), torch.tensor([3, -4, 0, -1, 2])
    assert torch.equal(run([given, *places])[0], given[places])


def test_quotients_are_rounded_once() -> None:
    x, y, out = tensor(0, 1000), tensor(1, 1000), tensor(2, 1000)
    run = backend.compile(graph([x, y], [Node("aten.div.Tensor", (x, y), (out,))], out), backend.options_type(), {})
    a, b = torch.randn(2, 1000)
    assert torch.equal(run([a, b])[0], a / b)


def test_quotients_of_a_number_are_rounded_once() -> None:
    x, out = tensor(0, 1000), tensor(1, 1000)
    for of in ((x, 5.1), (5.1, x)):
        run = backend.compile(graph([x], [Node("aten.div.Tensor", of, (out,))], out), backend.options_type(), {})
        a = torch.rand(1000) + 1
        left, right = (a.double() if isinstance(v, Value) else torch.tensor(v).double() for v in of)
        assert torch.equal(run([a])[0], (left / right).float())


def test_a_quotient_is_right_where_the_plugin_fuses_it() -> None:
    x, total, out = tensor(0, 3, 4), tensor(1, 3, 1), tensor(2, 3, 1)
    for of in ((total, 7.0), (7.0, total)):
        nodes = [
            Node("aten.sum.dim_IntList", (x, (1,), True, None), (total,)),
            Node("aten.div.Tensor", of, (out,)),
        ]
        given = torch.rand(3, 4) + 1
        (found,) = backend.compile(graph([x], nodes, out), backend.options_type(), {})([given])
        left, right = (given.sum(1, keepdim=True) if isinstance(v, Value) else v for v in of)
        torch.testing.assert_close(found, left / right)


def test_the_magnitude_of_what_is_constant_is_taken() -> None:
    x, index, shifted, size, out = (tensor(i, 3, dtype=DType.i64) for i in range(5))
    nodes = [
        Node("aten.arange.start_step", (0, 3, 1, None, None, None, None), (index,)),
        Node("aten.sub.Tensor", (index, 2, 1), (shifted,)),
        Node("aten.abs.default", (shifted,), (size,)),
        Node("aten.add.Tensor", (size, x, 1), (out,)),
    ]
    run = backend.compile(graph([x], nodes, out), backend.options_type(), {})
    assert run([torch.zeros(3, dtype=torch.int64)])[0].tolist() == [2, 1, 0]


def test_residual_products_do_not_end_the_process_on_one_thread() -> None:
    """OpenVINO's tokenizer dies of two in a row (defects/crash.py): not in this process, if it should again."""
    code = """if True:
        import torch, fairlead
        torch.manual_seed(0)
        layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)) for _ in range(2)
        ).eval().requires_grad_(False)

        def residual(x):
            for layer in layers:
                x = x + layer(x)
            return x

        x = torch.randn(2, 8)
        compiled = fairlead.compile(residual, backend="openvino", options={"threads": 1}, max_fallback=0)
        torch.testing.assert_close(compiled(x), residual(x))
        print("agrees")
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "agrees", result.stderr
