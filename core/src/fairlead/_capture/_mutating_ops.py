"""Custom operators that write to their arguments, as functions: what they would write is a result.

The results of such a node are those of the op and then, for each tensor that it writes to in the order of its
parameters, what it holds afterwards. Torch has them as ``auto_functionalized`` and ``auto_functionalized_v2``, of which
the second says which tensors the arguments are views of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import torch
from torch.fx import Node as FxNode

from fairlead._capture._locations import location_of
from fairlead._capture._types import Uncapturable
from fairlead.ir import Argument, Node, TensorType, Value, dims, row_major

if TYPE_CHECKING:
    from fairlead._capture._fx import Reader


class _View(NamedTuple):
    """How an argument shows a base: the op that makes the view, the one that puts it back, and their arguments."""

    base: int
    show: str = ""
    put: str = ""
    args: tuple[Argument, ...] = ()


def functionalized(reader: Reader, node: FxNode, gm: torch.fx.GraphModule) -> None:
    """A call of an operator that writes to its arguments, in either form."""
    op, kwargs = node.args[0], dict(node.kwargs)
    if not isinstance(op, torch._ops.OpOverload):
        raise Uncapturable("a branch or loop body that writes to what it is given")
    given: Any = kwargs.pop("_all_bases", None)
    bases = [] if given is None else [reader.values[b] for b in given]
    views: list[_View] = []
    args: list[Argument] = []
    for parameter in op._schema.arguments:
        name = parameter.name
        if not _writes(parameter):
            args.append(reader.argument(kwargs.get(name, parameter.default_value)))
        elif given is None:
            shown = reader.argument(kwargs[name])
            views.extend(_View(len(bases) + i) for i, _ in enumerate(_tensors(shown)))
            bases.extend(_tensors(shown))
            args.append(shown)
        else:
            found = _views(reader, kwargs, f"_{name}", str(op))
            views.extend(_each(found))
            args.append(_shown(reader, node, bases, found))
    if len({v.base for v in views}) < len(views):
        raise Uncapturable(f"the operator {op}, which writes to two views of one tensor")
    _append(reader, node, op, tuple(args), bases, views)


def _append(
    reader: Reader,
    node: FxNode,
    op: torch._ops.OpOverload,
    args: tuple[Argument, ...],
    bases: list[Value],
    views: list[_View],
) -> None:
    written = [v for p, a in zip(op._schema.arguments, args, strict=True) if _writes(p) for v in _tensors(a)]
    new = [reader.typed(v.type) for v in written]
    meta = node.meta["val"]
    own: list[Value | None] = [None] * len(op._schema.returns)
    for index in {int(u.args[1]) for u in node.users} & set(range(len(own))):  # type: ignore[arg-type]
        own[index] = reader.value(meta[index])
    reader.nodes.append(Node(str(op), args, (*own, *new), location_of(node)))
    after = list(bases)
    for view, value in zip(views, new, strict=True):
        after[view.base] = _put(reader, node, bases[view.base], value, view)
    first = max(len(own), 1)  # of an op without results torch lists None
    for user in node.users:
        index = int(user.args[1])  # type: ignore[arg-type]
        found = own[index] if index < len(own) else after[index - first]
        assert found is not None, "the results that are used have been made"
        reader.values[user] = found


def _writes(parameter: torch._C.Argument) -> bool:
    return parameter.alias_info is not None and parameter.alias_info.is_write


def _tensors(arg: Argument) -> Iterator[Value]:
    if isinstance(arg, Value):
        yield arg
    elif isinstance(arg, tuple):
        for item in arg:
            yield from _tensors(item)


def _each(found: _View | list[_View | None] | None) -> Iterator[_View]:
    yield from (v for v in (found if isinstance(found, list) else [found]) if v is not None)


def _views(reader: Reader, kwargs: Mapping[str, Any], prefix: str, op: str) -> _View | list[_View | None] | None:
    if f"{prefix}_length" in kwargs:
        length = kwargs[f"{prefix}_length"]
        return None if length is None else [_view(reader, kwargs, f"{prefix}_{i}", op) for i in range(length)]
    return _view(reader, kwargs, prefix, op)


def _view(reader: Reader, kwargs: Mapping[str, Any], prefix: str, op: str) -> _View | None:
    if f"{prefix}_base_index" not in kwargs:
        raise Uncapturable(f"the operator {op}, which fills its out arguments")
    base = kwargs[f"{prefix}_base_index"]
    if base is None:
        return None
    if f"{prefix}_slice_dim" in kwargs:
        cut = tuple(reader.argument(kwargs[f"{prefix}_slice_{part}"]) for part in ("dim", "start", "end"))
        return _View(base, "aten.slice.Tensor", "aten.slice_scatter.default", (*cut, 1))
    if f"{prefix}_storage_offset" in kwargs:
        place = tuple(reader.argument(kwargs[f"{prefix}_{part}"]) for part in ("size", "stride", "storage_offset"))
        return _View(base, "aten.as_strided.default", "aten.as_strided_scatter.default", place)
    return _View(base)


def _shown(reader: Reader, node: FxNode, bases: list[Value], found: _View | list[_View | None] | None) -> Argument:
    if isinstance(found, list):
        return tuple(_shown(reader, node, bases, v) for v in found)
    if found is None:
        return None
    base = bases[found.base]
    if not found.show:
        return base
    value = reader.typed(_type_of_view(base.tensor, found))
    reader.nodes.append(Node(found.show, (base, *found.args), (value,), location_of(node)))
    return value


def _type_of_view(base: TensorType, view: _View) -> TensorType:
    strides = base.strides if base.strides is not None else row_major(base.shape)
    if view.show == "aten.as_strided.default":
        shape, strides = (tuple(map(_dim, part)) for part in view.args[:2])  # type: ignore[arg-type]
    else:
        axis, start, end = (_dim(a) for a in view.args[:3])
        length = dims.add(end, dims.mul(-1, start))
        shape = tuple(length if i == axis else d for i, d in enumerate(base.shape))
    return msgspec.structs.replace(base, shape=shape, strides=None if strides == row_major(shape) else strides)


def _dim(arg: Any) -> dims.Dim:
    return arg if isinstance(arg, int) else str(arg.expr)


def _put(reader: Reader, node: FxNode, base: Value, new: Value, view: _View) -> Value:
    if not view.put:
        return new
    value = reader.typed(base.type)
    reader.nodes.append(Node(view.put, (base, new, *view.args), (value,), location_of(node)))
    return value
