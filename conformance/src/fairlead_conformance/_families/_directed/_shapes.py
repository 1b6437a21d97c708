"""Shapes: sizes known only at the call, nothing and one, broadcasting, and views of what lies anyhow in memory."""

from __future__ import annotations

from typing import Any

import torch

from fairlead.ir import Builder, DType, Value
from fairlead_conformance._families._directed._row import Row, b1, f32, i64, ramp, row, row_of

__all__ = ["ROWS"]


def _dynamic(size: int) -> tuple[Row, ...]:
    """The same graphs with a first dimension of that size, which they do not know."""
    return (
        row_of("rows-unknown", lambda b, x: b.op("aten.relu.default", x), ramp(size, 3), types=["f32[n, 3]"]),
        row_of(
            "rows-unknown",
            lambda b, x, w: b.op("aten.linear.default", x, w),
            ramp(size, 3),
            ramp(2, 3),
            types=["f32[n, 3]", "f32[2, 3]"],
        ),
        row_of(
            "rows-unknown", lambda b, x: b.op("aten._softmax.default", x, 1, False), ramp(size, 3), types=["f32[n, 3]"]
        ),
        row_of("rows-unknown", lambda b, x: b.op("aten.sum.dim_IntList", x, [0]), ramp(size, 3), types=["f32[n, 3]"]),
        row_of(
            "rows-unknown",
            lambda b, x, y: b.op("aten.cat.default", [x, y]),
            ramp(size, 3),
            ramp(2, 3),
            types=["f32[n, 3]", "f32[2, 3]"],
        ),
        row_of("rows-unknown", lambda b, x: b.op("aten.view.default", x, ["3*n"]), ramp(size, 3), types=["f32[n, 3]"]),
        row_of(
            "rows-unknown",
            lambda b, x: b.op("aten.add.Tensor", x, b.op("aten.full.default", ["n", 1], 2.0, dtype=DType.f32)),
            ramp(size, 3),
            types=["f32[n, 3]"],
        ),
    )


def _from_none(b: Builder, op: str, *args: Any) -> Value:
    """A node of a graph whose first dimension may be 0."""
    b.symbol("n", lo=0)
    return b.op(op, *args)


_STEPPED = ramp(4, 10)[:, ::2]
_SHIFTED = ramp(20)[3:15].view(3, 4)

