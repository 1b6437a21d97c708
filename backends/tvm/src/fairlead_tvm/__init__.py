"""Fairlead backend: Apache TVM.

`backend` writes a graph as loops in Relax and TensorIR, has TVM compile them in process, and runs them on torch's
memory through DLPack. Importing this module imports neither tvm nor torch.
"""

from fairlead_tvm._backend import TVMBackend
from fairlead_tvm._options import TVMOptions

__all__ = ["TVMBackend", "TVMOptions", "backend"]

backend = TVMBackend()
"""What the entry point ``tvm`` leads to."""
