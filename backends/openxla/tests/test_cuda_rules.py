"""Rules as they are written for CUDA, computed by the CPU: what differs there has the numbers that it has here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import pytest
import torch
from torch.nn import functional

from fairlead.ir import Builder, DType, Graph, Input, Kind, Node, Output, TensorType, Value
from fairlead_openxla import OpenXLAOptions, _settings, backend
from fairlead_openxla._devices import jax_device
from fairlead_openxla._lower import compile_written, write
from fairlead_openxla._memory import exported, imported
from fairlead_openxla._settings import calling

DTYPES = {torch.float32: DType.f32, torch.bfloat16: DType.bf16, torch.int64: DType.i64}
ATTENTION = {
    "aten._scaled_dot_product_efficient_attention.default": (None, False, 0.0, True, 0.5),
    "aten._scaled_dot_product_flash_attention.default": (0.0, True, False, 0.5),
    "aten._scaled_dot_product_cudnn_attention.default": (None, False, 0.0, True, False, 0.5),
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[torch.Tensor]]:
    """Computes one op on these tensors, written for CUDA; the last result is whether its checks hold."""
    cpu = jax_device(torch.device("cpu"))
    monkeypatch.setattr(_settings, "jax_device", lambda device: cpu)

    def computed(op: str, like: torch.Tensor | Sequence[torch.Tensor | None], *args: Any) -> list[torch.Tensor]:
        counter = itertools.count()

        def value(t: torch.Tensor) -> Value:
            return Value(next(counter), TensorType(DTYPES[t.dtype], tuple(t.shape)))

        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        given = [value(t) for t in tensors]
        values = iter(given)
        operands = tuple(next(values) if isinstance(a, torch.Tensor) else a for a in args)
        wanted = [like] if isinstance(like, torch.Tensor) else like
        results = tuple(None if t is None else value(t) for t in wanted)
        outputs = tuple(Output(r) for r in results if r is not None)
        graph = Graph("g", Kind.inference, tuple(map(Input, given)), (Node(op, operands, results),), outputs, ())
        program = compile_written(write(graph, {}, {}, torch.device("cuda", 0)), OpenXLAOptions())
        with calling():
            return [exported(a) for a in jax.block_until_ready(program.run(*map(imported, tensors)))]

    return computed


@pytest.mark.parametrize(("dtype", "rows", "close"), [
    (torch.float32, 5, 1e-5), (torch.bfloat16, 5, 1e-3), (torch.bfloat16, 130, 2e-2),
])  # fmt: skip
@pytest.mark.parametrize("op", ATTENTION)
def test_attention_as_torch_captures_it_on_cuda_is_attention(
    run: Any, op: str, dtype: torch.dtype, rows: int, close: float
) -> None:
    q, k, v = (torch.randn(2, 3, rows, 8, dtype=dtype) for _ in range(3))
    right = functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True, scale=0.5)
    (got,) = run(op, q, q, k, v, *ATTENTION[op])
    torch.testing.assert_close(got.double(), right, rtol=1e-5 if dtype is torch.float32 else 2**-8, atol=close)


def test_a_bias_is_added_and_a_scale_is_the_heads_where_there_is_none(run: Any) -> None:
    q, k, v, bias = (torch.randn(2, 3, 5, n) for n in (8, 8, 8, 5))
    wanted = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    (got,) = run("aten._scaled_dot_product_efficient_attention.default", wanted, q, k, v, bias, False)
    torch.testing.assert_close(got, wanted)


NONE = torch.zeros((), dtype=torch.int64)
"""A seed, where no dropout reads it."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("kind", "forward", "kept", "backward"),
    [
        ("efficient", (True, 0.0, True), (2, 3, 32), lambda q, k, v, out, lse, bias: (
            q, k, v, bias, out, lse, NONE, NONE, 0.0, (True, True, True, False), True)),
        ("flash", (0.0, True, False), (2, 3, 5), lambda q, k, v, out, lse, bias: (
            q, k, v, out, lse, None, None, 5, 5, 0.0, True, NONE, NONE)),
        ("cudnn", (True, 0.0, True, False), (2, 3, 5, 1), lambda q, k, v, out, lse, bias: (
            q, k, v, out, lse, NONE, NONE, bias, None, None, 5, 5, 0.0, True)),
    ],
)  # fmt: skip
def test_gradients_of_attention_are_right_from_what_its_forward_keeps(
    run: Any, kind: str, forward: Any, kept: Any, backward: Any, dtype: torch.dtype
) -> None:
    q, k, v = (torch.randn(2, 3, 5, 125, dtype=dtype).requires_grad_() for _ in range(3))
    bias = None if kind == "flash" else torch.randn(2, 1, 5, 5, dtype=dtype)
    mask = torch.zeros(5, 5).masked_fill(torch.ones(5, 5).triu(1) > 0, -torch.inf) + (0 if bias is None else bias)
    right = functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask.double())
    grad = torch.randn_like(right)
    wanted = torch.autograd.grad(right, (q, k, v), grad)

    op = f"aten._scaled_dot_product_{kind}_attention"
    q, k, v = (x.detach() for x in (q, k, v))
    rest = forward if kind == "flash" else (bias, *forward)
    out, lse, seed = run(f"{op}.default", (q, torch.empty(kept), *([None] * 4), NONE), q, k, v, *rest)
    assert seed == 0
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 3e-2}
    torch.testing.assert_close(out.double(), right, **close)
    got = run(f"{op}_backward.default", (q, k, v), grad.to(dtype), *backward(q, k, v, out, lse, bias))
    for mine, right in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, right, **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_convolution_is_rounded_before_its_bias_is_added_as_by_cudnn(run: Any, dtype: torch.dtype) -> None:
    x, weight, bias = (torch.randn(*s, dtype=dtype) for s in ((2, 6, 9, 9), (4, 3, 3, 3), (4,)))
    wanted = functional.conv2d(x.double(), weight.double(), None, 2, 1, 1, 2).to(dtype) + bias.view(-1, 1, 1)
    settings = ((2, 2), (1, 1), (1, 1), False, (0, 0), 2)
    (got,) = run("aten.convolution.default", wanted, x, weight, bias, *settings)
    torch.testing.assert_close(got, wanted)


