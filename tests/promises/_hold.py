"""One promise held to one backend."""

from __future__ import annotations

import functools
from unittest import mock

import pytest
import torch

import fairlead
from fairlead._capture._dynamo import APART
from fairlead.errors import BackendNotFoundError, BackendNotReadyError, PlacementError
from fairlead.interpret import _bfloat16
from fairlead.registry import registry

from . import _arrays, _capturing, _modules, _tooling, _training, _transforms
from ._catalogue import Promise
from ._outcome import Outcome, State
from ._through import Through

__all__ = ["PROMISES", "hold"]

PROMISES: tuple[Promise, ...] = tuple(
    promise
    for module in (_capturing, _training, _transforms, _arrays, _modules, _tooling)
    for promise in module.PROMISES
)


def hold(promise: Promise, backend: str, device: str) -> Outcome:
    """What comes of it; raises where it does not hold.

    Where the backend declines something, it is asked again with nobody else to take it: then it is an error, unless
    the backend had only left to others what it does slower than they.
    """
    if promise.name == "apart" and not APART:
        return Outcome(State.not_run, ("needs torch 2.13",))
    try:
        devices = registry.get(backend).capabilities.devices
    except BackendNotFoundError:
        return Outcome(State.not_run, ("not installed",))
    if not _ready(backend, device) or not {device, "*"} & set(devices):
        return _needs(*devices)
    if device not in (found := _found(backend)):
        return Outcome(State.not_run, (f"computes on {' and '.join(found).upper()} alone here",))
    if promise.device not in ("", device):
        return _needs(promise.device)
    through = _run(promise, Through(backend, device))
    outcome = through.outcome()
    if outcome.state is not State.works and not through.is_left and backend != "eager":
        try:
            alone = _run(promise, Through(backend, device, fallback=()))
        except PlacementError:
            return outcome
        assert alone.outcome().state is State.works, alone.outcome()
    return outcome


def _needs(*devices: str) -> Outcome:
    return Outcome(State.not_run, (f"needs a {' or '.join(devices).upper()} device",))


def _run(promise: Promise, through: Through) -> Through:
    torch._dynamo.reset()
    torch.manual_seed(0)
    try:
        with mock.patch.object(_bfloat16, "multiplies_bfloat16", return_value=False):  # the page is of no processor
            promise.check(through)
    finally:
        torch._dynamo.reset()
    return through


@functools.cache
def _ready(backend: str, device: str) -> bool:
    """Whether the backend can be used here. Where it cannot, a program has to say so, whatever may take over."""
    if registry.get(backend).probe().ok:
        return True
    compiled = fairlead.compile(lambda x: x + 1, backend=backend)
    with pytest.raises(BackendNotReadyError):
        compiled(torch.ones(2, device=device))
    return False


@functools.cache
def _found(backend: str) -> tuple[str, ...]:
    """The devices that a backend which is ready computes on here: its wheel may be for more, its SDK for fewer."""
    return tuple(device.lower() for device in registry.get(backend).probe().devices)
