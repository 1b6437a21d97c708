"""Higher-order operators: control flow as nodes with regions, nested regions inlined, random state as a value.

A region is a closed graph: the tensors that its body takes from around it are operands, in torch's order, then those
that the bodies themselves hold. Symbols of the graph around it hold in it too; it declares only what it is given
anew, the integers that a loop carries.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node as FxNode

from fairlead._capture._locations import location_of
from fairlead._capture._mutating_ops import functionalized
from fairlead._capture._operators import arguments_in_order
from fairlead._capture._symbols import symbols_of
from fairlead._capture._types import Uncapturable, truth, type_of
from fairlead.ir import (
    Argument,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    Role,
    TensorType,
    Token,
    Value,
)
from fairlead.passes import substitute

if TYPE_CHECKING:
    from fairlead._capture._fx import Reader

Read = Callable[["Reader", FxNode, torch.fx.GraphModule], None]


def _cond(reader: Reader, node: FxNode, gm: torch.fx.GraphModule) -> None:
    pred, on_true, on_false, operands = node.args
    bodies = _Bodies(reader, gm, (on_true, on_false), operands)
    _append(reader, node, "hop.cond", (_predicate(reader, pred), bodies.operands), bodies.regions)


def _predicate(reader: Reader, pred: Any) -> Argument:
    meta = pred.meta.get("val") if isinstance(pred, FxNode) else pred
    return truth(meta) if isinstance(meta, torch.SymBool | bool) else reader.argument(pred)


def _while_loop(reader: Reader, node: FxNode, gm: torch.fx.GraphModule) -> None:
    condition, body, carried, rest = node.args
    bodies = _Bodies(reader, gm, (condition, body), rest, carried)
    _append(reader, node, "hop.while_loop", (bodies.leading, bodies.operands), bodies.regions)


def _scan(reader: Reader, node: FxNode, gm: torch.fx.GraphModule) -> None:
    body, init, xs, rest = node.args
    bodies = _Bodies(reader, gm, (body,), rest, [*init, *xs])  # type: ignore[misc]
    count = len(init)  # type: ignore[arg-type]
    args = (bodies.leading[:count], bodies.leading[count:], bodies.operands)
    _append(reader, node, "hop.scan", args, bodies.regions)


def _map(reader: Reader, node: FxNode, gm: torch.fx.GraphModule) -> None:
    body, xs, rest = node.args
    bodies = _Bodies(reader, gm, (body,), rest, xs)
    _append(reader, node, "hop.map", (bodies.leading, bodies.operands), bodies.regions)


def _append(reader: Reader, node: FxNode, op: str, args: tuple[Argument, ...], regions: tuple[Graph, ...]) -> None:
    results = reader.results(node, node.meta["val"])
    reader.nodes.append(Node(op, args, results, location_of(node), regions))


class _Bodies:
    """The regions of one node and what they are called with: ``leading`` by position, then ``operands``."""

    def __init__(
        self, reader: Reader, gm: torch.fx.GraphModule, bodies: Sequence[Any], rest: Any, leading: Any = ()
    ) -> None:
        self._readers = [_read_body(reader, gm, body) for body in bodies]
        self.leading = tuple(reader.argument(a) for a in leading)
        kept = [a for a in rest if _is_tensor(a)]
        positions = [*range(len(leading)), *(len(leading) + i for i, a in enumerate(rest) if _is_tensor(a))]
        inputs = [[r.inputs[i] for i in positions] for r in self._readers]
        operands: list[Argument] = [reader.argument(a) for a in kept]
        for index, body in enumerate(self._readers):
            for item, tensor in body.constants:
                operands.append(reader.constant(tensor, item.name))
                for other, taken in zip(self._readers, inputs, strict=True):
                    value = item.value if other is self._readers[index] else other.typed(item.value.type)
                    taken.append(Input(value))
        self.operands = tuple(operands)
        self.regions = tuple(map(_region, self._readers, inputs))


def _is_tensor(arg: Any) -> bool:
    return isinstance(arg, FxNode) and isinstance(arg.meta.get("val"), torch.Tensor)


def _read_body(reader: Reader, gm: torch.fx.GraphModule, body: Any) -> Reader:
    inner = reader.inside(operator.attrgetter(str(body.target))(gm))
    inner.read()
    return inner


def _region(body: Reader, inputs: Sequence[Input]) -> Graph:
    """A body as a graph; its inputs are known by their place, but for the integers that a loop carries."""
    taken = tuple(i if i.role is Role.symbol else Input(i.value) for i in inputs)
    symbols = symbols_of(body.gm, taken, body.nodes, body.outputs, body.scope)
    return Graph("region", Kind.region, taken, tuple(body.nodes), tuple(body.outputs), symbols)


def _inline(reader: Reader, node: FxNode, gm: torch.fx.GraphModule) -> None:
    """``invoke_subgraph``: the nested region's nodes in place of the call."""
    body, _, *operands = node.args
    inner = operator.attrgetter(str(body.target))(gm)  # type: ignore[union-attr]
    given = iter(operands)
    for step in inner.graph.nodes:
        if step.op == "placeholder":
            _bind(reader, step, next(given))
        elif step.op == "output":
            _take(reader, node, step.args[0])
        else:
            reader.step(step, inner)


