"""A graph of the IR as an FX module that runs it op by op."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from fairlead._torch_types import TORCH_DTYPES
from fairlead.errors import IRFormatError
from fairlead.interpret._control_flow import call_of
from fairlead.interpret._groups import torchs_arguments
from fairlead.interpret._own import OWN
from fairlead.interpret._sizes import Sizes
from fairlead.interpret._strides import restride
from fairlead.interpret._targets import Target, torch_target
from fairlead.ir import (
    Argument,
    Complex,
    DimExpr,
    DType,
    Graph,
    Node,
    TensorType,
    Token,
    Value,
    row_major,
    symbols_in,
)
from fairlead.passes import WAIT, layout_sensitive


def to_fx(graph: Graph) -> torch.fx.GraphModule:
    """The graph as a module that takes one argument for each input and returns a tuple with one item for each output.

    Inputs are tensors of the declared type, or ints. An FX node that runs a node of the graph has it in
    ``meta["node"]``, and one that gives a value of the graph has that in ``meta["value"]``. Raises `IRFormatError` for
    an op that this torch does not have, or that has other parameters.
    """
    return _Writer(graph).write()


def run(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Run a graph once on tensors (and ints for scalar inputs), without gradients.

    >>> from fairlead.ir import DType, Graph, Input, Kind, Node, Output, TensorType, Value
    >>> x, y = Value(0, TensorType(DType.f32, (2,))), Value(1, TensorType(DType.f32, (2,)))
    >>> neg = Node("aten.neg.default", (x,), (y,))
    >>> run(Graph("g", Kind.inference, (Input(x),), (neg,), (Output(y),)), [torch.tensor([1.0, -2.0])])
    (tensor([-1.,  2.]),)
    """
    with torch.no_grad():
        return tuple(to_fx(graph)(*inputs))


def _copied(carry: Any) -> Any:
    return carry.clone() if isinstance(carry, torch.Tensor) else carry


