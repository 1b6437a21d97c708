"""The rule of a layer of an LSTM: what all steps ask of the input in one product, then one step after the other."""

from __future__ import annotations

from typing import Any

from fairlead.ir import DType, Node, Value, dims
from fairlead.ir.dims import Dim
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Strided, row_major
from fairlead_tvm._call import Call
from fairlead_tvm._functions import sigmoid, tanh
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._layouts import Layout, Wanted, panel_width
from fairlead_tvm._matmul import linear
from fairlead_tvm._rules import rule
from fairlead_tvm._tvm import UNROLLED, VECTOR
from fairlead_tvm._views import laid_out

__all__: list[str] = []

_GATES = 4
"""The gate of the input, that of what is kept, the candidate, and the gate of the output: torch's order."""


def _lanes() -> int:
    return t.vector_bytes() // 4


def _most_rows() -> int:
    """For how many rows the registers hold a vector of each gate, beside what is multiplied."""
    return 6 if t.vector_bytes() == 64 else 2


def _declined(node: Node) -> str | None:
    x, weight = node.args[0], node.args[4]
    assert isinstance(x, Value)
    assert isinstance(weight, Value)
    if x.tensor.dtype not in (DType.f32, DType.bf16):
        return "an LSTM of other numbers than float32 and bfloat16"
    hidden = weight.tensor.shape[1]
    if not isinstance(hidden, int):
        return "an LSTM of a size that is known only at the call"
    return "an LSTM whose states are no whole vectors" if hidden % _lanes() or not hidden else None


def _places(node: Node) -> tuple[Wanted, ...]:
    """What asks of the input lies as a linear layer's weight, and what asks of the last state as `_step` reads it."""
    return (3, Layout((1, 0), panel_width())), (4, _of_states())


def _of_states() -> Layout:
    """``[hidden // lanes, hidden, gates, lanes]``."""
    return Layout((2, 0, 1), _lanes(), _GATES)


@rule("nn.lstm", unless=_declined, places=_places)
def lstm(
    c: Call,
    x: Array,
    hx: Array,
    cx: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    reverse: bool,
) -> tuple[Array, ...]:
    """Source of the steps: the formulas in the documentation of `torch.nn.LSTM`."""
    steps, batch, hidden = x.shape[0], x.shape[1], weight_hh.shape[1]
    assert isinstance(hidden, int), "others are declined"
    asked = linear(c, x, weight_ih, bias_ih)
    if bias_hh is not None:
        asked = c.map(lambda a, b: a + b, asked, bias_hh)
    panels = c.placed(1) or laid_out(c.program, weight_hh, _of_states())
    run = _Steps(steps, batch, hidden, c.stored(asked), panels, reverse)

    def write(k: Kernel, out: Strided) -> None:
        run.write(k, out, c.stored(hx), c.stored(cx))

    states = c.program.kernel((dims.add(steps, 1), 2, batch, hidden), DType.f32, write)
    slot, of_cell = row_major(states.shape)[:2]
    last = 0 if reverse else dims.mul(steps, slot)
    final = row_major((1, batch, hidden))
    return (
        Strided(states.memory, (steps, batch, hidden), (slot, *final[1:]), 0 if reverse else slot),
        Strided(states.memory, (1, batch, hidden), final, last),
        Strided(states.memory, (1, batch, hidden), final, dims.add(last, of_cell)),
    )


class _Steps:
    """The loops: steps, in order; vectors of states, which threads share; tiles of the batch.

    The result has the states before and after each step, ``[steps + 1, 2, batch, hidden]``: what is given out, and the
    cells. In reverse the first are the last.
    """

    def __init__(self, steps: Dim, batch: Dim, hidden: int, asked: Strided, panels: Strided, reverse: bool) -> None:
        self._steps, self._batch, self._hidden = steps, batch, hidden
        self._asked, self._panels, self._reverse = asked, panels, reverse

    def write(self, k: Kernel, out: Strided, hx: Strided, cx: Strided) -> None:
        steps, batch, lanes = k.size(self._steps), k.size(self._batch), _lanes()
        first = steps if self._reverse else 0
        for cell, given in enumerate((hx, cx)):
            with k.loop(batch) as b, k.loop(self._hidden // lanes) as o, k.loop(lanes, VECTOR) as j:
                k.write(out, [first, cell, b, o * lanes + j], k.element(given, [0, b, o * lanes + j]))
        most = _most_rows()
        rows = min(most, self._batch) if isinstance(self._batch, int) else most
        tiles, rest = batch // rows, batch % rows
        work = _GATES * self._hidden * self._hidden * batch
        with k.loop(steps) as s:
            place = steps - 1 - s if self._reverse else s
            before, after = (place + 1, place) if self._reverse else (place, place + 1)
            with k.shared(self._hidden // lanes, work) as jo:
                with k.loop(tiles) as tile:
                    self._step(k, out, (place, before, after), jo, tile * rows, rows)
                if isinstance(rest, int):
                    self._step(k, out, (place, before, after), jo, tiles * rows, rest)
                else:
                    with k.loop(rest) as row:
                        self._step(k, out, (place, before, after), jo, tiles * rows + row, 1)

    def _step(self, k: Kernel, out: Strided, at: tuple[Any, Any, Any], jo: Any, first: Any, rows: int) -> None:
        """A vector of the states of some rows after a step: of the input at a place, and the states before."""
        if rows == 0:
            return
        place, before, after = at
        lanes, hidden = _lanes(), self._hidden
        sums = k.local((rows, _GATES, lanes), DType.f32)
        with k.loop(rows, UNROLLED) as i, k.loop(_GATES, UNROLLED) as g, k.loop(lanes, VECTOR) as j:
            k.store(sums, k.element(self._asked, [place, first + i, g * hidden + jo * lanes + j]), i, g, j)
        with (
            k.loop(hidden) as kk,
            k.loop(rows, UNROLLED) as i,
            k.loop(_GATES, UNROLLED) as g,
            k.loop(lanes, VECTOR) as j,
        ):
            product = k.element(out, [before, 0, first + i, kk]) * k.element(self._panels, [jo, kk, g, j])
            k.store(sums, sums[t.index(i), t.index(g), j] + product, i, g, j)
        with k.loop(rows, UNROLLED) as i, k.loop(lanes, VECTOR) as j:
            takes, keeps, candidate, gives = (
                k.named(sums[t.index(i), t.index(g), j], DType.f32) for g in range(_GATES)
            )
            index = [first + i, jo * lanes + j]
            kept = sigmoid(k, keeps, DType.f32) * k.element(out, [before, 1, *index])
            cell = k.named(kept + sigmoid(k, takes, DType.f32) * tanh(k, candidate, DType.f32), DType.f32)
            k.write(out, [after, 1, *index], cell)
            k.write(out, [after, 0, *index], sigmoid(k, gives, DType.f32) * tanh(k, cell, DType.f32))
