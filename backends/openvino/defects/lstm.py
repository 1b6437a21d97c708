"""An LSTM whose input, turned to have batches first, is read by something else: the plugin reads batches for steps."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as op

STEPS, BATCH, SIZE, HIDDEN = 5, 3, 8, 16


def main() -> None:
    rng = np.random.default_rng(0)
    x = op.parameter([STEPS, BATCH, SIZE], np.float32)
    turned = op.transpose(x, np.array([1, 0, 2]))
    state = op.constant(np.zeros((BATCH, 1, HIDDEN), np.float32))
    lengths = op.constant(np.full(BATCH, STEPS))
    weights = (
        op.constant(rng.standard_normal(s, np.float32)) for s in ((1, 64, SIZE), (1, 64, HIDDEN), (1, 4 * HIDDEN))
    )
    layer = op.lstm_sequence(turned, state, state, lengths, *weights, HIDDEN, "FORWARD")
    states = op.transpose(layer.output(0), np.array([2, 1, 0, 3]))
    model = ov.Model([states, op.add(turned, np.float32(0))], [x])
    given = rng.standard_normal((STEPS, BATCH, SIZE), np.float32)
    found = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([given])
    print(f"turned: {np.array_equal(found[1], given.transpose(1, 0, 2))}  right: True")


if __name__ == "__main__":
    main()
