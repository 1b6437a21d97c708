"""Indexing: places that repeat, that are negative, that are masks, along other dimensions, or none at all."""

from __future__ import annotations

import torch

from fairlead_conformance._case import Level
from fairlead_conformance._families._directed._row import Row, b1, bf16, f16, f32, i32, i64, ramp, row

__all__ = ["ROWS"]

_SOURCE = f32(1.0, 2.0, 4.0, 8.0, 16.0)
_TWICE = i64(0, 2, 2, 0, 2)

ROWS: tuple[Row, ...] = (
    row("duplicates-add-up", "aten.scatter_add.default", f32(100.0, 200.0, 300.0), 0, _TWICE, _SOURCE),
    row("duplicates-add-up", "aten.scatter_add.default", i64(100, 200, 300), 0, _TWICE, i64(1, 2, 4, 8, 16)),
    row(
        "duplicates-add-up",
        "aten.scatter_add.default",
        bf16(100.0, 200.0, 300.0),
        0,
        _TWICE,
        bf16(1.0, 2.0, 4.0, 8.0, 16.0),
    ),
    row(
        "duplicates-add-up",
        "aten.scatter_add.default",
        ramp(3, 4),
        1,
        i64([[0, 0, 3], [1, 1, 1], [2, 0, 2]]),
        ramp(3, 3),
    ),
    row("duplicates-add-up", "aten.index_put.default", torch.zeros(3), [_TWICE], _SOURCE, True),
    row("duplicates-add-up", "aten.index_put.default", ramp(3, 2), [i64(1, 1, 1)], ramp(3, 2), True),
    row("duplicates-add-up", "aten.index_put.default", f16([0.0] * 3), [_TWICE], f16(1.0, 2.0, 4.0, 8.0, 16.0), True),
    row("duplicates-that-agree", "aten.index_put.default", torch.zeros(3), [i64(1, 1)], f32(7.0, 7.0), False),
    row("duplicates-that-agree", "aten.scatter.src", torch.zeros(3), 0, i64(1, 1), f32(7.0, 7.0)),
    row("duplicates-multiply", "aten.scatter_reduce.two", f32(10.0, 20.0, 30.0), 0, _TWICE, _SOURCE, "prod"),
    row("duplicates-reduce", "aten.scatter_reduce.two", f32(10.0, 20.0, 30.0), 0, _TWICE, _SOURCE, "amax"),
    row("duplicates-reduce", "aten.scatter_reduce.two", f32(10.0, 20.0, 30.0), 0, _TWICE, _SOURCE, "amin"),
    row("duplicates-reduce", "aten.scatter_reduce.two", f32(10.0, 20.0, 30.0), 0, _TWICE, _SOURCE, "mean"),
    row(
        "without-self", "aten.scatter_reduce.two", f32(10.0, 20.0, 30.0), 0, _TWICE, _SOURCE, "sum", include_self=False
    ),
    row(
        "without-self", "aten.scatter_reduce.two", f32(10.0, 20.0, 30.0), 0, _TWICE, _SOURCE, "mean", include_self=False
    ),
    row(
        "without-self",
        "aten.index_reduce.default",
        f32(10.0, 20.0, 30.0),
        0,
        _TWICE,
        _SOURCE,
        "amax",
        include_self=False,
        level=Level.L2,
    ),
    row("scatter-fewer-than-source", "aten.scatter.src", ramp(3, 4), 1, i64([[3], [0]]), ramp(3, 4)),
    row("scatter-a-number", "aten.scatter.value", ramp(3, 4), 0, i64([[2, 0, 1, 1]]), -1.5),
    row("scatter-along-first", "aten.scatter.src", ramp(3, 4), 0, i64([[2, 0, 1, 1]]), ramp(1, 4)),
    row("scatter-nothing", "aten.scatter_add.default", ramp(3), 0, i64([]), f32([])),
    row("gather-along-first", "aten.gather.default", ramp(3, 4), 0, i64([[2, 0, 1, 1]])),
    row("gather-along-last", "aten.gather.default", ramp(3, 4), 1, i64([[3, 3], [0, 1]])),
    row("gather-more-than-there-is", "aten.gather.default", ramp(1, 4), 1, i64([[3, 3, 0, 1, 2, 2]])),
    row("gather-nothing", "aten.gather.default", ramp(3), 0, i64([])),
    row("gather-from-0d", "aten.gather.default", f32([5.0]).reshape(()), 0, i64([0]).reshape(())),
    row("negative-places", "aten.index.Tensor", ramp(4, 3), [i64(-1, 0, -4)]),
    row("negative-places", "aten.index_put.default", ramp(4, 3), [i64(-1, 1)], ramp(2, 3), False),
    row("i32-places", "aten.index_select.default", ramp(4, 3), 1, i32(2, 0, 2)),
    row("i32-places", "aten.embedding.default", ramp(5, 3), i32(4, 0, 4)),
    row("places-broadcast", "aten.index.Tensor", ramp(4, 5, 3), [i64([[0], [3]]), i64(4, 0, 1)]),
    row("places-apart", "aten.index.Tensor", ramp(4, 5, 3), [i64(0, 3), None, i64(2, 1)]),
    row("places-in-the-middle", "aten.index.Tensor", ramp(4, 5, 3), [None, i64([[0, 4], [2, 2]])]),
    row("a-place-of-rank-zero", "aten.index.Tensor", ramp(4, 3), [i64([2]).reshape(())]),
    row("a-number-everywhere", "aten.index_put.default", ramp(4, 3), [i64(0, 2)], f32([-1.0]).reshape(()), False),
    row(
        "masked-put",
        "aten.index_put.default",
        ramp(4),
        [b1(True, False, True, False)],
        f32([9.0]).reshape(()),
        False,
        level=Level.L2,
    ),
    row("masked-scatter", "aten.masked_scatter.default", ramp(4), b1(False, True, False, True), f32(7.0, 8.0, 9.0)),
    row("select-nothing", "aten.index_select.default", ramp(4, 3), 0, i64([])),
    row("select-from-empty", "aten.index_select.default", torch.zeros(0, 3), 1, i64(2, 0)),
    row("padding-index", "aten.embedding.default", ramp(5, 3), i64([[1, 0], [4, 1]]), padding_idx=1),
    row("padding-index", "aten.embedding.default", ramp(5, 3), i64([]), padding_idx=0),
    row("embedding-in-bf16", "aten.embedding.default", ramp(5, 3).bfloat16(), i64(4, 4, 0)),
    row("put-wraps", "aten.put.default", ramp(2, 3), i64(-1, 0), f32(7.0, 8.0), level=Level.L2),
    row("put-adds-up", "aten.put.default", ramp(2, 3), i64(1, 1), f32(7.0, 8.0), True, level=Level.L2),
    row("bins-left", "aten.bucketize.Tensor", f32(1.0, 2.0, 2.5, 3.0, 9.0), f32(1.0, 2.0, 3.0), level=Level.L2),
    row(
        "bins-right",
        "aten.bucketize.Tensor",
        f32(1.0, 2.0, 2.5, 3.0, 9.0),
        f32(1.0, 2.0, 3.0),
        right=True,
        level=Level.L2,
    ),
    row(
        "searched-among-equals",
        "aten.searchsorted.Tensor",
        f32(1.0, 2.0, 2.0, 3.0),
        f32(2.0, 0.0, 4.0),
        side="right",
        level=Level.L2,
    ),
    row("select-negative", "aten.select.int", ramp(3, 4), 1, 3),
    row("slice-in-steps", "aten.slice.Tensor", ramp(7, 3), 0, 1, 6, 2),
    row("slice-of-nothing", "aten.slice.Tensor", ramp(7, 3), 0, 5, 5, 1),
    row("slice-beyond-the-end", "aten.slice.Tensor", ramp(7, 3), 0, 5, 9223372036854775807, 1),
    row("slice-scatter-in-steps", "aten.slice_scatter.default", ramp(7, 3), ramp(3, 3), 0, 1, 6, 2),
    row("select-scatter", "aten.select_scatter.default", ramp(3, 4), ramp(3), 1, 2),
    row("diagonal-scatter", "aten.diagonal_scatter.default", ramp(3, 4), ramp(3), 1),
    row("select-from-0d", "aten.index_select.default", f32([5.0]).reshape(()), 0, i64(0)),
    row("scatter-into-0d", "aten.scatter.src", f32([5.0]).reshape(()), 0, i64([0]).reshape(()), f32([3.0]).reshape(())),
    row("scatter-fewer-rows", "aten.scatter_add.default", ramp(4, 3), 0, i64([[2, 0], [2, 3]]), ramp(3, 3)),
    row("put-adds-up-broadcast", "aten.index_put.default", ramp(4, 3), [i64(1, 1, 3)], ramp(3), True),
    row("put-apart", "aten.index_put.default", ramp(3, 2, 4), [i64(2, 0), None, i64(3, 3)], ramp(2, 2), False),
    row("masked-put-of-rows", "aten.index_put.default", ramp(3, 2), [b1(True, False, True)], ramp(2, 2), False),
)
