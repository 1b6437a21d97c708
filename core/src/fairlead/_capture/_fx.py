"""One AOTAutograd graph (FX over ATen) to one graph of the IR."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Node as FxNode

from fairlead._capture._locations import location_of
from fairlead._capture._memory import read_from_base
from fairlead._capture._sympy import NotADimension, dim_of, stride_of
from fairlead._torch_types import IR_DTYPES
from fairlead.ir import (
    Argument,
    Complex,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    Role,
    ScalarType,
    Symbol,
    TensorType,
    Token,
    Value,
    dims,
    row_major,
    symbols_in,
)


class Uncapturable(Exception):
    """The graph holds something that the IR has no word for; the text says what."""


class Read(NamedTuple):
    """A graph of the IR and the tensors of its constant inputs, by input index."""

    graph: Graph
    constants: dict[int, torch.Tensor]


def graph_of(gm: torch.fx.GraphModule, name: str, kind: Kind, roles: Sequence[tuple[Role, str]]) -> Read:
    """Read an FX graph.

    ``roles`` gives role and name of the leading placeholders; the others are named after themselves.
    """
    return _Reader(gm, name, kind, roles).read()


_DROPPED = frozenset({"aten._assert_tensor_metadata.default", "aten.sym_constrain_range_for_size.default"})


class _Reader:
    def __init__(self, gm: torch.fx.GraphModule, name: str, kind: Kind, roles: Sequence[tuple[Role, str]]) -> None:
        self.gm = gm
        self.name = name
        self.kind = kind
        self.roles = roles
        self.values: dict[FxNode, Value] = {}
        self.inputs: list[Input] = []
        self.nodes: list[Node] = []
        self.outputs: list[Output] = []
        self.constants: dict[int, torch.Tensor] = {}
        self.constant_nodes: list[FxNode] = []
        self.count = 0

    def read(self) -> Read:
        for node in self.gm.graph.nodes:
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                raise Uncapturable(f"the higher-order operator {node.target}")
        for node in self.gm.graph.nodes:
            match node.op:
                case "placeholder":
                    self._input(node)
                case "get_attr":
                    self.constant_nodes.append(node)
                    self.values[node] = self._value(_attribute(self.gm, str(node.target)))
                case "call_function":
                    self._call(node)
                case "output":
                    self._outputs(node.args[0])
                case _:
                    raise Uncapturable(f"an FX node of kind {node.op}")
        for node in self.constant_nodes:
            self.constants[len(self.inputs)] = _attribute(self.gm, str(node.target))
            self.inputs.append(Input(self.values[node], Role.constant, str(node.target)))
        symbols = _symbols(self.inputs, self.nodes, self.outputs, _ranges(self.gm))
        graph = Graph(self.name, self.kind, tuple(self.inputs), tuple(self.nodes), tuple(self.outputs), symbols)
        return Read(graph, self.constants)

    def _input(self, node: FxNode) -> None:
        index = len(self.inputs)
        meta = node.meta.get("val")
        role, name = self.roles[index] if index < len(self.roles) else (Role.user, node.name)
        if isinstance(meta, torch.Tensor):
            value = self._value(meta)
        elif isinstance(meta, int | torch.SymInt):
            value, role = Value(self._next(), ScalarType(DType.i64)), Role.symbol
            name = str(_dim(meta))
        else:
            raise Uncapturable(f"a graph input of type {type(meta).__name__}")
        self.values[node] = value
        self.inputs.append(Input(value, role, name))

    def _call(self, node: FxNode) -> None:
        meta = node.meta.get("val")
        if node.target is operator.getitem and node in self.values:
            return
        if isinstance(meta, torch.SymInt | int) and not isinstance(meta, bool):
            return  # sizes live in dimension expressions, wherever they are used
        if isinstance(meta, torch.SymBool | torch.SymFloat | bool | float):
            return  # an error only where a node uses it
        if str(node.target) in _DROPPED:
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Uncapturable(f"the operator {getattr(node.target, '__name__', node.target)}")
        if node.target._schema.is_mutable:
            raise Uncapturable(f"the in-place operator {node.target}")
        if not node.target._schema.returns:
            raise Uncapturable(f"the operator {node.target}, which has an effect but no result")
        given = read_from_base(node, _arguments(node))
        if given is None:
            raise Uncapturable("as_strided of a view of an input")
        args = tuple(self._argument(a) for a in given)
        self.nodes.append(Node(str(node.target), args, self._results(node, meta), location_of(node)))

    def _results(self, node: FxNode, meta: Any) -> tuple[Value | None, ...]:
        if isinstance(meta, torch.Tensor):
            self.values[node] = self._value(meta)
            return (self.values[node],)
        if not isinstance(meta, list | tuple):
            raise Uncapturable(f"a result of type {type(meta).__name__} of {node.target}")
        results: list[Value | None] = [None] * len(meta)
        for user in node.users:
            if user.target is not operator.getitem:
                raise Uncapturable(f"a list of tensors from {node.target} used as a whole by {user.target}")
            index = int(user.args[1])  # type: ignore[arg-type]
            if isinstance(meta[index], torch.Tensor):
                results[index] = results[index] or self._value(meta[index])
                self.values[user] = results[index]  # type: ignore[assignment]
        return tuple(results)

    def _outputs(self, items: Iterable[Any]) -> None:
        for item in items:
            value: Value | DimExpr | int | None
            if isinstance(item, FxNode) and item not in self.values:
                value = _dimension(item.meta.get("val"))
            else:
                value = self.values[item] if isinstance(item, FxNode) else item
                if not isinstance(value, Value | int | None):
                    raise Uncapturable(f"an output of type {type(value).__name__}")
            self.outputs.append(Output(value))

    def _argument(self, arg: Any) -> Argument:
        match arg:
            case FxNode():
                return self.values[arg] if self._is_tensor(arg) else _number(arg.meta.get("val"))
            case list() | tuple():
                return tuple(self._argument(a) for a in arg)
            case torch.dtype():
                return Token("dtype", _dtype(arg))
            case torch.device():
                return Token("device", str(arg))
            case torch.layout():
                return Token("layout", str(arg).removeprefix("torch."))
            case torch.memory_format():
                return Token("memory_format", str(arg).removeprefix("torch."))
            case complex():
                return Complex(arg.real, arg.imag)
            case None | bool() | int() | float() | str():
                return arg
            case torch.SymInt():
                return _dimension(arg)
        raise Uncapturable(f"an argument of type {type(arg).__name__}")

    def _is_tensor(self, node: FxNode) -> bool:
        return node in self.values and isinstance(self.values[node].type, TensorType)

    def _value(self, tensor: torch.Tensor) -> Value:
        return Value(self._next(), type_of(tensor))

    def _next(self) -> int:
        self.count += 1
        return self.count - 1


def type_of(tensor: torch.Tensor) -> TensorType:
    """The IR's type of a (fake) tensor; strides are kept only where they are not row-major."""
    if type(tensor) is not torch.Tensor and not isinstance(tensor, torch.nn.Parameter | torch._subclasses.FakeTensor):
        raise Uncapturable(f"a tensor subclass, {type(tensor).__name__}")
    if tensor.layout is not torch.strided:
        raise Uncapturable(f"a tensor of layout {tensor.layout}")
    if tensor.is_quantized:
        raise Uncapturable("a quantized tensor")
    if tensor.is_conj() or tensor.is_neg():
        raise Uncapturable("a lazily conjugated or negated tensor")
    shape = tuple(_dim(d) for d in tensor.shape)
    strides = tuple(_dim(d, stride_of) for d in tensor.stride())
    dtype = DType(_dtype(tensor.dtype))
    return TensorType(dtype, shape, None if strides == row_major(shape) else strides, str(tensor.device))


