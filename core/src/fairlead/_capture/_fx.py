"""One AOTAutograd graph (FX over ATen) to one graph of the IR."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Node as FxNode

from fairlead._capture._groups import with_group_size
from fairlead._capture._higher_order import HIGHER_ORDER
from fairlead._capture._locations import location_of
from fairlead._capture._memory import read_from_base
from fairlead._capture._operators import arguments_in_order, operator_of
from fairlead._capture._symbols import sources_of, symbols_of
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
    symbols = symbols_of(gm, inputs, reader.nodes, reader.outputs)
    graph = Graph(name, kind, tuple(inputs), tuple(reader.nodes), tuple(reader.outputs), symbols)
    return Read(graph, {first + i: tensor for i, (_, tensor) in enumerate(reader.constants)})


_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)

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
                value = self.values.get(arg)
                return _number(arg.meta.get("val")) if value is None or type(value.type) is ScalarType else value
            case None | int() | float() | str():
                return arg
            case list() | tuple():
                return tuple(map(self.argument, arg))
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
        if isinstance(meta, _NUMBERS):
            return  # sizes live in dimension expressions; other numbers are an error where a node uses them
        if node.target is operator.getitem and (node in self.values or isinstance(meta, list | tuple | None)):
            return
        if isinstance(node.target, torch._ops.OpOverload):
            self._operator(node, node.target, meta)
        elif isinstance(node.target, torch._ops.HigherOrderOperator):
            self._higher_order(node, gm)
        else:
            raise Uncapturable(f"the operator {getattr(node.target, '__name__', node.target)}")

    def _operator(self, node: FxNode, target: torch._ops.OpOverload, meta: Any) -> None:
        known = operator_of(target)
        if known.name in _DROPPED:
            return
        if known.refusal:
            raise Uncapturable(known.refusal)
        given = arguments_in_order(target, node.args, node.kwargs)
        for position in known.dtypes:
            if type(given[position]) is int:  # a schema gives its default dtype as a number
                given[position] = meta.dtype
        read = read_from_base(node, given)
        if read is None:
            raise Uncapturable("as_strided of a view of an input")
        op, args = known.name, with_group_size(known.name, tuple(map(self.argument, read)))
        if op in _PHYSICAL:
            op = _PHYSICAL[op]
            if not isinstance(args[0], Value):
                op, args = "aten.scalar_tensor.default", _resolved_number(read[0], op, meta)
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
        if meta is None:
            return None
        return truth(meta) if isinstance(meta, torch.SymBool) else dimension(meta)


def _resolved_number(number: complex, op: str, meta: torch.Tensor) -> tuple[Argument, ...]:
    """The arguments of the tensor that a number is, conjugated or negated."""
    changed = -number if op == "aten.neg.default" else number.conjugate()
    fill = Complex(changed.real, changed.imag) if isinstance(changed, complex) else changed
    return fill, Token("dtype", dtype_name(meta.dtype)), None, Token("device", str(meta.device)), None


def _number(value: Any) -> Argument:
    """A number, or nothing, which some operators give in the place of a tensor."""
    return value if isinstance(value, bool | float | None) else dimension(value)
