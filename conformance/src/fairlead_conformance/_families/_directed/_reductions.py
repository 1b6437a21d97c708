"""Reductions: what is empty, long, full of NaN, tied, or far from zero."""

from __future__ import annotations

import functools

import torch

from fairlead.ir import DType
from fairlead_conformance._case import Level
from fairlead_conformance._families._directed._row import (
    INF,
    NAN,
    Row,
    b1,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    ramp,
    row,
    u8,
)

__all__ = ["ROWS"]


def _repeated(value: float, count: int, *, dtype: DType) -> torch.Tensor:
    return torch.full((count,), value, dtype={"f16": torch.float16, "bf16": torch.bfloat16}.get(dtype, torch.float32))


_TIES = f32([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0], [0.0, -0.0, 0.0, -1.0]])
_NANS = f32([[1.0, NAN, 3.0], [NAN, NAN, INF], [-INF, 2.0, INF]])

ROWS: tuple[Row, ...] = (
    row("a-million-halves", "aten.sum.dim_IntList", functools.partial(_repeated, 0.5, 1_000_000, dtype=DType.f32), [0]),
    row("a-million-tenths", "aten.sum.dim_IntList", functools.partial(_repeated, 0.1, 1_000_000, dtype=DType.f32), [0]),
    row("a-million-halves", "aten.mean.dim", functools.partial(_repeated, 0.5, 1_000_000, dtype=DType.f32), [0]),
    row("many-halves", "aten.sum.dim_IntList", functools.partial(_repeated, 0.5, 100_000, dtype=DType.f16), [0]),
    row("many-halves", "aten.sum.dim_IntList", functools.partial(_repeated, 0.5, 100_000, dtype=DType.bf16), [0]),
    row("many-halves", "aten.mean.dim", functools.partial(_repeated, 0.5, 100_000, dtype=DType.bf16), [0]),
    row("empty-is-identity", "aten.sum.dim_IntList", f32([]), [0]),
    row("empty-is-identity", "aten.sum.dim_IntList", torch.zeros(3, 0), [1]),
    row("empty-is-identity", "aten.prod.dim_int", torch.zeros(3, 0), 1),
    row("empty-is-identity", "aten.all.dims", torch.zeros(2, 0, dtype=torch.bool), [1]),
    row("empty-is-identity", "aten.any.dims", torch.zeros(2, 0, dtype=torch.bool), [1]),
    row("empty-is-identity", "aten.prod.default", i64([])),
    row("empty-mean-is-nan", "aten.mean.dim", torch.zeros(3, 0), [1]),
    row("empty-result", "aten.sum.dim_IntList", torch.zeros(0, 3), [1]),
    row("empty-result", "aten.amax.default", torch.zeros(0, 3), [1]),
    row("empty-result", "aten.argmax.default", torch.zeros(0, 3), 1),
    row("logsumexp-of-empty", "aten.logsumexp.default", torch.zeros(2, 0), [1]),
    row("nan-wins", "aten.amax.default", _NANS, [1]),
    row("nan-wins", "aten.amin.default", _NANS, [1]),
    row("nan-wins", "aten.argmax.default", _NANS, 1),
    row("nan-wins", "aten.argmin.default", _NANS, 1),
    row("nan-wins", "aten.max.dim", _NANS, 1),
    row("nan-wins", "aten.min.dim", _NANS, 0),
    row("nan-spreads", "aten.sum.dim_IntList", _NANS, [1]),
    row("nan-is-true", "aten.any.dims", f32([[NAN, 0.0], [0.0, -0.0]]), [1]),
    row("nan-is-true", "aten.all.dims", f32([[NAN, 1.0], [0.0, 1.0]]), [1]),
    row("first-of-ties", "aten.argmax.default", _TIES, 1),
    row("first-of-ties", "aten.argmin.default", _TIES, 1),
    row("first-of-ties", "aten.max.dim", _TIES, 1),
    row("first-of-ties", "aten.argmax.default", i32([[2, 7, 7], [1, 1, 1]]), 1),
    row("of-everything", "aten.argmax.default", _TIES),
    row("stable-sort", "aten.sort.stable", f32(2.0, 1.0, 2.0, 1.0, 1.0, 2.0), stable=True, dim=0),
    row(
        "stable-sort-descending",
        "aten.sort.stable",
        f32(2.0, 1.0, 2.0, 1.0, 1.0, 2.0),
        stable=True,
        dim=0,
        descending=True,
    ),
    row("stable-sort", "aten.sort.stable", i64(3, 1, 3, 1, 2), stable=True, dim=0),
    row("sort-puts-nan-last", "aten.sort.stable", f32(2.0, NAN, -INF, INF, NAN, 1.0), stable=True, dim=0),
    row("sort-puts-nan-first", "aten.sort.stable", f32(2.0, NAN, -INF, INF, 1.0), stable=True, dim=0, descending=True),
    row("sort-of-truth", "aten.sort.stable", b1(True, False, True, False), stable=True, dim=0),
    row("sort-of-0d", "aten.sort.stable", f32([3.0]).reshape(()), stable=True, dim=0),
    row("topk-with-nan", "aten.topk.default", f32(1.0, NAN, 3.0, 2.0), 2),
    row("topk-smallest", "aten.topk.default", f32(1.0, -4.0, 3.0, 2.0), 2, largest=False),
    row("topk-of-all", "aten.topk.default", f32(1.0, -4.0, 3.0), 3),
    row("sum-promotes", "aten.sum.dim_IntList", i8([127] * 10), [0]),
    row("sum-promotes", "aten.sum.dim_IntList", u8([255] * 10), [0]),
    row("sum-in-another-dtype", "aten.sum.dim_IntList", f16([300.0] * 300), [0], dtype=DType.f32),
    row("sum-in-its-own-dtype", "aten.sum.dim_IntList", i32([2147483647, 1]), [0], dtype=DType.i32),
    row("mean-in-another-dtype", "aten.mean.dim", i32(1, 2, 4), [0], dtype=DType.f32),
    row("cumsum-promotes", "aten.cumsum.default", i8(100, 100, 100), 0),
    row("cumsum-of-truth", "aten.cumsum.default", b1(True, True, False, True), 0),
    row("cumsum-in-its-own-dtype", "aten.cumsum.default", i8(100, 100), 0, dtype=DType.i8),
    row("cumsum-with-inf", "aten.cumsum.default", f32(1.0, INF, 1.0, -INF, 1.0), 0),
    row("cumsum-of-0d", "aten.cumsum.default", f32([3.0]).reshape(()), 0),
    row("cumprod-with-zero", "aten.cumprod.default", f32(2.0, 0.0, INF, 3.0), 0),
    row("several-dims", "aten.sum.dim_IntList", ramp(2, 3, 4), [0, 2]),
    row("several-dims-kept", "aten.sum.dim_IntList", ramp(2, 3, 4), [0, 2], keepdim=True),
    row("no-dims-is-all", "aten.sum.dim_IntList", ramp(2, 3), []),
    row("no-dims-is-all", "aten.amax.default", ramp(2, 3), []),
    row("of-0d", "aten.sum.dim_IntList", f32([3.0]).reshape(()), []),
    row("of-0d", "aten.argmax.default", f32([3.0]).reshape(())),
    row("var-of-constant", "aten.var.correction", torch.full((4, 8), 1e4), [1], correction=1),
    row("var-far-from-zero", "aten.var.correction", 1e4 + ramp(4, 64), [1], correction=1),
    row("var-of-one", "aten.var.correction", ramp(4, 1), [1], correction=1),
    row("var-of-one", "aten.var.correction", ramp(4, 1), [1], correction=0),
    row("var-correction", "aten.var.correction", ramp(4, 5), [1], correction=2),
    row("logsumexp-of-large", "aten.logsumexp.default", f32([[1000.0, 1001.0], [-1000.0, -1001.0], [-INF, -INF]]), [1]),
    row("logsumexp-of-inf", "aten.logsumexp.default", f32([[INF, 1.0], [INF, -INF], [NAN, 1.0]]), [1]),
    row("logcumsumexp", "aten.logcumsumexp.default", f32(-INF, 1000.0, 1000.0, -1000.0), 0, level=Level.L2),
    row("norm-without-overflow", "aten.linalg_vector_norm.default", f32(1e18, 1e18), 2, [0]),
    row("norm-infinite-order", "aten.linalg_vector_norm.default", f32(1.0, -7.0, 3.0), INF, [0]),
    row("norm-zero-order", "aten.linalg_vector_norm.default", f32(0.0, -7.0, -0.0), 0, [0]),
    row("prod-with-zero", "aten.prod.dim_int", f32([[2.0, 0.0, -1.0], [INF, 0.0, 1.0]]), 1),
    row(
        "bf16-accumulates-in-f32",
        "aten.mm.default",
        torch.full((2, 4096), 0.01, dtype=torch.bfloat16),
        torch.full((4096, 2), 0.01, dtype=torch.bfloat16),
    ),
    row(
        "f16-accumulates-in-f32",
        "aten.mm.default",
        torch.full((2, 8192), 2.0, dtype=torch.float16),
        torch.full((8192, 2), 2.0, dtype=torch.float16),
    ),
    row("bf16-mean", "aten.mean.dim", bf16([256.0] + [1.0] * 255), [0]),
    row("median-of-even", "aten.median.default", f32(4.0, 1.0, 3.0, 2.0), level=Level.L2),
    row("median-of-nan", "aten.median.default", f32(4.0, NAN, 3.0), level=Level.L2),
    row("sum-cancels", "aten.sum.dim_IntList", f64(1e16, 1.0, -1e16), [0]),
    *(
        row("running-extreme", f"aten.{op}.default", x, dim, level=Level.L2)
        for op in ("cummax", "cummin")
        for x, dim in ((torch.zeros(0), 0), (torch.zeros(3, 0), 1), (_NANS, 0), (_TIES, 1), (i64(3, 1, 4, 4, 5), 0))
    ),
    *(row("kth-of-rows", "aten.kthvalue.default", ramp(4, 3), k, dim, level=Level.L2) for k, dim in ((2, 0), (3, 1))),
    row("kth-kept", "aten.kthvalue.default", ramp(4, 3), 1, 0, True, level=Level.L2),
    row("sort-along-first", "aten.sort.stable", ramp(4, 3), stable=True, dim=0, descending=True),
    row("topk-along-first", "aten.topk.default", ramp(4, 3), 2, 0),
    row("median-of-rows", "aten.median.dim", _NANS, 1, level=Level.L2),
    row("median-of-rows", "aten.median.dim", ramp(4, 3), 0, True, level=Level.L2),
    row("median-without-nan", "aten.nanmedian.dim", _NANS, 1, level=Level.L2),
    row("median-without-nan", "aten.nanmedian.default", f32(4.0, NAN, 3.0, 1.0), level=Level.L2),
    row("mode-of-rows", "aten.mode.default", i64([[2, 1, 1, 2], [3, 3, 0, 3]]), 1, level=Level.L2),
    *(row("norm-of-order", "aten.linalg_vector_norm.default", _TIES, p, [1]) for p in (0.5, 1, 3, -1, -INF)),
)