def test_a_linear_layer_is_one_product(run: Any) -> None:
    x, weight, bias = torch.randn(2, 5, 64), torch.randn(3, 64), torch.randn(3)
    wanted = functional.linear(x, weight, bias)
    torch.testing.assert_close(run("aten.linear.default", wanted, x, weight, bias)[0], wanted)


def test_a_quotient_is_rounded_once(run: Any) -> None:
    x, y = torch.randn(4, 1000), torch.full((1,), 3.0)
    (got,) = run("aten.div.Tensor", x, x, y)
    assert torch.equal(got, x / y)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(("accepted", "kind"), [("highest", "HIGHEST"), ("high", "DEFAULT"), ("medium", "DEFAULT")])
def test_products_are_of_float32_unless_less_is_accepted(accepted: Any, kind: str) -> None:
    b = Builder("g")
    b.output(b.op("aten.mm.default", b.input("f32[2, 3]"), b.input("f32[3, 4]")))
    tf32 = backend.options_for_precision(OpenXLAOptions(), accepted).precision == "tf32"
    for device, wanted in (("cuda", kind), ("cpu", "HIGHEST")):
        text = write(b.graph(), {}, {}, torch.device(device, 0), tf32=tf32).lowered.as_text()
        assert f"precision = [{wanted}, {wanted}]" in text


def test_of_checks_one_boolean_is_left(run: Any) -> None:
    table, at = torch.randn(4, 2), torch.tensor([3, 0])
    wanted, holds = table[at], torch.tensor(True)
    got, held = run("aten.embedding.default", wanted, table, at, -1, False, False)
    assert torch.equal(got, wanted)
    assert torch.equal(held, holds)
    assert not run("aten.embedding.default", wanted, table, at + 1, -1, False, False)[1]