def _dim(value: Any, read: Callable[[Any], dims.Dim] = dim_of) -> dims.Dim:
    try:
        return read(value)
    except NotADimension as error:
        raise Uncapturable(f"the symbolic number {error}") from error


def _dimension(value: Any) -> DimExpr | int:
    if not isinstance(value, int | torch.SymInt):
        raise Uncapturable(f"a symbolic number of type {type(value).__name__}")
    dim = _dim(value)
    return dim if isinstance(dim, int) else DimExpr(dim)


def _number(value: Any) -> Argument:
    return value if isinstance(value, bool | float) else _dimension(value)


def _dtype(dtype: torch.dtype) -> str:
    if dtype not in IR_DTYPES:
        raise Uncapturable(f"the dtype {dtype}")
    return str(IR_DTYPES[dtype])


def _arguments(node: FxNode) -> list[Any]:
    """The arguments in the order of the schema, defaults filled in."""
    parameters = node.target._schema.arguments  # type: ignore[union-attr]
    out = []
    for position, parameter in enumerate(parameters):
        if position < len(node.args):
            arg = node.args[position]
        elif parameter.name in node.kwargs:
            arg = node.kwargs[parameter.name]
        else:
            arg = parameter.default_value
        if parameter.name == "dtype" and type(arg) is int:
            arg = node.meta["val"].dtype  # a schema gives its default dtype as the number of a c10::ScalarType
        out.append(arg)
    return out


def _attribute(gm: torch.fx.GraphModule, name: str) -> torch.Tensor:
    value: Any = gm
    for part in name.split("."):
        value = getattr(value, part)
    if not isinstance(value, torch.Tensor):
        raise Uncapturable(f"an attribute of type {type(value).__name__}")
    return value


def _ranges(gm: torch.fx.GraphModule) -> dict[str, tuple[int, int | None]]:
    """The range of each symbol, from the shape environment of the first symbolic size that the graph shows."""
    for node in gm.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            break
        if isinstance(value, torch.Tensor):
            value = next((d for d in value.shape if isinstance(d, torch.SymInt)), None)
            if value is not None:
                break
    else:
        return {}
    env = value.node.shape_env
    return {str(s): (_bound(r.lower, 0) or 0, _bound(r.upper, None)) for s, r in env.var_to_range.items()}


def _bound(value: Any, default: int | None) -> int | None:
    if not getattr(value, "is_Integer", False):
        return default
    number = int(value)
    return number if abs(number) < 2**62 else default


def _symbols(
    inputs: Sequence[Input],
    nodes: Sequence[Node],
    outputs: Sequence[Output],
    ranges: dict[str, tuple[int, int | None]],
) -> tuple[Symbol, ...]:
    sources: dict[str, tuple[int, int | None]] = {}
    for index, item in enumerate(inputs):
        if isinstance(item.value.type, ScalarType) and not item.name.isdigit():
            sources.setdefault(item.name, (index, None))
    for index, item in enumerate(inputs):
        if isinstance(item.value.type, TensorType):
            for axis, d in enumerate(item.value.type.shape):
                if isinstance(d, str) and d.isidentifier():
                    sources.setdefault(d, (index, axis))
    used = symbols_in(*(i.value for i in inputs), *nodes, *(o.value for o in outputs))
    missing = sorted(used - sources.keys())
    if missing:
        raise Uncapturable(f"the size {missing[0]}, which is known only after data has been computed")
    return tuple(Symbol(s, *ranges.get(s, (0, None)), sources[s]) for s in sources if s in used)
