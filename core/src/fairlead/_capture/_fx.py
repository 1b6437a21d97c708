"""One AOTAutograd graph (FX over ATen) to one graph of the IR."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Node as FxNode

from fairlead._capture._arguments import arguments_in_order
from fairlead._capture._higher_order import HIGHER_ORDER
from fairlead._capture._locations import location_of
from fairlead._capture._memory import read_from_base
from fairlead._capture._symbols import ranges_of, sources_of, symbols_of
from fairlead._capture._types import Uncapturable, dim, dimension, dtype_name, truth, type_of
from fairlead.ir import (
    Argument,
    Complex,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    Role,
    ScalarType,
    TensorType,
    Token,
    Type,
    Value,
)


class Read(NamedTuple):
    """A graph of the IR and the tensors of its constant inputs, by input index."""

    graph: Graph
    constants: dict[int, torch.Tensor]


def graph_of(gm: torch.fx.GraphModule, name: str, kind: Kind, roles: Sequence[tuple[Role, str]]) -> Read:
    """Read an FX graph.

    ``roles`` gives role and name of the leading placeholders; the others are named after themselves.
    """
    reader = Reader(gm, roles)
    reader.read()
    first = len(reader.inputs)
    inputs = [*reader.inputs, *(item for item, _ in reader.constants)]
    symbols = symbols_of(inputs, reader.nodes, reader.outputs, ranges_of(gm))
    graph = Graph(name, kind, tuple(inputs), tuple(reader.nodes), tuple(reader.outputs), symbols)
    return Read(graph, {first + i: tensor for i, (_, tensor) in enumerate(reader.constants)})


_DROPPED = frozenset({"aten._assert_tensor_metadata.default", "aten.sym_constrain_range_for_size.default"})

_PHYSICAL = {"aten._conj.default": "aten._conj_physical.default", "aten._neg_view.default": "aten.neg.default"}
"""Lazy views by the op that computes what they stand for."""


class Reader:
    """The inputs, nodes, outputs and constants of an FX graph, as far as they have been read."""

    def __init__(
        self, gm: torch.fx.GraphModule, roles: Sequence[tuple[Role, str]] = (), scope: frozenset[str] = frozenset()
    ) -> None:
        self.gm = gm
        self.roles = roles
        self.scope = scope
        self.values: dict[FxNode, Value] = {}
        self.inputs: list[Input] = []
        self.nodes: list[Node] = []
        self.outputs: list[Output] = []
        self.constants: list[tuple[Input, torch.Tensor]] = []
        self._count = 0

    def read(self) -> None:
        """Read the whole graph."""
        for node in self.gm.graph.nodes:
            if node.op == "placeholder":
                self._input(node)
            elif node.op == "output":
                self._outputs(node.args[0])
            else:
                self.step(node, self.gm)

    def inside(self, gm: torch.fx.GraphModule) -> Reader:
        """A reader of a body, in which the symbols known here hold as well."""
        return Reader(gm, (), self.scope | sources_of(self.inputs).keys())

    def step(self, node: FxNode, gm: torch.fx.GraphModule) -> None:
        """Read one node that is neither an input nor the output of its graph."""
        if node.op == "call_function":
            self._call(node, gm)
        elif node.op != "get_attr":
            raise Uncapturable(f"an FX node of kind {node.op}")
        elif isinstance(found := operator.attrgetter(str(node.target))(gm), torch.Tensor):
            self.values[node] = self.constant(found, str(node.target))

    def constant(self, tensor: torch.Tensor, name: str) -> Value:
        """A new value, for a tensor of the program itself."""
        value = self.value(tensor)
        self.constants.append((Input(value, Role.constant, name), tensor))
        return value

    def value(self, tensor: torch.Tensor) -> Value:
        """A new value of the tensor's type."""
        return self.typed(type_of(tensor))

    def typed(self, type_: Type) -> Value:
        """A new value of a type."""
        self._count += 1
        return Value(self._count - 1, type_)

    def argument(self, arg: Any) -> Argument:
        """What an argument of an FX node is in the IR."""
        match arg:
            case FxNode():
                return self.values[arg] if self._is_tensor(arg) else _number(arg.meta.get("val"))
            case list() | tuple():
                return tuple(self.argument(a) for a in arg)
            case torch.dtype():
                return Token("dtype", dtype_name(arg))
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
                return dimension(arg)
        raise Uncapturable(f"an argument of type {type(arg).__name__}")

    def results(self, node: FxNode, meta: Any) -> tuple[Value | None, ...]:
        """New values for the results of a node that something uses, which are known from here on."""
        if isinstance(meta, torch.Tensor):
            self.values[node] = self.value(meta)
            return (self.values[node],)
        if not isinstance(meta, list | tuple):
            raise Uncapturable(f"a result of type {type(meta).__name__} of {node.target}")
        results: list[Value | None] = [None] * len(meta)
        for user in node.users:
            if user.target is not operator.getitem:
                raise Uncapturable(f"a list of tensors from {node.target} used as a whole by {user.target}")
            index = int(user.args[1])  # type: ignore[arg-type]
            if isinstance(meta[index], torch.Tensor):
                results[index] = results[index] or self.value(meta[index])
                self.values[user] = results[index]  # type: ignore[assignment]
        return tuple(results)

    def _input(self, node: FxNode) -> None:
        index = len(self.inputs)
        meta = node.meta.get("val")
        role, name = self.roles[index] if index < len(self.roles) else (Role.user, node.name)
        if isinstance(meta, torch.Tensor):
            value = self.value(meta)
        elif isinstance(meta, int | torch.SymInt):
            value, role = self.typed(ScalarType(DType.i64)), Role.symbol
            name = str(dim(meta))
        else:
            raise Uncapturable(f"a graph input of type {type(meta).__name__}")
        self.values[node] = value
        self.inputs.append(Input(value, role, name))

    def _call(self, node: FxNode, gm: torch.fx.GraphModule) -> None:
        meta = node.meta.get("val")
        if node.target is operator.getitem and (node in self.values or isinstance(meta, list | tuple | None)):
            return
        if isinstance(meta, torch.SymInt | int) and not isinstance(meta, bool):
            return  # sizes live in dimension expressions, wherever they are used
        if isinstance(meta, torch.SymBool | torch.SymFloat | bool | float):
            return  # an error only where a node uses it
        if str(node.target) in _DROPPED:
            return
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            self._higher_order(node, gm)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Uncapturable(f"the operator {getattr(node.target, '__name__', node.target)}")
        if node.target._schema.is_mutable:
            raise Uncapturable(f"the in-place operator {node.target}")
        if str(node.target) == "aten._assert_scalar.default":
            raise Uncapturable("a check of a number that is known only after data has been computed")
        if not node.target._schema.returns:
            raise Uncapturable(f"the operator {node.target}, which has an effect but no result")
        given = read_from_base(node, _arguments(node))
        if given is None:
            raise Uncapturable("as_strided of a view of an input")
        args = tuple(self.argument(a) for a in given)
        op = _PHYSICAL.get(str(node.target), str(node.target))
        if op != str(node.target) and not isinstance(args[0], Value):
            op, args = "aten.scalar_tensor.default", _resolved_number(given[0], op, node.meta["val"])
        self.nodes.append(Node(op, args, self.results(node, meta), location_of(node)))

    def _higher_order(self, node: FxNode, gm: torch.fx.GraphModule) -> None:
        read = HIGHER_ORDER.get(node.target.name())  # type: ignore[union-attr]
        if read is None:
            raise Uncapturable(f"the higher-order operator {node.target}")
        read(self, node, gm)

    def _outputs(self, items: Any) -> None:
        for item in items if isinstance(items, Iterable) else (items,):
            self.outputs.append(Output(self._output(item)))

    def _output(self, item: Any) -> Any:
        if not isinstance(item, FxNode):
            if not isinstance(item, int | None):
                raise Uncapturable(f"an output of type {type(item).__name__}")
            return item
        if item in self.values:
            return self.values[item]
        meta = item.meta.get("val")
        return truth(meta) if isinstance(meta, torch.SymBool) else dimension(meta)

    def _is_tensor(self, node: FxNode) -> bool:
        return node in self.values and isinstance(self.values[node].type, TensorType)


def _resolved_number(number: complex, op: str, meta: torch.Tensor) -> tuple[Argument, ...]:
    """The arguments of the tensor that a number is, conjugated or negated."""
    changed = -number if op == "aten.neg.default" else number.conjugate()
    fill = Complex(changed.real, changed.imag) if isinstance(changed, complex) else changed
    return fill, Token("dtype", dtype_name(meta.dtype)), None, Token("device", str(meta.device)), None


def _number(value: Any) -> Argument:
    return value if isinstance(value, bool | float) else dimension(value)


def _arguments(node: FxNode) -> list[Any]:
    """The arguments in the order of the schema, defaults filled in."""
    args = arguments_in_order(node.target, node.args, node.kwargs)  # type: ignore[arg-type]
    for position, parameter in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if parameter.name == "dtype" and type(args[position]) is int:
            args[position] = node.meta["val"].dtype  # a schema gives its default dtype as a number
    return args
