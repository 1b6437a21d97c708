"""Fairlead backend: TensorRT, of the data centre (10 and 11) and of RTX.

`backend` lowers a graph to ONNX through `fairlead_onnx`, and lets TensorRT's parser and builder make an engine of it.
`build` does so without a device, for inspection. Importing this module imports neither TensorRT nor torch.
"""

from fairlead_tensorrt._account import Layer
from fairlead_tensorrt._backend import TensorRTBackend
from fairlead_tensorrt._engine import COMPUTE_CAPABILITIES, Engine, build
from fairlead_tensorrt._options import TensorRTOptions
from fairlead_tensorrt._sdk import Range

__all__ = ["COMPUTE_CAPABILITIES", "Engine", "Layer", "Range", "TensorRTBackend", "TensorRTOptions", "backend", "build"]

backend = TensorRTBackend()
"""What the entry point ``tensorrt`` leads to."""
