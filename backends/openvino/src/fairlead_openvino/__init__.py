"""Fairlead backend: OpenVINO.

`backend` lowers a graph to ONNX through `fairlead_onnx`, reads it with OpenVINO, and runs it with weights by
reference, inputs without a copy and fresh outputs. Importing this module imports neither OpenVINO nor torch.
"""

from fairlead_openvino._backend import OpenVINOBackend
from fairlead_openvino._options import OpenVINOOptions

__all__ = ["OpenVINOBackend", "OpenVINOOptions", "backend"]

backend = OpenVINOBackend()
"""What the entry point ``openvino`` leads to."""
