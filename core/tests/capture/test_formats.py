"""Complex numbers, small floats and packed weights are captured as they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import fairlead
from fairlead.ir import DType, Graph

from .conftest import Compile

F8 = torch.float8_e4m3fn


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def numbers(*shape: int) -> Tensor:
    return torch.complex(torch.linspace(-1, 1, 12).view(*shape), torch.linspace(2, 1, 12).view(*shape))


COMPLEX: dict[str, Callable[[Tensor], Tensor]] = {
    "conj": lambda z: z.conj() * 2,
    "conj of a view": lambda z: z.t().conj()[1:] + 1j,
    "hermitian": lambda z: z.mH @ z,
    "imaginary part": lambda z: z.conj().imag * 2,
    "fourier": lambda z: torch.fft.ifft(torch.fft.fft(z) * 2j),
    "polar": lambda z: torch.polar(z.abs(), z.angle()) + z.real,
    "rotation": lambda z: torch.view_as_real(torch.view_as_complex(torch.view_as_real(z).contiguous()) * z),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_and_their_gradients_are_eager_s(program: Compile, name: str) -> None:
    function = COMPLEX[name]
    run = program(function)
    results = []
    for call in (run, function):
        z = numbers(3, 4).requires_grad_()
        out = call(z)
        (out.abs() if out.is_complex() else out).square().sum().backward()
        results.append((out.detach().resolve_conj().resolve_neg(), z.grad.resolve_conj()))
    torch.testing.assert_close(*results)
    assert run.recorder.reasons == []


@pytest.mark.parametrize("lazy", [lambda z: z.conj(), lambda z: z.conj().imag, lambda z: z.t().conj()])
def test_a_lazily_conjugated_or_negated_input_is_resolved(program: Compile, lazy: Callable[[Tensor], Tensor]) -> None:
    run = program(lambda z: z * 2 + 1)
    z = lazy(numbers(3, 4))
    torch.testing.assert_close(run(z), z * 2 + 1)
    torch.testing.assert_close(run(z.clone()), z * 2 + 1)


def test_what_is_written_through_a_conjugate_reaches_the_input(program: Compile) -> None:
    def scaled(z: Tensor) -> Tensor:
        z.conj().mul_(2j)
        return z + 1

    run = program(scaled)
    found, expected = numbers(3, 4), numbers(3, 4)
    torch.testing.assert_close(run(found), scaled(expected))
    torch.testing.assert_close(found, expected)


def test_no_op_of_a_graph_makes_a_lazy_tensor(program: Compile) -> None:
    run = program(COMPLEX["hermitian"])
    run(numbers(3, 4))
    assert "aten._conj_physical.default" in ops(run.graph)
    assert "aten._conj.default" not in ops(run.graph)


def scaled_product(x: Tensor, w: Tensor) -> Tensor:
    one = torch.ones(())
    return torch._scaled_mm(x.to(F8), w.to(F8).t(), one, one, out_dtype=torch.bfloat16)


def quarter_bytes(x: Tensor, w: Tensor) -> Tensor:
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(w.abs().mul(4).int(), 1)
    return torch.ops.aten._weight_int4pack_mm_for_cpu(x.bfloat16(), packed, 32, torch.ones(1, 64, 2).bfloat16())


def bytes_with_scales(x: Tensor, w: Tensor) -> Tensor:
    return torch.ops.aten._weight_int8pack_mm(x.bfloat16(), w.mul(4).to(torch.int8), torch.ones(64).bfloat16())


def small_integers(x: Tensor, w: Tensor) -> Tensor:
    return torch._int_mm(x.mul(4).to(torch.int8).repeat(2, 1), w.mul(4).to(torch.int8).t().contiguous())


@pytest.mark.parametrize("name", ["eager", "onnxrt"])
@pytest.mark.parametrize(
    ("function", "op"),
    [
        (scaled_product, "aten._scaled_mm.default"),
        (quarter_bytes, "aten._weight_int4pack_mm_for_cpu.default"),
        (bytes_with_scales, "aten._weight_int8pack_mm.default"),
        (small_integers, "aten._int_mm.default"),
    ],
)
def test_products_of_quantized_weights_are_single_ops(
    function: Callable[[Tensor, Tensor], Tensor], op: str, name: str
) -> None:
    torch._dynamo.reset()
    x, w = torch.linspace(-1, 1, 16 * 32).view(16, 32), torch.linspace(-1, 1, 64 * 32).view(64, 32)
    compiled = fairlead.compile(function, backend=name, fallback=("eager",))
    torch.testing.assert_close(compiled(x, w), function(x, w))
    (graph,) = compiled.fairlead.placement.graphs  # type: ignore[attr-defined]
    assert op in [n.op for n in graph.nodes]
    torch._dynamo.reset()


def test_small_floats_have_types(program: Compile) -> None:
    run = program(lambda x: (x.to(F8).to(torch.float32), x.to(torch.float8_e5m2)))
    x = torch.linspace(-3, 3, 7)
    back, small = run(x)
    assert torch.equal(back, x.to(F8).float())
    assert torch.equal(small.view(torch.uint8), x.to(torch.float8_e5m2).view(torch.uint8))
    assert {v.tensor.dtype for v in run.graph.output_values()} == {DType.f32, DType.f8e5m2}
