"""What is kept of a sample's tensors: a distribution where any values do, the values themselves where they matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance.generate._capture import Call, Uncaptured
from fairlead.ir import Graph, Node, Role, TensorType, opset
from fairlead.ir.random import Distribution, Integers, Uniform
from fairlead_conformance._pack import Kept, Saved, Specification, specified

__all__ = ["specify", "specify_backward"]

MOST_BYTES = 1 << 14
"""What a case may keep literally."""

_PLACES = frozenset({
    "index", "indices", "target", "targets", "offsets", "exponent", "repeats", "input_lengths", "target_lengths",
    "pivots", "LU_pivots", "sorter", "indices_or_sections",
})  # fmt: skip
"""Parameters whose integers say where or how often, not what."""

_DIVISIONS = frozenset({
    "div", "floor_divide", "remainder", "fmod", "pow", "bitwise_left_shift", "bitwise_right_shift", "__lshift__",
    "__rshift__",
})  # fmt: skip
"""Ops that are undefined for some integers as their second operand."""

_STRUCTURED = frozenset({"boundaries", "sorted_sequence", "grid", "bin_edges", "weights", "scale", "zero_point"})
"""Parameters of real numbers that have to be in order, or in a range that a bell curve leaves."""

_FEW = 4096


def specify(call: Call, *, literal: bool) -> tuple[Specification, ...]:
    """A specification for each input. ``literal``: keep all values, because drawn ones do not do."""
    fixed = _fixed(call.graph)
    inputs = [
        _specification(x, item.value.type, literal or item.role is Role.constant or item.value.id in fixed)
        for item, x in zip(call.graph.inputs, call.inputs, strict=True)
    ]
    return _small(inputs)


def specify_backward(forward: Call, backward: Call) -> tuple[Specification, ...]:
    """A specification for each input of a backward graph: what the forward kept, and gradients drawn at random."""
    inputs: list[Specification] = []
    for item, x in zip(backward.graph.inputs, backward.inputs, strict=True):
        saved = _place(x, forward)
        if saved is not None and item.role is not Role.tangent:
            inputs.append(saved)
            continue
        drawn = item.role is Role.tangent and isinstance(item.value.type, TensorType) and x.dtype.is_floating_point
        drawn = drawn or (item.role is Role.tangent and x.dtype.is_complex)
        if not drawn and item.role is not Role.constant:
            raise Uncaptured("its backward has an input from nowhere")
        inputs.append(specified(x, item.value.tensor, Uniform(-1.0, 1.0) if drawn else None))
    return _small(inputs)


def _small(inputs: Sequence[Specification]) -> tuple[Specification, ...]:
    if sum(len(x.data) for x in inputs if isinstance(x, Kept)) > MOST_BYTES:
        raise Uncaptured("its values matter, and are too many to keep")
    return tuple(inputs)


def _specification(x: Any, type_: Any, literal: bool) -> Specification:
    if not isinstance(x, torch.Tensor):
        return int(x)
    return specified(x, type_, None if literal else _distribution(x))


def _distribution(x: torch.Tensor) -> Distribution | None:
    """Where the elements lie; None where that says too little of them."""
    real = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
    if real.dtype is torch.bool:
        return Integers(0, 1)
    if not real.dtype.is_floating_point:
        return Integers(int(real.min()), int(real.max())) if real.numel() else Integers(0, 0)
    wide = real.detach().double()
    if not wide.numel():
        return Uniform(0.0, 1.0)
    if not wide.isfinite().all() or (wide.abs() > 1e30).any():
        return None
    if 1 < wide.numel() <= _FEW and wide.unique().numel() * 2 <= wide.numel():
        return None
    low, high = float(wide.min()), float(wide.max())
    if low == high:
        low, high = sorted((low, 0.75 * low))
    return Uniform(low, high)


def _place(x: Any, forward: Call) -> Saved | None:
    for is_input, tensors in ((True, forward.inputs), (False, forward.outputs)):
        for index, kept in enumerate(tensors):
            if isinstance(kept, torch.Tensor) and isinstance(x, torch.Tensor) and _same(x, kept):
                return Saved(index, is_input)
    return None


def _same(x: torch.Tensor, y: torch.Tensor) -> bool:
    alike = x.dtype == y.dtype and x.shape == y.shape and x.stride() == y.stride()
    return alike and (not x.numel() or x.data_ptr() == y.data_ptr())


def _fixed(graph: Graph) -> set[int]:
    """Inputs, by their values' ids, whose elements matter: integers that become places, and anything structured."""
    fixed: set[int] = set()
    for node in reversed(graph.nodes):
        if any(r is not None and r.id in fixed for r in node.results):
            fixed |= {v.id for v in node.operands() if _is_integral(v.type)}
        fixed |= _fixed_by(node)
    return fixed


def _fixed_by(node: Node) -> set[int]:
    spec = opset.spec(node.op)
    if spec is None or spec.tier in ("linalg", "quant"):
        return {v.id for v in node.operands()}
    name = node.op.split(".")[1]
    found: set[int] = set()
    for parameter, argument in zip(opset.signature(spec.signature).operands, node.args, strict=True):
        values = argument if isinstance(argument, tuple) else (argument,)
        places = parameter.name in _PLACES or (parameter.name == "other" and name in _DIVISIONS)
        for value in values:
            if not hasattr(value, "type"):
                continue
            if parameter.name in _STRUCTURED or (places and _is_integral(value.type)):
                found.add(value.id)
    return found


def _is_integral(type_: Any) -> bool:
    if not isinstance(type_, TensorType):
        return True
    return not type_.dtype.is_floating and not type_.dtype.is_complex and type_.dtype.value != "bool"
