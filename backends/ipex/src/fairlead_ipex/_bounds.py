"""How large numbers can become: what is proved not to overflow may be computed by kernels that lose NaN."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import fx

from fairlead.passes import is_view
from fairlead_ipex._convolutions import IMAGE, Convolution
from fairlead_ipex._draft import Draft, op_of

__all__ = ["OutOfBoundsError", "keep_within_bounds"]

_MOST_GIVEN = 2.0**24
"""The length of what is checked at a call, as a vector, is to be no larger, and so no number in it: that of a million
pixels of 0 to 255 is not."""

_MOST = 1e37
"""So far below the largest float32 that neither rounding nor a factor of an activation's formula makes it infinite."""

_MOST_READ_TWICE = 1e25
"""So large numbers are checked where several nodes read them, which is between the blocks of a model, lest they are too
large within one."""

_MOST_SUMMED = 1e28
"""The mean of so large numbers, which is made of their sum, is no sum that overflows."""


class OutOfBoundsError(Exception):
    """A number is NaN, infinite, or so large that a product further on might overflow."""


def keep_within_bounds(
    draft: Draft, nodes: Collection[fx.Node], convolutions: Mapping[fx.Node, Convolution]
) -> set[fx.Node]:
    """Those of ``nodes`` that give finite numbers for finite ones at every call.

    Before: any module, with ``convolutions`` as `find_convolutions` leaves it. After: where weights alone do not prove
    it, what goes into a node is checked at each call, which raises `OutOfBoundsError`.
    """
    bounds = _Bounds(draft, convolutions)
    return {node for node in list(draft.graph.nodes) if bounds.add(node, wanted=node in nodes)}


class _Bounds:
    """The largest magnitude of what each node gives; infinity where that is not known."""

    def __init__(self, draft: Draft, convolutions: Mapping[fx.Node, Convolution]) -> None:
        self._draft = draft
        self._gains = {node: _gain(found) for node, found in convolutions.items()}
        self._of: dict[fx.Node, float] = {}

    def add(self, node: fx.Node, *, wanted: bool) -> bool:
        """Note the next node. Whether it is ``wanted`` and bounded; its operands are checked where that is needed."""
        self._of[node] = self._bound(node)
        if not wanted:
            return False
        if self._is_bounded(node):
            if self._of[node] > _MOST_READ_TWICE and len(node.users) > 1:
                self._check(node)
            return True
        for given in self._operands(node):
            self._check(given)
        self._of[node] = self._bound(node)
        if self._is_bounded(node):
            return True
        self._of[node] = math.inf
        return False

    def _is_bounded(self, node: fx.Node) -> bool:
        return all(self._of[n] <= _MOST for n in (node, *self._operands(node)))

    def _operands(self, node: fx.Node) -> list[fx.Node]:
        return node.all_input_nodes[:1] if node in self._gains else node.all_input_nodes

    def _bound(self, node: fx.Node) -> float:
        if (known := self._draft.value(node)) is not None:
            return _largest(known)
        if node.op != "call_function":
            return math.inf
        given = [self._of[n] for n in self._operands(node)]
        if node in self._gains:
            return self._gains[node](given[0])
        op = op_of(node) or ""
        if is_view(op) or node.target is operator.getitem:
            return given[0]
        rule = _RULES.get(op)
        return math.inf if rule is None else rule(given, node.meta["node"].args[1:])

    def _check(self, given: fx.Node) -> None:
        if given.target is _checked:
            return
        with self._draft.graph.inserting_after(given):
            made = self._draft.graph.call_function(_checked, (given,))
        made.meta["value"] = given.meta["value"]
        given.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)
        self._of[made] = _MOST_GIVEN


def _checked(x: torch.Tensor) -> torch.Tensor:
    numbers = x.permute(0, 2, 3, 1) if x.dim() == IMAGE else x  # which is quicker where images are channels last
    if torch.linalg.vector_norm(numbers, dtype=torch.float32) <= _MOST_GIVEN:  # not so of NaN
        return x
    raise OutOfBoundsError


def _gain(found: Convolution) -> Callable[[float], float]:
    """What a convolution makes of a bound: a sum of as much of each weight as is possible."""
    weight = found.weight.double().abs()
    sums = weight.transpose(0, found.channels).flatten(1).sum(1)
    offsets = torch.zeros(()) if found.bias is None else found.bias.double().abs()
    return lambda given: _largest(sums * given + offsets)


def _largest(numbers: torch.Tensor) -> float:
    if not numbers.is_floating_point() or not numbers.numel():
        return math.inf
    most = float(numbers.abs().max())
    return most if math.isfinite(most) else math.inf


_Rule = Callable[[list[float], tuple[Any, ...]], float]


def _same(given: list[float], args: tuple[Any, ...]) -> float:
    return given[0]


def _within_one(given: list[float], args: tuple[Any, ...]) -> float:
    return 1.0 if math.isfinite(given[0]) else math.inf


def _within(given: list[float], args: tuple[Any, ...]) -> float:
    return max(abs(float(a)) for a in args) if math.isfinite(given[0]) else math.inf


def _times(given: list[float], args: tuple[Any, ...]) -> float:
    return given[0] * max(1.0, abs(float(args[0])))


def _mean(given: list[float], args: tuple[Any, ...]) -> float:
    return given[0] if given[0] <= _MOST_SUMMED else math.inf


def _largest_of(given: list[float], args: tuple[Any, ...]) -> float:
    return max(*given, *(abs(float(a)) for a in args if isinstance(a, int | float)))


def _sum(given: list[float], args: tuple[Any, ...]) -> float:
    return sum(given) if len(given) == 2 and args[1] == 1 else math.inf


_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys((f"aten.{name}.default" for name in ("relu", "silu", "hardswish", "gelu", "clone")), _same),
    **dict.fromkeys((f"aten.{name}.default" for name in ("sigmoid", "tanh", "hardsigmoid")), _within_one),
    "aten.hardtanh.default": _within,
    "aten.leaky_relu.default": _times,
    "aten.max_pool2d_with_indices.default": _same,
    "aten._adaptive_avg_pool2d.default": _mean,
    "aten.mean.dim": _mean,
    "aten.cat.default": _largest_of,
    "aten.constant_pad_nd.default": _largest_of,
    "aten.add.Tensor": _sum,
}
"""What is known of finite numbers. Of those without bound, NaN and infinity among them, nothing is."""
