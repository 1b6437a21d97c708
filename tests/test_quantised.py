"""Models that PT2E quantised run in kernels of 8-bit integers, within a step of what torch makes of them.

`tests/quantised/models.py` says what the models are, and made the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers the ops

import fairlead
from fairlead import interpret, ir
from fairlead.registry import registry

FOLDER = Path(__file__).parent / "quantised"
MODELS = ("convnet", "linear")


def compiled(name: str, model: str) -> tuple[Any, ir.Graph, dict[int, torch.Tensor]]:
    """The executable of a model in a backend that takes all of it, its graph and its weights."""
    pytest.importorskip(f"fairlead_{name}")
    file = ir.read(FOLDER / f"{model}.fir")
    held = {i: interpret.tensor_of(data) for i, data in file.constants().items()}
    backend: Any = registry.get(name)
    assert [str(support) for node in file.graph.nodes if not (support := backend.supports(node)).accepted] == []
    return backend.compile(file.graph, backend.options_type(), held), file.graph, held


def one_step(graph: ir.Graph, held: dict[int, torch.Tensor]) -> float:
    """At most how far the result moves where one input of the last layer is quantised to the next number."""
    steps, weights = (
        [node.args for node in graph.nodes if node.op == f"quantized_decomposed.dequantize_{kind}.default"][-1]
        for kind in ("per_tensor", "per_channel")
    )
    scales = next(held[i] for i, given in enumerate(graph.inputs) if given.value == weights[1])
    assert isinstance(steps[1], float)
    return steps[1] * 128 * float(scales.max())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["onnxrt", "openvino"])
def test_a_quantised_model_is_within_a_step_of_torch(name: str, model: str) -> None:
    run, graph, held = compiled(name, model)
    (given,) = (i for i in range(len(graph.inputs)) if i not in held)
    generator = torch.Generator().manual_seed(3)
    x = torch.randn([int(d) for d in graph.inputs[given].value.tensor.shape], generator=generator)
    (expected,) = interpret.run(graph, [held.get(i, x) for i in range(len(graph.inputs))])
    torch.testing.assert_close(run([x])[0], expected, rtol=0.0, atol=one_step(graph, held))


@pytest.mark.parametrize(("model", "op", "count"), [("convnet", "QLinearConv", 2), ("linear", "QGemm", 2)])
def test_onnx_runtime_has_integer_kernels_for_its_products(model: str, op: str, count: int) -> None:
    run, _, _ = compiled("onnxrt", model)
    assert run.readable()["optimized.onnx.txt"].count(f".{op} ") == count


@pytest.mark.parametrize(("model", "layer"), [("convnet", "Convolution"), ("linear", "FullyConnected")])
def test_openvino_has_integer_kernels_where_they_do_not_saturate(model: str, layer: str) -> None:
    run, _, _ = compiled("openvino", model)
    from fairlead_openvino._target import saturates

    kernels = [line.split()[1] for line in run.readable()["steps.txt"].splitlines() if line.startswith(layer)]
    assert kernels
    assert all(kernel.endswith("_I8") is not saturates() for kernel in kernels)


@pytest.mark.parametrize(("low", "high", "zero"), [(0, 255, 128), (-128, 127, 0), (-127, 127, 5), (0, 15, 3)])
@pytest.mark.parametrize("name", ["onnxrt", "openvino"])
def test_fake_quantisation_is_eagers_and_passes_gradients_where_nothing_was_cut(
    name: str, low: int, high: int, zero: int
) -> None:
    """OpenVINO adds the zero point first: what is halfway between two numbers may go to the other one."""
    step = 0.03125

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.fake_quantize_per_tensor_affine(x, step, zero, low, high) * 2

    pytest.importorskip(f"fairlead_{name}")
    x = torch.linspace(-9, 9, 1153).requires_grad_()  # at multiples of half a step, ties among them
    compiled: Any = fairlead.compile(program, backend=name, fallback=())
    got, expected = compiled(x), program(x)
    halfway = (x.detach() / step - 0.5) % 1 == 0
    assert torch.equal(got[~halfway], expected[~halfway])
    assert (got - expected)[halfway].abs().max() <= (2 * step if name == "openvino" else 0)
    (gradient,), (right,) = (torch.autograd.grad(y.sum(), x) for y in (got, expected))
    assert torch.equal(gradient, right)
    assert 0 < right.count_nonzero() < len(right)
