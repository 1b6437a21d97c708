"""With which strides tensors come to generated code, and leave it.

What a forward saves nobody but its backward sees. So Inductor lays out images as it likes, which is with channels last,
and generates the backward for what it gets. Where sizes are symbols, all is laid out as it was captured; so is what has
fewer dimensions, whose rows Inductor would pad, and with them those of results that are views of it.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from fairlead.interpret import overlaps, restride
from fairlead.ir import Graph, Kind, Output, Role, TensorType, Value, dims, row_major
from fairlead_inductor._columns import call, join_columns

__all__ = ["Layouts", "channels_last", "laying_out", "weighs_more_than_images"]

_ANY = (Role.intermediate, Role.constant, Role.saved)
"""What may come with other strides than it was captured with, whatever guards a call."""

_IMAGE = 4
"""So many dimensions have images at least: samples, channels, height and width."""


class _Wanted(NamedTuple):
    """The inputs that are wanted row-major, which is quickly told, and others with the strides that they need."""

    row_major: tuple[int, ...]
    others: tuple[tuple[int, tuple[int, ...]], ...]


_is_row_major = torch.Tensor.is_contiguous


class Layouts:
    """The strides of a graph's inputs: as captured, but for what a forward saved, where `meet` found other ones.

    ``written``: the inputs that code writes to, of which there can be no copy.
    """

    def __init__(self, graph: Graph, written: Collection[int] = ()) -> None:
        self._graph = graph
        self._names = [s.name for s in graph.symbols]
        tensors = [i for i, item in enumerate(graph.inputs) if isinstance(item.value.type, TensorType)]
        self._saved = [i for i in tensors if graph.inputs[i].role is Role.saved]
        guarded = [] if self._names else [i for i in tensors if i not in written]
        self._varying = [i for i in tensors if graph.inputs[i].role in _ANY or i in guarded]
        self._met: dict[int, tuple[int, ...]] = {}
        self._wanted: _Wanted | None = None

    @property
    def waits(self) -> bool:
        """Whether the first call decides how some of them lie."""
        return bool(self._saved) and not self._names

    def meet(self, inputs: Sequence[Any]) -> None:
        """Generate code for the saved tensors as they lie here."""
        if not self._names:
            self._met = {
                i: inputs[i].stride() for i in self._saved if not overlaps(inputs[i].shape, inputs[i].stride())
            }
            self._wanted = None

    def fit(self, inputs: list[Any], values: Sequence[int]) -> None:
        """Give the inputs the strides that code is generated for; ``values`` are those of the graph's symbols."""
        wanted = self._wanted or self._evaluated(values)
        if not all(map(_is_row_major, [inputs[i] for i in wanted.row_major])):
            for i in wanted.row_major:
                inputs[i] = inputs[i].contiguous()
        for i, strides in wanted.others:
            if inputs[i].stride() != strides:
                inputs[i] = restride(inputs[i], strides)

    def _evaluated(self, values: Sequence[int]) -> _Wanted:
        env = dict(zip(self._names, values, strict=True))
        strides = {i: self.of(i, env) for i in self._varying}
        shapes = {i: tuple(dims.evaluate(d, env) for d in self._graph.inputs[i].value.tensor.shape) for i in strides}
        row_majors = tuple(i for i in strides if strides[i] == row_major(shapes[i]))
        wanted = _Wanted(row_majors, tuple((i, s) for i, s in strides.items() if i not in row_majors))
        if not env:
            self._wanted = wanted
        return wanted

    def of(self, place: int, env: Mapping[str, Any]) -> tuple[Any, ...]:
        """The strides of the input at ``place``, a tensor; ``env`` has the values of the symbols."""
        if place in self._met:
            return self._met[place]
        type_ = self._graph.inputs[place].value.tensor
        strides = type_.strides if type_.strides is not None else row_major(type_.shape)
        return tuple(dims.evaluate(s, env) for s in strides)


def laying_out(
    graph: Graph, written: Collection[int], inner: Callable[..., Any], *, is_recorded: bool = False
) -> Callable[..., Any]:
    """Inductor's ``inner_compile``: its code lays out what a caller sees as captured, and saved images as it likes.

    Gradients of convolutions come with channels last, and results of padded products with gaps: torch would copy each
    by a kernel of its own. ``written``: the outputs that are not among the results of the module.
    """
    outputs = [output for k, output in enumerate(graph.outputs) if k not in written]
    saved = [k for k, output in enumerate(outputs) if output.role is Role.saved and not graph.symbols]
    images = {k for k in saved if _rank(outputs[k]) >= _IMAGE}
    seen = [k for k, output in enumerate(outputs) if _is_laid_out(output, graph)]

    def compiler(module: torch.fx.GraphModule, *args: Any, **how: Any) -> Any:
        output = module.graph.output_node()
        output.meta[_SEEN] = [k for k in output.meta.get(_SEEN, ()) if k not in images]
        if not graph.symbols:
            for k in seen:
                _join_columns_shown(output.args[0][k], is_recorded)  # type: ignore[index,arg-type]
        results: Sequence[Any] = output.args[0]  # type: ignore[assignment]
        with module.graph.inserting_before(output):
            laid_out = [_row_major(x, not graph.symbols) if k in seen else x for k, x in enumerate(results)]
        output.args = (tuple(laid_out),)
        if _STRIDES in output.meta:
            known = output.meta[_STRIDES]
            changed = {k: x for k, x in enumerate(laid_out) if x is not results[k]}
            output.meta[_STRIDES] = [
                changed[k].meta["val"].stride() if k in changed else s for k, s in enumerate(known)
            ]
        module.recompile()
        return inner(module, *args, **how)

    return compiler


