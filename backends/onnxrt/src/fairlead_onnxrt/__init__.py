"""Fairlead backend: ONNX Runtime.

`backend` lowers a graph to ONNX through `fairlead_onnx` and runs it in an ONNX Runtime session, with weights by
reference, inputs without a copy and fresh outputs. Importing this module imports neither ONNX Runtime nor torch.
"""

from fairlead_onnxrt._backend import OnnxRuntimeBackend
from fairlead_onnxrt._options import OnnxRuntimeOptions

__all__ = ["OnnxRuntimeBackend", "OnnxRuntimeOptions", "backend"]

backend = OnnxRuntimeBackend()
"""What the entry point ``onnxrt`` leads to."""
