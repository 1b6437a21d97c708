"""The rule of a layer of an LSTM: torch has its gates in the order i, f, g, o, ONNX in the order i, o, f, g."""

from __future__ import annotations

from fairlead_onnx._call import Call
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__: list[str] = []


@rule("nn.lstm")
def lstm(c: Call) -> tuple[Ref, ...]:
    w, data, hx, cx = c.writer, c.tensor(0), c.tensor(1), c.tensor(2)
    hidden = c.type(4).shape[1]
    if not isinstance(hidden, int):
        raise Declined("an LSTM of a dynamic size")
    weights = [_turned(w, c.tensor(i)) for i in (3, 4)]
    biases = [_turned(w, b) for b in (c.maybe(5), c.maybe(6)) if b is not None]
    bias = _in_front(w, w.op("Concat", *biases, axis=0)) if biases else None
    operands = (data, *(_in_front(w, x) for x in weights), bias, None, hx, cx)
    direction = "reverse" if c.args[7] else "forward"
    out, hy, cy = w.ops("LSTM", *operands, dtypes=[data.dtype] * 3, hidden_size=hidden, direction=direction)
    return w.op("Squeeze", out, w.ints(1)), hy, cy


def _turned(w: Writer, gates: Ref) -> Ref:
    i, f, g, o = w.ops("Split", gates, dtypes=[gates.dtype] * 4, axis=0, num_outputs=4)
    return w.op("Concat", i, o, f, g, axis=0)


def _in_front(w: Writer, x: Ref) -> Ref:
    return w.op("Unsqueeze", x, w.ints(0))