def _rank(output: Output) -> int:
    return output.value.tensor.rank if isinstance(output.value, Value) else 0


def _is_laid_out(output: Output, graph: Graph) -> bool:
    """Whether a caller sees it, row-major. Where sizes are symbols only images are looked at: to ask is a guard."""
    if output.role in (Role.saved, Role.mutation) or not isinstance(output.value, Value):
        return False
    is_asked = not graph.symbols or (graph.kind is Kind.backward and _rank(output) >= _IMAGE)
    return is_asked and output.value.tensor.strides is None


def _row_major(node: torch.fx.Node, is_static: bool) -> torch.fx.Node:
    """The value with the strides of its shape, for dimensions of one as well, to which torch leaves any."""
    found = _as_computed(node)
    if not found.is_contiguous():
        return call(torch.ops.aten.clone.default, node, memory_format=torch.contiguous_format)
    if is_static and found.stride() != row_major(found.shape):
        flat = call(torch.ops.aten.view.default, node, [n for n in found.shape if n != 1])
        return call(torch.ops.aten.view.default, flat, list(found.shape))
    return node


def _as_computed(node: torch.fx.Node) -> torch.Tensor:
    """What is known of a value, told anew where it is a view.

    A pass that pads a product and takes a part of the result leaves there what was known before.
    """
    if not _is_view(node):
        found: torch.Tensor = node.meta["val"]
        return found
    of, *others = node.args
    assert isinstance(of, torch.fx.Node), "a view is of a tensor"
    with contextlib.suppress(RuntimeError, ValueError):  # what cannot be seen so is copied
        node.meta["val"] = node.target(_as_computed(of), *others, **node.kwargs)  # type: ignore[operator]
    known: torch.Tensor = node.meta["val"]
    return known


def _join_columns_shown(node: torch.fx.Node, is_recorded: bool) -> None:
    """Have the columns lie together of a padded product of which the node shows a part, whatever it is a view of."""
    if node.target is torch.ops.aten.slice.Tensor:
        join_columns(node, is_recorded=is_recorded)
        return
    of = node.args[0] if _is_view(node) else None
    if isinstance(of, torch.fx.Node):
        _join_columns_shown(of, is_recorded)


def _is_view(node: torch.fx.Node) -> bool:
    """Whether the node is a view of one tensor by sizes that are numbers."""
    op = node.target
    if not isinstance(op, torch._ops.OpOverload) or not (op.is_view or op is torch.ops.aten._unsafe_view.default):
        return False
    return not any(isinstance(a, torch.fx.Node) for a in pytree.tree_leaves((node.args[1:], node.kwargs)))


def weighs_more_than_images(graph: Graph) -> bool:
    """Whether a graph on the CPU has convolutions whose weights have more elements than what they convolve.

    Inductor gives images channels last, which oneDNN is quick with, and has each weight laid out so in each call.
    """
    weights = images = 0
    for node in graph.walk():
        if node.op == "aten.convolution.default":
            image, weight, *_ = (v.tensor for v in node.operands())
            if image.device != "cpu" or not (image.is_static and weight.is_static):
                return False
            weights += math.prod(n for n in weight.shape if isinstance(n, int))
            images += math.prod(n for n in image.shape if isinstance(n, int))
    return weights > images


def channels_last(inner: Callable[..., Any], *, turns_weights: bool = False) -> Callable[..., Any]:
    """``inner``, for modules whose convolutions' inputs and weights lie as the gradients that come to them do.

    ATen's kernels go by the former, and turn gradients over where those are images of a caller's.
    ``turns_weights``: those beside an image that lies so as well. ATen turns each of these, by a kernel that takes the
    device longer than Inductor's, and the host less.
    """

    def compiler(module: torch.fx.GraphModule, *args: Any, **how: Any) -> Any:
        for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.convolution_backward.default):
            gradient, *others = node.args[:3]
            if not _has_channels_last(gradient) or all(map(_has_channels_last, others)):
                continue
            if turns_weights or not any(map(_goes_by_channels_last, others)):
                _turn(node, [place for place, x in enumerate(others, start=1) if not _has_channels_last(x)])
        module.recompile()
        return inner(module, *args, **how)

    return compiler


def _turn(node: torch.fx.Node, places: Sequence[int]) -> None:
    """Give these arguments channels last, and tell anew how the results lie, which go by them."""
    with node.graph.inserting_before(node):
        for place in places:
            turned = call(torch.ops.aten.clone.default, node.args[place], memory_format=torch.channels_last)
            node.update_arg(place, turned)
    known = torch.fx.map_arg(node.args, lambda x: x.meta["val"])
    node.meta["val"] = node.target(*known)  # type: ignore[operator]
    for user in node.users:
        if user.target is operator.getitem:
            user.meta["val"] = node.meta["val"][user.args[1]]


def _goes_by_channels_last(node: Any) -> bool:
    """Whether ATen takes it for one with channels last: of one that lies either way it does not."""
    return _has_channels_last(node) and not node.meta["val"].is_contiguous()


def _has_channels_last(node: Any) -> bool:
    found: torch.Tensor = node.meta["val"]
    return found.dim() != _IMAGE or found.is_contiguous(memory_format=torch.channels_last)


_SEEN = "user_visible_output_idxs"
"""Where Inductor notes which outputs keep their strides; without it none do."""

_STRIDES = "original_output_strides"
"""Where it notes these strides, from torch 2.15 on before it is given the module; before, when it has it."""
