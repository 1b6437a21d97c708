"""OpenVINO's CPU plugin gives wrong numbers where a kernel has failed, with one thread and known sizes."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as op


def main() -> None:
    table = np.arange(16, dtype=np.float32).reshape(8, 2)
    places = op.parameter([1, 3], np.int64)
    model = ov.Model([op.embedding_bag_packed_sum(op.constant(table), places)], [places])
    for threads in (2, 1):
        run = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads})
        try:
            found = run([np.array([[0, 0, 8]])])[0].tolist()
        except RuntimeError:
            print(f"{threads} threads: row 8 of 8 is an error")
        else:
            print(f"{threads} threads: with row 8 of 8 the sum is {found}")


if __name__ == "__main__":
    main()
