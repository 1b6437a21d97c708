"""Weights that are baked in are watched: the next call uses what they are then."""

from __future__ import annotations

import copy
import gc
import logging
import weakref
from collections.abc import Callable

import pytest
import torch

import fairlead

from .nets import Attention, Mlp


def _scale_in_place(model: torch.nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)


def _step(model: torch.nn.Module) -> None:
    with torch.enable_grad():
        model(torch.ones(2, 8)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()


def _changed(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor + 0.25 for name, tensor in model.state_dict().items()}


def _load(model: torch.nn.Module) -> None:
    model.load_state_dict(_changed(model))


def _load_by_assignment(model: torch.nn.Module) -> None:
    model.load_state_dict(_changed(model), assign=True)


def _new_parameter(model: torch.nn.Module) -> None:
    torch.manual_seed(5)
    model.up.weight = torch.nn.Parameter(torch.randn_like(model.up.weight))


def _new_data(model: torch.nn.Module) -> None:
    model.down.weight.data = torch.full_like(model.down.weight, 0.5)


@pytest.mark.parametrize(
    "change", [_scale_in_place, _step, _load, _load_by_assignment, _new_parameter, _new_data], ids=lambda f: f.__name__
)
def test_changed_weights_are_seen_at_the_next_call(backend: str, change: Callable[[torch.nn.Module], None]) -> None:
    model = Mlp().eval()
    reference = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend=backend)
    x = torch.randn(3, 8)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), reference(x))
        change(model)
        change(reference)
        torch.testing.assert_close(compiled(x), reference(x))


def test_refresh_sees_what_torch_does_not_count(backend: str) -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend=backend)
    x = torch.randn(3, 8)
    with torch.no_grad():
        compiled(x)
        model.up.weight.data.copy_(model.up.weight * -2)
        compiled.fairlead.refresh()
        torch.testing.assert_close(compiled(x), model(x))


def test_tied_weights_stay_tied(backend: str) -> None:
    model = Attention().eval()
    compiled = fairlead.compile(model, backend=backend)
    ids = torch.randint(0, 16, (2, 5))
    with torch.no_grad():
        torch.testing.assert_close(compiled(ids), model(ids))
        model.embedding.weight.mul_(-0.5)
        torch.testing.assert_close(compiled(ids), model(ids))


def test_layers_that_share_code_keep_their_own_weights(backend: str) -> None:
    layers = torch.nn.ModuleList(Mlp() for _ in range(3)).eval()
    for layer in layers:
        layer.forward = fairlead.compile(layer.forward, backend=backend)
    plain = copy.deepcopy(layers)
    for layer in plain:
        del layer.forward
    x = torch.randn(2, 8)
    with torch.no_grad():
        for _ in range(2):
            for mine, theirs in zip(layers, plain, strict=True):
                torch.testing.assert_close(mine(x), theirs(x))


@pytest.mark.parametrize("name", ["onnxrt", "openvino", "openxla", "ipex", "tvm"])
def test_weights_that_change_at_every_call_become_inputs(name: str, caplog: pytest.LogCaptureFixture) -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend=name)
    x = torch.randn(3, 8)
    with torch.no_grad(), caplog.at_level(logging.WARNING, "fairlead"):
        for _ in range(9):
            model.up.weight.mul_(1.01)
            torch.testing.assert_close(compiled(x), model(x))
    assert caplog.text.count("change at nearly every call") == 1


@pytest.mark.parametrize("name", ["eager", "onnxrt", "openvino", "openxla", "ipex", "tvm"])
def test_the_weights_die_with_the_model(name: str) -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend=name)
    with torch.no_grad():
        compiled(torch.randn(2, 8))
    alive = weakref.ref(model.up.weight)
    del model, compiled
    gc.collect()
    assert alive() is None
