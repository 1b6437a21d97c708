"""How large numbers can become: where none is NaN or infinite, nothing has to bring back a NaN that a kernel loses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy
import openvino
import torch
from openvino import opset13
from openvino.op import Constant

__all__ = ["drop_guards", "is_within"]

_MOST_GIVEN = 2.0**24
"""The length of an input, as a vector, is to be no larger, and so no number in it."""

_MOST = 1e37
"""So far below the largest float32 that neither rounding nor a step in between makes it infinite."""

_MOST_SUMMED = 1e28
"""The mean of so large numbers, which is made of their sum, is no sum that overflows."""

_FILTERS = {"Convolution": 1, "GroupConvolution": 2}
"""The convolutions, and how many dimensions of their weights tell filters apart."""

_ADDED = frozenset({"Add", "BatchNormInference", "Multiply"})
"""What the plugin computes with the convolution in front of it."""


class _Bound(NamedTuple):
    """The largest magnitude of the elements of a tensor, infinity where it is not known, and of which inputs."""

    most: float
    inputs: frozenset[str] = frozenset()


def is_within(x: torch.Tensor) -> bool:
    """Whether an input is as `drop_guards` takes it to be: without NaN, and not too large."""
    return bool(torch.linalg.vector_norm(x) <= _MOST_GIVEN)  # not so of NaN


def drop_guards(model: openvino.Model) -> frozenset[str]:
    """Have the plugin compute clamps with the convolutions in front of them, where no result of these can be NaN.

    Its clamp loses NaN. Where one may come, a comparison and a choice follow, which make a step of their own of it.
    Before: a model in float32, with its weights. Returns the names of the inputs of which `is_within` has to hold at
    each call, since the proof rests on them; none where the model is as it was.
    """
    nodes = model.get_ordered_ops()
    clamps = {node.output(0): clamp for node in nodes if (clamp := _guarded(node)) is not None}
    checked: frozenset[str] = frozenset()
    if not clamps:  # nobody needs the largest of each weight
        return checked
    bounds: dict[Any, _Bound] = {}
    for node in nodes:
        bounds |= dict.fromkeys(node.outputs(), _bound(node, bounds))
        clamp = clamps.get(node.output(0)) if node.outputs() else None
        if clamp is not None and (bound := bounds[clamp.given]).most <= _MOST:
            plain = opset13.clamp(clamp.given, clamp.least, clamp.most).output(0)
            node.output(0).replace(plain)
            bounds[plain] = _bound(plain.get_node(), bounds)
            checked |= bound.inputs
    return checked


class _Clamp(NamedTuple):
    """What is kept between two numbers."""

    given: Any
    least: float
    most: float


def _guarded(node: Any) -> _Clamp | None:
    """What is clamped where it is itself, which no NaN is, and else chosen as it is, if a convolution makes it."""
    if node.get_type_name() != "Select":
        return None
    same, clamped, given = (node.input_value(i) for i in range(3))
    below = _bounded_by(clamped, "Minimum")
    above = None if below is None else _bounded_by(below[0], "Maximum")
    if same.get_node().get_type_name() != "Equal" or below is None or above is None:
        return None
    if any(port != given for port in (above[0], *same.get_node().input_values())):
        return None
    return _Clamp(given, above[1], below[1]) if _is_of_convolution(given.get_node()) else None


def _bounded_by(port: Any, kind: str) -> tuple[Any, float] | None:
    """What an extremum is of, beside a number, and that."""
    node = port.get_node()
    if node.get_type_name() == kind:
        for number, other in itertools.permutations(node.input_values()):
            end = number.get_node()
            if isinstance(end, Constant) and end.data.size == 1:
                return other, float(end.data.item())
    return None


def _is_of_convolution(node: Any) -> bool:
    while node.get_type_name() in _ADDED:
        node = node.input_value(0).get_node()
    return node.get_type_name() in _FILTERS


def _bound(node: Any, bounds: Mapping[Any, _Bound]) -> _Bound:
    kind = node.get_type_name()
    if kind == "Parameter":
        is_single = node.get_output_element_type(0) == openvino.Type.f32
        return _Bound(_MOST_GIVEN, frozenset({node.get_friendly_name()})) if is_single else _Bound(math.inf)
    if isinstance(node, Constant):
        return _Bound(_largest(node.data))
    given = [bounds[port] for port in node.input_values()]
    inputs = frozenset[str]().union(*(bound.inputs for bound in given))
    rule = _RULES.get(kind)
    most = math.inf if rule is None else rule(node, [bound.most for bound in given])
    return _Bound(most, inputs) if math.isfinite(most) else _Bound(math.inf)


def _largest(numbers: numpy.ndarray[Any, Any]) -> float:
    if numbers.dtype != numpy.float32 or not numbers.size:
        return math.inf
    most = float(numpy.abs(numbers).max())
    return most if math.isfinite(most) else math.inf


def _number_of(port: Any) -> numpy.ndarray[Any, Any] | None:
    """A constant in the shape that its reader has it in; None where it is turned, converted or computed."""
    node = port.get_node()
    while node.get_type_name() == "Reshape":
        node = node.input_value(0).get_node()
    return node.data.reshape(tuple(port.get_shape())) if isinstance(node, Constant) else None


_Rule = Callable[[Any, list[float]], float]


def _convolved(node: Any, given: list[float]) -> float:
    """The sum of as much of each weight as is possible."""
    weight = _number_of(node.input_value(1))
    if weight is None or not math.isfinite(given[1]):
        return math.inf
    filters = numpy.abs(weight.reshape(-1, *weight.shape[_FILTERS[node.get_type_name()] :]))
    return given[0] * float(filters.reshape(len(filters), -1).sum(1, dtype=numpy.float64).max())


def _normalized(node: Any, given: list[float]) -> float:
    scale, offset, mean, variance = (_number_of(node.input_value(i)) for i in range(1, 5))
    if scale is None or offset is None or mean is None or variance is None or not all(map(math.isfinite, given)):
        return math.inf
    spread = variance.astype(numpy.float64) + node.get_attributes()["epsilon"]
    if not (spread > 0).all():
        return math.inf
    return float((numpy.abs(scale) / numpy.sqrt(spread) * (given[0] + numpy.abs(mean)) + numpy.abs(offset)).max())


def _clamped(node: Any, given: list[float]) -> float:
    return max(abs(node.get_attributes()[end]) for end in ("min", "max")) if math.isfinite(given[0]) else math.inf


def _chosen(node: Any, given: list[float]) -> float:
    return max(given[1:])


def _padded(node: Any, given: list[float]) -> float:
    return max(given[0], *given[3:])


def _largest_of(node: Any, given: list[float]) -> float:
    return max(given)


def _mean(node: Any, given: list[float]) -> float:
    return given[0] if given[0] <= _MOST_SUMMED else math.inf


def _same(node: Any, given: list[float]) -> float:
    return given[0]


def _within_one(node: Any, given: list[float]) -> float:
    return 1.0 if math.isfinite(given[0]) else math.inf


_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(_FILTERS, _convolved),
    "BatchNormInference": _normalized,
    "Clamp": _clamped,
    "Maximum": _largest_of,
    "Minimum": _largest_of,
    "Concat": _largest_of,
    "Pad": _padded,
    "Select": _chosen,
    **dict.fromkeys(("AvgPool", "ReduceMean"), _mean),
    **dict.fromkeys(("Broadcast", "Reshape", "Slice", "Squeeze", "StridedSlice", "Transpose", "Unsqueeze"), _same),
    **dict.fromkeys(("HSwish", "MaxPool", "Relu"), _same),
    **dict.fromkeys(("HardSigmoid", "Sigmoid", "Tanh"), _within_one),
    "Add": lambda node, given: sum(given),
    "Multiply": lambda node, given: math.prod(given),
}
"""What is known of finite numbers. Of those without bound, NaN and infinity among them, nothing is."""
