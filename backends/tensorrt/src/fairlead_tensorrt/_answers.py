"""Whether a node is taken: the lowering writes it, and the parser of the SDK that is here reads what was written."""

from __future__ import annotations

import functools

import msgspec

from fairlead.backend import Support
from fairlead.ir import Argument, Dim, DimExpr, DType, Graph, Input, Kind, Node, Output, ScalarType, Symbol, Value
from fairlead.ir.dims import free_symbols
from fairlead_onnx import lower, supports
from fairlead_tensorrt._sdk import installed, sdk_of
from fairlead_tensorrt._target import TARGET

__all__ = ["answer"]


def answer(node: Node) -> Support:
    """The verdict on a node. Where no flavour of the SDK is installed, that of the lowering alone."""
    support = supports(node, target=TARGET)
    if not support.accepted or not installed():
        return support
    reason = _refusal(_anonymous(node))
    return support if reason is None else Support.no(f"TensorRT's parser: {reason}")


def _anonymous(node: Node) -> Node:
    """The node with its values numbered from zero and no location, so that equal nodes are asked for once."""
    numbers: dict[int, int] = {}

    def renumbered(arg: Argument) -> Argument:
        match arg:
            case Value():
                return Value(numbers.setdefault(arg.id, len(numbers)), arg.type)
            case tuple():
                return tuple(map(renumbered, arg))
        return arg

    args = tuple(map(renumbered, node.args))
    results = tuple(None if r is None else Value(numbers.setdefault(r.id, len(numbers)), r.type) for r in node.results)
    return msgspec.structs.replace(node, args=args, results=results, location=None)


@functools.lru_cache(maxsize=16384)
def _refusal(node: Node) -> str | None:
    """Why the parser does not read the node, in a model of its own."""
    return sdk_of("auto").refusal(lower(_alone(node), target=TARGET).file().model)


def _alone(node: Node) -> Graph:
    """A graph of one node, with an input for each operand and each symbol."""
    operands = {value.id: value for value in node.operands()}
    results = [r for r in node.results if r is not None]
    shapes = [v.tensor.shape for v in (*operands.values(), *results) if not isinstance(v.type, ScalarType)]
    names = sorted({s for shape in shapes for d in shape for s in _symbols(d)} | _symbols_of(node.args))
    inputs = list(operands.values())
    first = max([*operands, *(r.id for r in results)], default=0) + 1
    inputs += [Value(first + i, ScalarType(DType.i64)) for i in range(len(names))]
    symbols = tuple(Symbol(name, 0, None, (len(operands) + i, None)) for i, name in enumerate(names))
    return Graph("node", Kind.inference, tuple(map(Input, inputs)), (node,), tuple(map(Output, results)), symbols)


def _symbols(dim: Dim) -> frozenset[str]:
    return frozenset() if isinstance(dim, int) else free_symbols(dim)


def _symbols_of(args: tuple[Argument, ...]) -> set[str]:
    found: set[str] = set()
    for arg in args:
        match arg:
            case DimExpr(expr=expr):
                found |= free_symbols(expr)
            case tuple():
                found |= _symbols_of(arg)
    return found
