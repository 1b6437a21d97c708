"""Lowering from the Fairlead IR to ONNX, shared by the backends whose runtimes read ONNX.

`supports` answers for one node, `lower` writes a whole graph. Both are driven by one table of rules; a rule that
cannot write a node exactly declines it with a reason. The lowering needs neither torch nor the values of the weights:
every graph input stays an input of the ONNX model, and a backend binds the constant ones by reference.

>>> from fairlead.ir import DType, Node, TensorType, Value
>>> x = Value(0, TensorType(DType.f32, (2, 3)))
>>> supports(Node("aten.relu.default", (x,), (Value(1, x.type),)), target=Target(name="demo")).accepted
True
"""

from fairlead_onnx._file import ModelFile
from fairlead_onnx._lower import Lowered, lower, supports
from fairlead_onnx._real_form import RealForm
from fairlead_onnx._target import DOMAIN, Target

__all__ = ["DOMAIN", "Lowered", "ModelFile", "RealForm", "Target", "lower", "supports"]
