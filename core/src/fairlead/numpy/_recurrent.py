"""Recurrent layers, step by step (Hochreiter and Schmidhuber 1997; gates as in torch)."""

from __future__ import annotations

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._pointwise import sigmoid
from fairlead.numpy._table import Call, op


@op("nn.lstm")
def _lstm(
    call: Call,
    x: Array,
    hx: Array,
    cx: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    reverse: bool,
) -> tuple[Array, Array, Array]:
    x, h, c, recurrent = wide(x), wide(hx)[0], wide(cx)[0], wide(weight_hh).T
    bias = 0 if bias_ih is None or bias_hh is None else wide(bias_ih) + wide(bias_hh)
    given = x @ wide(weight_ih).T + bias
    out = np.empty((*x.shape[:2], h.shape[1]), given.dtype)
    for step in reversed(range(len(x))) if reverse else range(len(x)):
        i, f, g, o = np.split(given[step] + h @ recurrent, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = out[step] = sigmoid(o) * np.tanh(c)
    return out, h[None], c[None]
