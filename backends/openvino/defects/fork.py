"""A model that is compiled in a forked child waits without end for threads that ended with its parent.

They are those of a model that the parent has let go of, which OpenVINO keeps for the next one of the same settings.
"""

from __future__ import annotations

import os
import time

import numpy as np
import openvino as ov
from openvino import opset13 as op

SECONDS, SIZE = 20, 256


def compiled(core: ov.Core) -> ov.CompiledModel:
    x = op.parameter([SIZE, SIZE], np.float32)
    product = op.matmul(x, op.constant(np.ones((SIZE, SIZE), np.float32)), False, False)
    return core.compile_model(ov.Model([product], [x]), "CPU", {"NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": 2})


def main() -> None:
    core = ov.Core()
    model = compiled(core)
    model([np.ones((SIZE, SIZE), np.float32)])
    del model
    child = os.fork()
    if not child:
        compiled(core)
        os._exit(0)
    end = time.monotonic() + SECONDS
    while not (done := os.waitpid(child, os.WNOHANG)[0]) and time.monotonic() < end:
        time.sleep(0.1)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    print(f"compiled in the child: {bool(done)}  right: True")


if __name__ == "__main__":
    main()
