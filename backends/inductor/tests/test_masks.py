"""Masks come to generated code on a CPU, and from it, as bytes, and lie as the images that they were computed of."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fairlead
from fairlead.ir import parse_graph
from fairlead_inductor import InductorOptions, backend
from fairlead_inductor._executable import InductorExecutable
from fairlead_inductor._masks import Masks
from fairlead_inductor._order import before_convolutions

GRAPH = """graph @g inference {
  in %0 user "x" : f32[64, 32]
  in %1 user "mask" : bool[64, 32]
  in %2 user "few" : bool[8]
  %3 = aten.neg.default(%0) : f32[64, 32]
  %4 = aten.where.self(%1, %0, %3) : f32[64, 32]
  %5 = aten.gt.Tensor(%4, 0.5) : bool[64, 32]
  %6 = aten.logical_not.default(%2) : bool[8]
  out %4 user
  out %5 user
  out %6 user
}
"""


def expected(x: Tensor, mask: Tensor, few: Tensor) -> list[Tensor]:
    y = torch.where(mask, x, -x)
    return [y, y > 0.5, ~few]


def inputs() -> list[Tensor]:
    torch.manual_seed(0)
    x = torch.randn(64, 32)
    return [x, x > 0.1, torch.rand(8) > 0.5]


def test_masks_come_and_go_as_before() -> None:
    run = backend.compile(parse_graph(GRAPH), InductorOptions(), {})
    for _ in range(2):
        given = inputs()
        results = run(list(given))
        assert [r.dtype for r in results] == [torch.float32, torch.bool, torch.bool]
        for mine, theirs in zip(results, expected(*given), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def test_a_mask_that_lies_otherwise_comes_as_it_is() -> None:
    run = backend.compile(parse_graph(GRAPH), InductorOptions(), {})
    x, mask, few = inputs()
    turned = mask.t().contiguous().t()
    for mine, theirs in zip(run([x, turned, few]), expected(x, mask, few), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def test_code_has_no_truth_values_of_many() -> None:
    run = backend.compile(parse_graph(GRAPH), InductorOptions(), {})
    assert isinstance(run, InductorExecutable)
    run(inputs())
    (code,) = run.readable().values()
    assert code.count("uint8_t*") >= 2
    assert "torch.bool" in code  # the few


def test_what_a_program_writes_stays_a_mask() -> None:
    written = GRAPH.replace("  out %5 user\n", "  out %5 mutation -> in1\n")
    masks = Masks(parse_graph(written))
    assert [x.value.tensor.dtype.value for x in masks.graph.inputs] == ["f32", "bool", "bool"]
    assert masks.graph == parse_graph(written)


def test_a_program_that_writes_its_mask_does_so() -> None:
    def program(x: Tensor, mask: Tensor) -> Tensor:
        y = torch.where(mask, x, -x)
        mask.copy_(y > 0.5)
        return y

    compiled = fairlead.compile(program, backend="inductor", fallback=())
    mine, theirs = (inputs()[:2] for _ in range(2))
    torch.testing.assert_close(compiled(*mine), program(*theirs), rtol=0, atol=0)
    torch.testing.assert_close(mine[1], theirs[1], rtol=0, atol=0)


def clipping() -> nn.Module:
    """Whose derivative asks where it clips, which the partitioner has the forward save."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(2):
        layers += (nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
    return nn.Sequential(*layers, nn.Conv2d(8, 4, 1))


def test_masks_that_are_saved_lie_as_images_do() -> None:
    model = clipping()
    twin = copy.deepcopy(model)
    program = fairlead.compile(model, backend="inductor", fallback=(), benchmark=False)
    saved: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    x = torch.randn(16, 8, 16, 16)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = program(x)
    result.square().mean().backward()
    twin(x).square().mean().backward()
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)
    masks = [t for t in saved if t.dtype is torch.bool]
    assert len(masks) == 2
    assert all(t.is_contiguous(memory_format=torch.channels_last) for t in masks)


def test_only_what_needs_no_convolution_goes_before_the_last() -> None:
    text = """graph @g forward {
  in %0 user "x" : f32[2, 8, 4, 4]
  in %1 parameter "w" : f32[8, 8, 1, 1]
  %2 = aten.convolution.default(%0, %1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) : f32[2, 8, 4, 4]
  %3 = aten.convolution.default(%2, %1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) : f32[2, 8, 4, 4]
  %4 = aten.le.Tensor(%2, 0.0) : bool[2, 8, 4, 4]
  %5 = aten.le.Tensor(%3, 0.0) : bool[2, 8, 4, 4]
  %6 = aten.logical_not.default(%4) : bool[2, 8, 4, 4]
  %7 = aten.logical_and.default(%6, %5) : bool[2, 8, 4, 4]
  out %3 user
  out %6 saved
  out %7 saved
}
"""
    graph = parse_graph(text)
    assert [n.result.id for n in before_convolutions(graph).nodes] == [2, 4, 6, 3, 5, 7]
    inference = parse_graph(text.replace("forward", "inference").replace("saved", "user"))
    assert before_convolutions(inference) is inference


@pytest.mark.parametrize("dynamic", [False, True])
def test_dropout_trains_through_its_mask(dynamic: bool) -> None:
    def program(x: Tensor) -> Tensor:
        return nn.functional.dropout(x.exp(), 0.5)

    compiled: Any = fairlead.compile(program, backend="inductor", fallback=(), dynamic=dynamic, benchmark=False)
    x = torch.randn(32, 64, requires_grad=True)
    y = compiled(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    kept = y != 0
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(gradient, torch.where(kept, 2 * x.exp(), 0.0).detach(), rtol=1e-5, atol=1e-6)


def test_another_backend_that_takes_over_has_the_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second call on an executable has the only list of what a forward saved."""
    layer = nn.Hardtanh()
    program: Any = fairlead.compile(layer, backend="inductor", fallback=("eager",), benchmark=False)
    x = torch.randn(64, 64, requires_grad=True)
    torch.autograd.grad(program(x).sum(), x)
    given: list[list[torch.dtype]] = []

    def fit(self: InductorExecutable, inputs: list[Tensor], *how: Any) -> bool:
        given.append([t.dtype for t in inputs])
        raise RuntimeError("they do not fit")

    result = program(x)
    monkeypatch.setattr(InductorExecutable, "_fit", fit)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert any(torch.uint8 in dtypes for dtypes in given)
    torch.testing.assert_close(gradient, (x.abs() < 1).float(), rtol=0, atol=0)
