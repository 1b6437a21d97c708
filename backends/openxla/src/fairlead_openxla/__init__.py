"""Fairlead backend: OpenXLA.

`backend` writes a graph in jax's operations, has XLA compile it ahead of time, and runs it on torch's memory through
DLPack. Importing this module imports neither jax nor torch.
"""

from fairlead_openxla._backend import OpenXLABackend
from fairlead_openxla._options import OpenXLAOptions

__all__ = ["OpenXLABackend", "OpenXLAOptions", "backend"]

backend = OpenXLABackend()
"""What the entry point ``openxla`` leads to."""