def _bind(reader: Reader, placeholder: FxNode, operand: Any) -> None:
    if not _is_tensor(operand):
        return
    value = reader.values[operand]
    traced = type_of(placeholder.meta["val"])
    if (traced.dtype, traced.shape) != (value.tensor.dtype, value.tensor.shape):
        raise Uncapturable("a nested region that is called with other sizes than it was traced with")
    reader.values[placeholder] = value


def _take(reader: Reader, node: FxNode, items: Sequence[Any]) -> None:
    for user in node.users:
        item = items[int(user.args[1])]  # type: ignore[arg-type]
        if item in reader.values:
            reader.values[user] = reader.values[item]


_STATE_BYTES: Mapping[str, int] = {"cpu": 5056, "cuda": 16}
"""What torch keeps of its default generator, by device."""


def _save_rng_state(reader: Reader, node: FxNode, gm: torch.fx.GraphModule) -> None:
    op, *args = node.args
    device = _device_of(args, node)
    state: Value | None = None
    drawn: FxNode | None = None
    for user in node.users:
        if user.args[1] == 0:
            state = reader.typed(TensorType(DType.u8, (_STATE_BYTES[_kind(device)],)))
            reader.values[user] = state
        else:
            drawn = user
    operands, region, results = _drawing(reader, _overload(op), args, node.kwargs, drawn)
    whole = (Token("device", device), operands)
    reader.nodes.append(Node("hop.run_and_save_rng_state", whole, (state, *results), location_of(node), (region,)))


def _run_with_rng_state(reader: Reader, node: FxNode, gm: torch.fx.GraphModule) -> None:
    state, op, *args = node.args
    operands, region, results = _drawing(reader, _overload(op), args, node.kwargs, node)
    whole = (Token("device", _device_of(args, node)), reader.argument(state), operands)
    reader.nodes.append(Node("hop.run_with_rng_state", whole, results, location_of(node), (region,)))


def _overload(op: object) -> torch._ops.OpOverload:
    if not isinstance(op, torch._ops.OpOverload):
        raise Uncapturable(f"the random state around {op}")
    return op


def _device_of(args: Sequence[Any], node: FxNode) -> str:
    metas = (a.meta.get("val") for a in args if isinstance(a, FxNode))
    device = next((str(m.device) for m in metas if isinstance(m, torch.Tensor)), None)
    device = device or str(torch.device(node.kwargs.get("device") or "cpu"))  # type: ignore[arg-type]
    if _kind(device) not in _STATE_BYTES:
        raise Uncapturable(f"the random state of the device {device}")
    return device


def _kind(device: str) -> str:
    return device.partition(":")[0]


def _drawing(
    reader: Reader, op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], drawn: FxNode | None
) -> tuple[tuple[Argument, ...], Graph, tuple[Value | None, ...]]:
    """The operands, the region and the results of one op that draws random numbers."""
    given = tuple(reader.argument(a) for a in arguments_in_order(op, args, kwargs))
    outer = tuple(dict.fromkeys(v for a in given for v in _values(a)))
    body = reader.inside(reader.gm)
    taken = [Input(body.typed(v.type)) for v in outer]
    inner = substitute(given, {o.id: i.value for o, i in zip(outer, taken, strict=True)})
    results = _drawn(reader, op, drawn)
    own = tuple(None if r is None else body.typed(r.type) for r in results)
    body.nodes.append(Node(str(op), inner, own))
    body.outputs.extend(Output(v) for v in own)
    return outer, _region(body, taken), results


def _drawn(reader: Reader, op: torch._ops.OpOverload, drawn: FxNode | None) -> tuple[Value | None, ...]:
    results: list[Value | None] = [None] * len(op._schema.returns)
    if drawn is None:
        return tuple(results)
    if len(results) == 1:
        return reader.results(drawn, drawn.meta.get("val"))
    for user in drawn.users:
        index = int(user.args[1])  # type: ignore[arg-type]
        results[index] = results[index] or reader.value(user.meta["val"])
        reader.values[user] = results[index]  # type: ignore[assignment]
    return tuple(results)


def _values(arg: Argument) -> Iterator[Value]:
    if isinstance(arg, Value):
        yield arg
    elif isinstance(arg, tuple):
        for item in arg:
            yield from _values(item)


HIGHER_ORDER: Mapping[str, Read] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
    "invoke_subgraph": _inline,
    "auto_functionalized": functionalized,
    "auto_functionalized_v2": functionalized,
    "run_and_save_rng_state": _save_rng_state,
    "run_with_rng_state": _run_with_rng_state,
}
