"""The stable graph IR: data model, dimensions, signatures, text, verifier and files. Works without torch.

A `Graph` is a pure function: inputs with roles, nodes in execution order, outputs with roles. Each `Value` carries its
type, so that a `Node` can be understood on its own.

>>> x = Value(0, TensorType(DType.f32, ("b", 8)))
>>> y = Value(1, x.type)
>>> relu = Node("aten.relu.default", (x,), (y,))
>>> b = Symbol("b", 1, None, (0, 0))
>>> graph = Graph("forward", Kind.inference, (Input(x, name="x"),), (relu,), (Output(y),), (b,))
>>> print(to_text(graph))
symbol b in [1, inf] from in0.dim0
graph @forward inference {
  in %0 user "x" : f32[b, 8]
  %1 = aten.relu.default(%0) : f32[b, 8]
  out %1 user
}
"""

from fairlead.ir import dims
from fairlead.ir._builder import Builder
from fairlead.ir._canonical import fingerprint
from fairlead.ir._diff import Change, Diff, Difference, diff
from fairlead.ir._file import File, read, write
from fairlead.ir._groups import ProcessGroup
from fairlead.ir._model import (
    IR_VERSION,
    Argument,
    Complex,
    DimExpr,
    Graph,
    Input,
    Kind,
    Location,
    Module,
    Node,
    OpUse,
    Output,
    Role,
    Symbol,
    Token,
    Value,
    symbols_in,
)
from fairlead.ir._module import from_bytes, module, to_bytes
from fairlead.ir._parse import parse, parse_graph
from fairlead.ir._tensors import TensorData
from fairlead.ir._text import node_text, to_text, type_text
from fairlead.ir._types import DType, ScalarType, TensorType, Type, row_major
from fairlead.ir._verify import verify
from fairlead.ir._weights import StoredTensor
from fairlead.ir.dims import Dim

__all__ = [
    "IR_VERSION",
    "Argument",
    "Builder",
    "Change",
    "Complex",
    "DType",
    "Diff",
    "Difference",
    "Dim",
    "DimExpr",
    "File",
    "Graph",
    "Input",
    "Kind",
    "Location",
    "Module",
    "Node",
    "OpUse",
    "Output",
    "ProcessGroup",
    "Role",
    "ScalarType",
    "StoredTensor",
    "Symbol",
    "TensorData",
    "TensorType",
    "Token",
    "Type",
    "Value",
    "diff",
    "dims",
    "fingerprint",
    "from_bytes",
    "module",
    "node_text",
    "parse",
    "parse_graph",
    "read",
    "row_major",
    "symbols_in",
    "to_bytes",
    "to_text",
    "type_text",
    "verify",
    "write",
]
