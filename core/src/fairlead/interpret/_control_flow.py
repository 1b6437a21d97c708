"""What the ops with regions mean: torch's own higher-order operators, called with the regions as modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Module = Callable[..., Any]

Emitted = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its positional arguments, as `torch.fx.Graph.call_function` takes them."""


def call_of(op: str, args: Sequence[Any], regions: Sequence[Any]) -> Emitted | None:
    """The call that an op with regions is, for arguments and regions as FX has them; None for an unknown op."""
    rule = _CALLS.get(op)
    return None if rule is None else rule(regions, *args)


def _cond(regions: Sequence[Any], pred: Any, operands: Sequence[Any]) -> Emitted:
    return torch.ops.higher_order.cond, (pred, *regions, tuple(operands))


def _while_loop(regions: Sequence[Any], carried: Any, operands: Sequence[Any]) -> Emitted:
    return torch.ops.higher_order.while_loop, (*regions, tuple(carried), tuple(operands))


def _scan(regions: Sequence[Any], init: Any, xs: Any, operands: Sequence[Any]) -> Emitted:
    return torch.ops.higher_order.scan, (*regions, list(init), list(xs), tuple(operands))


def _map(regions: Sequence[Any], xs: Any, operands: Sequence[Any]) -> Emitted:
    return torch.ops.higher_order.map_impl, (*regions, list(xs), list(operands))


def _save_state(regions: Sequence[Any], device: torch.device, operands: Sequence[Any]) -> Emitted:
    return run_and_save_rng_state, (*regions, device, *operands)


def _with_state(regions: Sequence[Any], device: torch.device, state: Any, operands: Sequence[Any]) -> Emitted:
    return run_with_rng_state, (*regions, device, state, *operands)


def run_and_save_rng_state(region: Module, device: torch.device, *operands: Any) -> tuple[Any, ...]:
    """The state of the device's generator as it was before the region ran, and the region's results."""
    state = torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)
    return state, *region(*operands)


def run_with_rng_state(region: Module, device: torch.device, state: torch.Tensor, *operands: Any) -> tuple[Any, ...]:
    """The results of the region, run from a state of the device's generator, which goes on as if nothing were drawn."""
    on_cpu = device.type == "cpu"
    with torch.random.fork_rng(devices=[] if on_cpu else [device]):
        torch.set_rng_state(state) if on_cpu else torch.cuda.set_rng_state(state, device)
        return tuple(region(*operands))


_CALLS: Mapping[str, Callable[..., Emitted]] = {
    "hop.cond": _cond,
    "hop.while_loop": _while_loop,
    "hop.scan": _scan,
    "hop.map": _map,
    "hop.run_and_save_rng_state": _save_state,
    "hop.run_with_rng_state": _with_state,
}
