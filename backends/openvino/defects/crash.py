"""Ends with a segmentation fault in OpenVINO's CPU plugin: two residual MLPs on two rows, with one thread."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as op

PROPERTIES = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}


def main() -> None:
    rows = op.parameter([2, 8], np.float32)
    state = rows
    for _ in range(2):
        up = op.matmul(state, op.constant(np.ones((8, 16), np.float32)), False, False)
        up = op.relu(op.add(up, op.constant(np.ones((1, 16), np.float32))))
        down = op.matmul(up, op.constant(np.ones((16, 8), np.float32)), False, False)
        state = op.add(state, op.add(down, op.constant(np.ones((1, 8), np.float32))))
    ov.Core().compile_model(ov.Model([state], [rows]), "CPU", PROPERTIES)
    print("compiled: the defect is gone, and fairlead_openvino._snippets with it")


if __name__ == "__main__":
    main()
