"""Convolutions and pooling against eager torch: what is left over of tiles, what is fused, sizes that change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fairlead import ir
from fairlead.backend import Executable
from fairlead_tvm import TVMOptions, backend

_ONE = TVMOptions(threads="one")


def _declared(tensor: torch.Tensor, batch: str | None = None) -> str:
    first, *rest = tensor.shape
    kind = "f32" if tensor.dtype is torch.float32 else "f64"
    return f"{kind}[{', '.join(map(str, (batch or first, *rest)))}]"


def _convolved(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, settings: tuple[Any, ...], *, batch: str | None = None
) -> tuple[ir.Builder, ir.Value]:
    stride, padding, dilation, groups = settings
    b, rank = ir.Builder("g"), x.ndim - 2
    given = b.input(_declared(x, batch), "x"), b.input(_declared(w), "w"), b.input(_declared(bias), "bias")
    each = ((n,) * rank for n in (stride, padding, dilation))
    return b, b.op("aten.convolution.default", *given, *each, False, (0,) * rank, groups)


_CASES = {
    "windows of 3": ((2, 5, 11, 13), (37, 5, 3, 3), (2, 1, 1, 1)),
    "single elements": ((1, 16, 5, 5), (32, 16, 1, 1), (1, 0, 1, 1)),
    "every second element": ((2, 3, 9, 8), (8, 3, 1, 1), (2, 0, 1, 1)),
    "groups": ((1, 6, 7, 7), (9, 2, 3, 3), (1, 2, 2, 3)),
    "channel by channel": ((2, 27, 9, 17), (27, 1, 3, 3), (2, 1, 1, 27)),
    "windows that share lines of a cache": ((2, 512, 41), (40, 512, 3), (2, 0, 1, 1)),
    "one dimension": ((2, 6, 20), (10, 6, 3), (1, 1, 1, 1)),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_convolution_is_right_whatever_is_left_over_of_its_tiles(name: str) -> None:
    shape, weight, settings = _CASES[name]
    x, w, bias = torch.randn(shape), torch.randn(weight) / weight[1] ** 0.5, torch.randn(weight[0])
    b, out = _convolved(x, w, bias, settings)
    b.output(out)
    expected = torch.nn.functional.conv2d if x.ndim == 4 else torch.nn.functional.conv1d
    found = backend.compile(b.graph(), _ONE, {1: w, 2: bias})([x])[0]
    torch.testing.assert_close(found, expected(x, w, bias, *settings), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 4])
def test_a_weight_that_is_no_constant_is_laid_out_at_the_call(groups: int) -> None:
    x, w, bias = (torch.randn(s, dtype=torch.float64) for s in ((2, 4, 6, 6), (4, 4 // groups, 3, 3), (4,)))
    b, out = _convolved(x, w, bias, (1, 1, 1, groups))
    b.output(out)
    found = backend.compile(b.graph(), _ONE, {})([x, w, bias])[0]
    torch.testing.assert_close(found, torch.nn.functional.conv2d(x, w, bias, 1, 1, 1, groups))


@pytest.mark.parametrize(("size", "settings"), [(2, (2, 0, 0, 1)), (4, (3, 2, 1, 2))])
def test_a_transposed_convolution_is_a_product_for_each_kind_of_result(size: int, settings: tuple[int, ...]) -> None:
    stride, padding, output_padding, groups = settings
    x, w = torch.randn(2, 4, 5, 6), torch.randn(4, 6 // groups, size, size)
    b = ir.Builder("g")
    given = b.input(_declared(x), "x"), b.input(_declared(w), "w"), None
    each = ((n, n) for n in (stride, padding, 1))
    b.output(b.op("aten.convolution.default", *given, *each, True, (output_padding,) * 2, groups))
    expected = torch.nn.functional.conv_transpose2d(x, w, None, stride, padding, output_padding, groups)
    found = backend.compile(b.graph(), _ONE, {1: w})([x])[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_what_follows_a_convolution_is_done_in_its_tile_for_any_batch() -> None:
    w, bias, scale = torch.randn(16, 8, 1, 1), torch.randn(16), torch.rand(16)
    x = torch.randn(2, 8, 5, 6)
    b, out = _convolved(x, w, bias, (1, 0, 1, 1), batch="n")
    factor = b.input("f32[16]", "scale")
    normal = b.ops("aten._native_batch_norm_legit_no_training.default", out, factor, None, factor, factor, 0.1, 1e-5)[0]
    b.output(b.op("aten.permute.default", b.op("aten.relu.default", normal), (0, 2, 3, 1)))
    run = backend.compile(b.graph(), _ONE, {1: w, 2: bias, 3: scale})
    for batch in (1, 3):
        x = torch.randn(batch, 8, 5, 6)
        normal_ = torch.nn.functional.batch_norm(torch.nn.functional.conv2d(x, w, bias), scale, scale, scale)
        torch.testing.assert_close(run([x])[0], normal_.relu().permute(0, 2, 3, 1), rtol=1e-4, atol=1e-5)
    kernels = run.readable()["relax.py"]  # type: ignore[attr-defined]
    # Two make a factor and a summand of each channel, one turns the input over, and the last does all the rest.
    assert kernels.count("R.call_tir(") == 6


def _pooled(op: str, x: torch.Tensor, *args: Any) -> list[torch.Tensor]:
    b = ir.Builder("g")
    for out in b.ops(op, b.input(_declared(x), "x"), *args):
        b.output(out)
    run: Executable = backend.compile(b.graph(), _ONE, {})
    return list(run([x]))


@pytest.mark.parametrize("settings", [((3, 3), (2, 2), (1, 1), (1, 1), False), ((3, 2), (2, 3), (1, 0), (2, 1), True)])
def test_a_maximum_and_its_place_are_those_of_eager(settings: tuple[Any, ...]) -> None:
    x = torch.randn(2, 37, 11, 13)
    x[0, 3, 2, 2] = float("nan")
    found = _pooled("aten.max_pool2d_with_indices.default", x, *settings)
    expected = torch.nn.functional.max_pool2d(x, *settings, return_indices=True)
    torch.testing.assert_close(found, list(expected), rtol=0, atol=0, equal_nan=True)


_AVERAGES: dict[str, tuple[tuple[Any, ...], Callable[[torch.Tensor], torch.Tensor]]] = {
    "avg_pool2d": (
        ((3, 2), (2, 3), (1, 0), True, False, None),
        lambda x: torch.nn.functional.avg_pool2d(x, (3, 2), (2, 3), (1, 0), True, False),
    ),
    "_adaptive_avg_pool2d": (((3, 5),), lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (3, 5))),
}


@pytest.mark.parametrize("name", _AVERAGES)
def test_an_average_counts_what_eager_counts(name: str) -> None:
    x = torch.randn(3, 11, 13)
    args, expected = _AVERAGES[name]
    torch.testing.assert_close(_pooled(f"aten.{name}.default", x, *args), [expected(x)])
