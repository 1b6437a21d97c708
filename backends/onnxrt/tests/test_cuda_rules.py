"""Graphs as they are lowered for CUDA, computed by the CPU: what differs there has the numbers that it has here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy
import onnx
import onnxruntime
import pytest
import torch
from torch.nn import functional

import fairlead_onnx
from fairlead.backend import Executable, Support
from fairlead.ir import Builder, DType, Graph, Node, TensorType
from fairlead_onnx import lower
from fairlead_onnx.testing import OpCase, check, op_cases
from fairlead_onnxrt import OnnxRuntimeOptions
from fairlead_onnxrt._cuda_session import TO_SPLIT
from fairlead_onnxrt._cuda_target import CUDA_TARGET
from fairlead_onnxrt._executable import SessionExecutable

HALVES = frozenset({DType.f16, DType.bf16})
WIDE = msgspec.structs.replace(CUDA_TARGET, kernels={op: types - HALVES for op, types in CUDA_TARGET.kernels.items()})
"""The target without the kernels that the CPU has not: products of halves."""


class Lowered:
    """Lowers for CUDA and runs on the CPU."""

    name = "lowered for CUDA"
    options_type = OnnxRuntimeOptions

    def supports(self, node: Node) -> Support:
        return fairlead_onnx.supports(node, target=WIDE)

    def compile(self, graph: Graph, options: OnnxRuntimeOptions, constants: Mapping[int, torch.Tensor]) -> Executable:
        return SessionExecutable(graph, options, constants, lower(graph, target=WIDE).file())


OTHERWISE = (
    "sum",
    "arg",
    "amax",
    "max.dim",
    "max.default",
    "softplus",
    "index",
    "embedding",
    "gather",
    "scatter",
    "nll",
)
"""What the rules write differently for CUDA, or check."""

CASES = [case for case in op_cases() if case.op.removeprefix("aten.").startswith(OTHERWISE)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_op_agrees_with_eager_or_is_declined_with_a_known_reason(case: OpCase) -> None:
    declined = check([case], Lowered())  # type: ignore[arg-type]
    assert all(reason.startswith("ONNX Runtime on CUDA ") for reason in declined.values())


def one_node(op: str, *args: Any) -> Graph:
    """Strings are the types of inputs."""
    b = Builder("g")

    def given(arg: Any) -> Any:
        return b.input(arg) if isinstance(arg, str) else tuple(map(given, arg)) if isinstance(arg, tuple) else arg

    b.output(b.op(op, *map(given, args)))
    return b.graph()


@pytest.mark.parametrize("place", [-5, -4, 3, 4])
@pytest.mark.parametrize(
    ("op", "args", "first"),
    [
        ("aten.index_select.default", ("f32[4, 2]", 0, "i64[3]"), 0),
        ("aten.embedding.default", ("f32[4, 2]", "i64[3]", -1, False, False), 0),
        ("aten.gather.default", ("f32[4, 3]", 0, "i64[1, 3]", False), 0),
        ("aten.scatter.value", ("f32[4, 3]", 0, "i64[1, 3]", 1.0), 0),
        ("aten.index.Tensor", ("f32[4, 2]", ("i64[3]",)), -4),
    ],
)
def test_a_result_of_the_model_says_whether_indices_are_in_range(
    op: str, args: tuple[Any, ...], first: int, place: int
) -> None:
    graph = one_node(op, *args)
    file = fairlead_onnx.ModelFile.from_bytes(lower(graph, target=CUDA_TARGET).file().to_bytes())
    assert file.check is not None
    at = numpy.resize(numpy.array([0, 3, place], numpy.int64), graph.inputs[1].value.tensor.shape)
    (held,) = onnxruntime.InferenceSession(alone(file.model, file.check)).run(None, {file.inputs[1]: at})
    assert bool(held) is (first <= place < 4)


def alone(model: bytes, result: str) -> bytes:
    """The model of one result, without what the CPU would ask of the indices."""
    found = onnx.ModelProto.FromString(model)
    wanted, nodes = {result}, []
    for node in reversed(found.graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            nodes.append(node)
    kept = onnx.GraphProto(name="alone", node=nodes[::-1], initializer=found.graph.initializer)
    kept.input.extend(i for i in found.graph.input if i.name in wanted)
    kept.output.extend(o for o in found.graph.output if o.name == result)
    found.graph.CopyFrom(kept)
    data: bytes = found.SerializeToString()
    return data


def test_a_graph_without_indices_is_not_checked() -> None:
    assert lower(one_node("aten.exp.default", "f32[4]"), target=CUDA_TARGET).check is None


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_products_of_halves_are_halves_and_the_rest_is_f32(dtype: str) -> None:
    b = Builder("g")
    b.output(b.op("aten.relu.default", b.op("aten.mm.default", b.input(f"{dtype}[2, 3]"), b.input(f"{dtype}[3, 4]"))))
    text = lower(b.graph(), target=CUDA_TARGET).file().text()
    (product,) = [line for line in text.splitlines() if "MatMul" in line]
    assert product.endswith("= MatMul (in0, in1)")
    assert sum("Cast" in line for line in text.splitlines()) == 2  # of its result, and of the output


ATTENTION = {
    "aten._scaled_dot_product_efficient_attention.default": (None, False, 0.0, True, 0.5),
    "aten._scaled_dot_product_flash_attention.default": (0.0, True, False, 0.5),
    "aten._scaled_dot_product_cudnn_attention.default": (None, False, 0.0, True, False, 0.5),
}


@pytest.mark.parametrize("op", ATTENTION)
def test_attention_as_torch_captures_it_on_cuda_is_attention(op: str) -> None:
    b = Builder("g")
    values = [b.input("f32[2, 3, 5, 8]") for _ in range(3)]
    first = TensorType(DType.f32, (2, 3, 5, 8))
    b.output(b.op(op, *values, *ATTENTION[op], to=first))
    q, k, v = (torch.randn(2, 3, 5, 8) for _ in range(3))
    wanted = functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)
    (got,) = Lowered().compile(b.graph(), OnnxRuntimeOptions(), {})([q, k, v])
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def test_sums_of_64_bits_keep_all_of_them_and_wrap() -> None:
    graph = one_node("aten.sum.dim_IntList", "i64[3, 4]", (1,), False, None)
    x = torch.tensor([[2**62 + 1, 2**62, 3, -1], [-(2**63), 2**40 + 1, -5, 7], [2**53 + 1, 1, 0, -(2**53)]])
    (got,) = Lowered().compile(graph, OnnxRuntimeOptions(), {})([x])
    assert torch.equal(got, x.sum(1))


@pytest.mark.parametrize("descending", [False, True])
def test_what_is_not_finite_is_ranked_away_from_the_ends_of_the_range(descending: bool) -> None:
    x = torch.tensor([3.0, torch.nan, -torch.inf, torch.inf, -1.0, torch.finfo(torch.float32).max])
    b = Builder("g")
    for result in b.ops("aten.sort.default", b.input("f32[6]"), 0, descending):
        b.output(result)
    values, places = Lowered().compile(b.graph(), OnnxRuntimeOptions(), {})([x])
    wanted = x.sort(descending=descending)
    torch.testing.assert_close(values, wanted[0], equal_nan=True)
    assert torch.equal(places, wanted[1])
    assert "double" in lower(b.graph(), target=CUDA_TARGET).file().text()


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3)])
def test_parts_are_slices_and_stay_that(sizes: tuple[int, int], tmp_path: Path) -> None:
    b = Builder("g")
    for part in b.ops("aten.split_with_sizes.default", b.op("aten.exp.default", b.input("f32[4]")), sizes, 0):
        b.output(b.op("aten.neg.default", part))
    model = lower(b.graph(), target=CUDA_TARGET).file().model
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.optimized_model_filepath = str(tmp_path / "model.onnx")
    onnxruntime.InferenceSession(model, settings, disabled_optimizers=[TO_SPLIT])
    ops = [node.op_type for node in onnx.load(settings.optimized_model_filepath).graph.node]
    assert (ops.count("Slice"), ops.count("Split")) == (2, 0)


def test_so_many_tensors_as_are_not_joined_are_declined() -> None:
    for count, accepted in ((32, True), (33, False)):
        b = Builder("g")
        b.output(b.op("aten.cat.default", tuple(b.input("f32[2]") for _ in range(count)), 0))
        assert Lowered().supports(b.graph().nodes[0]).accepted is accepted


def test_a_sum_in_a_short_integer_wraps() -> None:
    b = Builder("g")
    b.output(b.op("aten.sum.dim_IntList", b.input("i32[2]"), (0,), False, DType.i32, to="i32[]"))
    (got,) = Lowered().compile(b.graph(), OnnxRuntimeOptions(), {})([torch.tensor([2**31 - 1, 1], dtype=torch.int32)])
    assert got.item() == -(2**31)


@pytest.mark.parametrize("op", ["aten.sum.dim_IntList", "aten.mean.dim"])
def test_a_sum_along_a_size_that_may_be_0_is_of_one_element_more(op: str) -> None:
    b = Builder("g")
    b.symbol("n", 0)
    b.output(b.op(op, b.input("f32[n, 3]"), (0,), False, None))
    file = lower(b.graph(), target=CUDA_TARGET).file()
    assert "Concat" in file.text()
    run = Lowered().compile(b.graph(), OnnxRuntimeOptions(), {})
    for size in (4, 1, 0):
        x = torch.randn(size, 3)
        wanted = x.sum(0) if "sum" in op else x.mean(0)
        torch.testing.assert_close(run([x])[0], wanted, equal_nan=True)


def test_a_root_mean_square_norm_is_one_kernel() -> None:
    b = Builder("g")
    inputs = b.input("f32[3, 8]"), (8,), b.input("f32[8]"), 1e-6
    (out, _) = b.ops("aten._fused_rms_norm.default", *inputs, to=("f32[3, 8]", None))
    b.output(out)
    graph = b.graph()
    assert "SimplifiedLayerNormalization" in lower(graph, target=CUDA_TARGET).file().text()
    x, weight = torch.randn(3, 8), torch.randn(8)
    (got,) = Lowered().compile(graph, OnnxRuntimeOptions(), {})([x, weight])
    torch.testing.assert_close(got, functional.rms_norm(x, (8,), weight, 1e-6))