class _Writer:
    def __init__(self, graph: Graph, outer: Sequence[str] = ()) -> None:
        self.graph = graph
        self.outer = outer
        self.modules: dict[str, torch.fx.GraphModule] = {}
        self.fx = torch.fx.Graph()
        self.env: dict[int, torch.fx.Node] = {}
        self.size = Sizes(self.fx, graph, self.env)

    def write(self) -> torch.fx.GraphModule:
        self._body()
        self.fx.output(tuple(self._argument(o.value) for o in self.graph.outputs))
        return self._module()

    def write_region(self, *, is_condition: bool) -> torch.fx.GraphModule:
        """The body of control flow, which takes the symbols of the graph around it as further arguments.

        Its results lie in memory as declared, because those of branches have to agree.
        The condition of a loop is one truth value, not a tuple.
        """
        self._body()
        outputs = [self._laid_out(self._argument(o.value), o.value) for o in self.graph.outputs]
        if is_condition:
            self.fx.output(self._truth(outputs[0], self.graph.outputs[0].value))
        else:
            self.fx.output(tuple(outputs))
        return self._module()

    def _body(self) -> None:
        for i, item in enumerate(self.graph.inputs):
            self.env[item.value.id] = self.fx.placeholder(f"in_{i}")
        for name in self.outer:
            self.size.give(name, self.fx.placeholder(f"symbol_{name}"))
        for node in self.graph.nodes:
            if node.regions:
                self._results(node, node.results, self._with_regions(node), several=True)
            else:
                self._node(node, OWN[node.op] if node.op in OWN else torch_target(node.op))

    def _module(self) -> torch.fx.GraphModule:
        return torch.fx.GraphModule(self.modules, self.fx, class_name=f"fairlead_{self.graph.name}")

    def _node(self, node: Node, target: Target) -> None:
        names = target.keywords
        if len(node.args) != len(names):
            raise IRFormatError(
                f"{node.op} takes {len(names)} arguments, not {len(node.args)}",
                where=f"torch {torch.__version__}; {node.location or 'unknown line'}",
                next="write one argument for each parameter of the op's signature, defaults included",
            )
        args = [self._argument(a) for a in torchs_arguments(node)]
        if layout_sensitive(node.op) and node.op != WAIT:  # a copy of what is not there yet would be of anything
            args = [self._laid_out(a, given) for a, given in zip(args, node.args, strict=True)]
        copies = [copy for index in target.written for copy in self._cloned(args, index)]
        positional = tuple(a for a, name in zip(args, names, strict=True) if name is None)
        keywords = {name: a for a, name in zip(args, names, strict=True) if name is not None}
        if node.op == "aten.clone.default" and node.args[1] is None and node.result.tensor.strides is None:
            keywords["memory_format"] = torch.contiguous_format  # or it would lie as what it is a copy of
        result = self.fx.call_function(target.function_for(node.args), positional, keywords)
        own = len(node.results) - len(copies)
        self._results(node, node.results[:own], result, several=target.several)
        for value, copy in zip(node.results[own:], copies, strict=True):
            if value is not None:
                self._bind(value, copy)

    def _cloned(self, args: list[Any], index: int) -> list[torch.fx.Node]:
        """The tensors of an argument that an op writes to, as copies that stand in for them."""
        arg = args[index]
        copies = [
            self.fx.call_function(torch.clone, (a,)) for a in (arg if isinstance(arg, list) else [arg]) if a is not None
        ]
        args[index] = (copies if isinstance(arg, list) else copies[0]) if copies else arg
        return copies

    def _with_regions(self, node: Node) -> torch.fx.Node:
        free = sorted(symbols_in(*node.regions))
        regions = []
        for index, region in enumerate(node.regions):
            name = f"region_{len(self.modules)}"
            is_condition = node.op == "hop.while_loop" and index == 0
            self.modules[name] = _Writer(region, free).write_region(is_condition=is_condition)
            regions.append(self.fx.get_attr(name))
        args = [self._argument(a) for a in node.args]
        if node.op == "hop.cond":
            args[0] = self._truth(args[0], node.args[0])
        if node.op == "hop.while_loop":  # torch's compilers refuse a carry that shares memory with another operand
            args[0] = [self.fx.call_function(_copied, (a,)) for a in args[0]]
        if isinstance(args[-1], list):
            args[-1] += map(self.size, free)
        call = call_of(node.op, args, regions)
        if call is None:
            raise IRFormatError(
                f"the op {node.op} has no meaning with regions",
                where=f"torch {torch.__version__}; {node.location or 'unknown line'}",
                next="use an op of control flow that the opset has",
            )
        return self.fx.call_function(*call)

    def _truth(self, outcome: Any, given: Argument) -> Any:
        """A truth value: of an integer, whether it is not zero."""
        return outcome if isinstance(given, Value) else self.fx.call_function(operator.ne, (outcome, 0))

    def _results(self, node: Node, results: Sequence[Value | None], made: torch.fx.Node, *, several: bool) -> None:
        made.meta["node"] = node
        if not several:
            (value,) = results
            if value is not None:
                self._bind(value, made)
            return
        for index, value in enumerate(results):
            if value is not None:
                self._bind(value, self.fx.call_function(operator.getitem, (made, index)))

    def _bind(self, value: Value, made: torch.fx.Node) -> None:
        made.meta["value"] = value
        self.env[value.id] = made

    def _laid_out(self, arg: Any, given: object) -> Any:
        """A value that is read as it lies in memory, with the strides that its type has."""
        if isinstance(given, tuple):
            return [self._laid_out(a, g) for a, g in zip(arg, given, strict=True)]
        if not isinstance(given, Value) or not isinstance(given.type, TensorType):
            return arg
        strides = given.type.strides if given.type.strides is not None else row_major(given.type.shape)
        return self.fx.call_function(restride, (arg, [self.size(s) for s in strides]))

    def _argument(self, arg: Argument) -> Any:
        match arg:
            case Value():
                return self.env[arg.id]
            case DimExpr(expr=expr):
                return self.size(expr)
            case Token():
                return _token(arg)
            case Complex(re=re, im=im):
                return complex(re, im)
            case tuple():
                return [self._argument(a) for a in arg]
        return arg


def _token(token: Token) -> Any:
    match token.kind:
        case "dtype":
            return TORCH_DTYPES[DType(token.name)]
        case "device":
            return torch.device(token.name)
    return getattr(torch, token.name)
