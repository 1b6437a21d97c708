"""Rules of running sums and products: one element after the other, in what torch adds up in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from fairlead.ir import DType, dims
from fairlead_tvm._arrays import Array, Strided
from fairlead_tvm._call import Call
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast, converted, wider
from fairlead_tvm._rules import Rule, rule
from fairlead_tvm._tvm import Expr, index
from fairlead_tvm._views import axis, reshaped

__all__: list[str] = []


def _running(start: int, combine: Callable[[Expr, Expr], Expr]) -> Rule:
    def write(c: Call, x: Array, dim: int, dtype: Any = None) -> Array:
        row = cast(x if x.ndim else reshaped(c.program, x, (1,)), c.dtype)
        at, source = axis(dim, x.ndim), c.stored(row) if row.products or row.cost else row
        held = DType.f64 if c.dtype is DType.f32 else wider(c.dtype)

        def body(k: Kernel, out: Strided) -> None:
            work = k.size(dims.product(out.shape))
            with contextlib.ExitStack() as loops:
                place: list[Any] = [
                    None if d == at else loops.enter_context(k.shared(k.size(size), work))
                    for d, size in enumerate(out.shape)
                ]
                total = k.local((1,), held)
                k.store(total, k.number(start, held), 0)
                with k.loop(k.size(out.shape[at])) as i:
                    place[at] = i
                    value = converted(k, k.element(source, place), c.dtype, held)
                    k.store(total, combine(total[index(0)], value), 0)
                    k.write(out, place, converted(k, total[index(0)], held, c.dtype))

        return reshaped(c.program, c.program.kernel(row.shape, c.dtype, body), c.shape())

    return write


rule("cumsum")(_running(0, lambda total, value: total + value))
rule("cumprod")(_running(1, lambda total, value: total * value))