ROWS: tuple[Row, ...] = (
    *(item for size in (1, 2, 7) for item in _dynamic(size)),
    row_of("no-rows", lambda b, x: _from_none(b, "aten.relu.default", x), torch.zeros(0, 3), types=["f32[n, 3]"]),
    row_of("no-rows", lambda b, x: _from_none(b, "aten.exp.default", x), torch.zeros(0, 3), types=["f32[n, 3]"]),
    row_of(
        "no-rows", lambda b, x: _from_none(b, "aten.sum.dim_IntList", x, [0]), torch.zeros(0, 3), types=["f32[n, 3]"]
    ),
    row("broadcast-both", "aten.add.Tensor", ramp(3, 1), ramp(1, 4)),
    row("broadcast-rank", "aten.mul.Tensor", ramp(4), ramp(2, 3, 4)),
    row("broadcast-0d", "aten.sub.Tensor", f32([2.0]).reshape(()), ramp(2, 3)),
    row("broadcast-empty", "aten.add.Tensor", torch.zeros(0, 1), ramp(1, 4)),
    row("broadcast-three", "aten.where.self", b1([[True], [False]]), ramp(3), f32([0.5]).reshape(())),
    row("both-0d", "aten.add.Tensor", f32([2.0]).reshape(()), f32([3.0]).reshape(())),
    row("empty", "aten.exp.default", torch.zeros(2, 0, 3)),
    row("one", "aten.exp.default", ramp(1, 1, 1)),
    row("rank-six", "aten.neg.default", ramp(1, 2, 1, 3, 2, 1)),
    row("stepped", "aten.relu.default", _STEPPED),
    row("stepped", "aten.sum.dim_IntList", _STEPPED, [1]),
    row("stepped", "aten.mm.default", _STEPPED, ramp(5, 2)),
    row("shifted", "aten.add.Tensor", _SHIFTED, _SHIFTED),
    row("shifted", "aten._softmax.default", _SHIFTED, 1, False),
    row("repeated-in-memory", "aten.mul.Tensor", ramp(3, 1).expand(3, 4), ramp(3, 4)),
    row("repeated-in-memory", "aten.sum.dim_IntList", ramp(1, 4).expand(5, 4), [0]),
    row("windows-in-memory", "aten.neg.default", ramp(6).as_strided((4, 3), (1, 1))),
    row("reshape-of-transposed", "aten.view.default", ramp(3, 4).t(), [2, 6]),
    row("reshape-to-0d", "aten.view.default", ramp(1, 1), []),
    row("reshape-of-empty", "aten.view.default", torch.zeros(0, 3), [3, 0, 5]),
    row("permute-all", "aten.permute.default", ramp(2, 3, 4), [2, 0, 1]),
    row("expand-one", "aten.expand.default", ramp(3, 1), [2, 3, 4]),
    row("expand-to-nothing", "aten.expand.default", ramp(1, 3), [0, 3]),
    row("repeat", "aten.repeat.default", ramp(2, 3), [2, 1, 3]),
    row("repeat-none", "aten.repeat.default", ramp(2, 3), [0, 1]),
    row("flip", "aten.flip.default", ramp(2, 3, 2), [0, 2]),
    row("concatenate-with-nothing", "aten.cat.default", [ramp(2, 3), torch.zeros(0, 3), ramp(1, 3)]),
    row("concatenate-along-last", "aten.cat.default", [ramp(2, 3), ramp(2, 1)], 1),
    row("concatenate-dtypes", "aten.cat.default", [ramp(2), i64(3, 4)]),
    row("concatenate-one", "aten.cat.default", [ramp(2, 3)]),
    row("concatenate-itself", "aten.cat.default", [_SHIFTED, _SHIFTED], 1),
    row("split-unequally", "aten.split_with_sizes.default", ramp(6, 2), [1, 0, 5], 0),
    row("unbind", "aten.unbind.int", ramp(3, 2), 1),
    row("squeeze-some", "aten.squeeze.dims", ramp(1, 2, 1), [0, 1]),
    row("diagonal-offset", "aten.diagonal.default", ramp(3, 4), -1),
    row("strided-view", "aten.as_strided.default", ramp(12), [3, 2], [4, 1], 1),
    row("read-as-bits", "aten.view.dtype", f32(1.0, -0.0, 1e-40), DType.i32),
    row("complex-from-pairs", "aten.view_as_complex.default", ramp(3, 2)),
    row("pairs-from-complex", "aten.view_as_real.default", torch.complex(ramp(3), ramp(3))),
    row("expand-keeps-a-size", "aten.expand.default", ramp(3, 1), [2, -1, 4]),
    row("unfold-of-nothing", "aten.unfold.default", ramp(2, 7), 1, 0, 2),
    row("unfold-of-0d", "aten.unfold.default", f32([5.0]).reshape(()), 0, 1, 1),
    row("concatenate-nothing", "aten.cat.default", [torch.zeros(0), torch.zeros(0)]),
    row("pad-one-side-crop-the-other", "aten.constant_pad_nd.default", ramp(3, 4), [2, -1, -2, 3], 0.5),
    row("strided-view-of-transposed", "aten.as_strided.default", ramp(3, 4).t(), [2, 3], [1, 4], 1),
    row("strided-scatter", "aten.as_strided_scatter.default", ramp(3, 4), ramp(2, 2), [2, 2], [5, 1], 2),
    row("repeat-adds-dimensions", "aten.repeat.default", ramp(2, 3), [2, 1, 3, 1]),
    row("flip-none", "aten.flip.default", ramp(2, 3), []),
    row("squeeze-what-is-not-one", "aten.squeeze.dims", ramp(1, 2, 1), [-1, 1]),
    row("diagonal-of-the-last", "aten.diagonal.default", ramp(2, 3, 4), 1, 2, 1),
)
