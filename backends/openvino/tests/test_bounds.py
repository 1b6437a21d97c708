"""Clamps that OpenVINO computes together with convolutions, where it loses NaN: none is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fairlead
from fairlead import ir
from fairlead.ir import Builder, Role
from fairlead_openvino import _compiled, backend

SIZE = 12


@dataclass(frozen=True)
class Made:
    """The ops of a model as OpenVINO is given it, and the kinds of steps that it makes of them."""

    ops: frozenset[str]
    steps: frozenset[str]

    @property
    def is_fused(self) -> bool:
        return "Convolution" in self.steps and self.steps.isdisjoint({"Subgraph", "Eltwise", "Math"})


Models = list[Made]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    """The models that are compiled from here on."""
    made: Models = []
    compile_model = _compiled.compile_model

    def compile_and_note(core: Any, model: Any, *rest: Any) -> Any:
        compiled = compile_model(core, model, *rest)
        ops = frozenset(op.get_type_name() for op in model.get_ops())
        steps = compiled.get_runtime_model().get_ops()
        made.append(Made(ops, frozenset(step.get_rt_info()["layerType"].value for step in steps)))
        return compiled

    monkeypatch.setattr(_compiled, "compile_model", compile_and_note)
    return made


class Block(nn.Module):
    """Two convolutions, with something between them, and a clamp behind each."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor] = lambda x: x) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.between = between
        for numbers, least, most in (("running_mean", -1, 1), ("running_var", 0.5, 2), ("weight", -2, 2)):
            nn.init.uniform_(getattr(self.norm, numbers), least, most)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of an image of three channels."""
        return F.relu6(self.second(self.between(F.relu6(self.norm(self.first(x))))))


def compiled(model: nn.Module) -> Any:
    return fairlead.compile(model.eval(), backend="openvino", benchmark=False, max_fallback=0)


def close(made: Any, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Hold the results to eager's, and return them."""
    with torch.no_grad():
        got = made(x)
        torch.testing.assert_close(got, model(x), rtol=1e-4, atol=1e-5, equal_nan=True)
    return got


def image() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 3, SIZE, SIZE)


BETWEEN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nothing": lambda x: x,
    "padded": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
    "pooled": lambda x: F.max_pool2d(x, 2),
    "averaged": lambda x: F.avg_pool2d(x, 2),
    "averaged to one": lambda x: F.adaptive_avg_pool2d(x, 1),
    "doubled": lambda x: x + x,
    "scaled": lambda x: x * 3.0,
    "joined": lambda x: torch.cat([x[:, 4:], x[:, :4] * 2], 1),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_nan_and_infinity_reach_the_results_that_they_reach_in_torch(name: str, models: Models) -> None:
    model, is_apart = Block(BETWEEN[name]), name == "pooled"  # which brings back NaN by choices of its own
    made = compiled(model)
    assert close(made, model, image()).isfinite().all()
    assert ["Select" in m.ops for m in models] == [is_apart]
    for number in (math.nan, math.inf, -math.inf, 1e38):
        x = image()
        x[0, 1, 5, 5] = number
        got = close(made, model, x)
        assert not math.isnan(number) or got[0].isnan().any()
    assert ["Select" in m.ops for m in models] == [is_apart, True], "that for such numbers is compiled once"
    assert close(made, model, image()).isfinite().all()


def test_a_clamp_is_a_step_of_the_convolution_in_front_of_it(models: Models) -> None:
    model = Block()
    close(compiled(model), model, image())
    assert [m.is_fused for m in models] == [True]


def test_a_hardswish_is_so_with_any_numbers(models: Models) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Hardswish(), nn.Conv2d(8, 4, 1), nn.Hardswish())
    made = compiled(model)
    for number in (1.0, math.nan, math.inf, -math.inf, 1e38):
        x = image()
        x[0, 1, 5, 5] = number
        assert close(made, model, x).isnan().any() == (not math.isfinite(number))
    assert [m.is_fused for m in models] == [True]


@pytest.mark.parametrize("numbers", [1e30, math.nan, math.inf], ids=str)
def test_weights_with_which_results_may_not_be_finite_leave_it_apart(numbers: float, models: Models) -> None:
    model = Block()
    with torch.no_grad():
        model.first.weight[0, 0] = model.second.weight[0, 0] = numbers
    made = compiled(model)
    close(made, model, image())
    x = image() * 1e10
    x[1, 2, 3, 3] = math.nan
    close(made, model, x)
    assert [m.is_fused for m in models] == [False]


def test_new_weights_are_looked_at_anew(models: Models) -> None:
    b = Builder()
    x = b.input("f32[1, 2, 6, 6]")
    weight = b.input("f32[4, 2, 3, 3]", role=Role.parameter)
    y = b.op("aten.convolution.default", x, weight, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    b.output(b.op("aten.hardtanh.default", y, 0.0, 6.0))
    graph = b.graph()
    small, large = torch.randn(4, 2, 3, 3), torch.full((4, 2, 3, 3), 3e38)
    run = backend.compile(graph, backend.options_type(), {1: small})
    run.refit({1: large})
    assert [m.is_fused for m in models] == [True, False]
    given = torch.randn(1, 2, 6, 6)
    given[0, 0, 2, 2] = math.nan
    (got,) = run([given])
    assert int(got.isnan().sum()) == 9 * 4


def test_sizes_may_vary(models: Models) -> None:
    model = Block()
    made = torch.compile(model.eval(), backend="fairlead-openvino", dynamic=True)
    for batch in (2, 3, 5):
        x = torch.randn(batch, 3, SIZE, SIZE)
        close(made, model, x)
        x[0, 0, 0, 0] = math.nan
        assert close(made, model, x).isnan().any()
    assert len(models) == 2


@pytest.mark.parametrize("options", [{"precision": "bf16"}, {"config": {"INFERENCE_PRECISION_HINT": "bf16"}}])
def test_in_half_precision_nothing_is_changed(options: dict[str, Any], models: Models) -> None:
    model = Block()
    made = fairlead.compile(model.eval(), backend="openvino", benchmark=False, max_fallback=0, options=options)
    x = image()
    x[0, 1, 5, 5] = math.nan
    with torch.no_grad():
        assert made(x).isnan().equal(model(x).isnan())
    assert len(models) == 1


def test_a_loaded_executable_is_as_the_stored_one(models: Models) -> None:
    graph = ir.parse_graph(
        'graph @g inference {\n  in %0 user "x" : f32[1, 2, 6, 6]\n  in %1 parameter "w" : f32[4, 2, 3, 3]\n'
        "  %2 = aten.convolution.default(%0, %1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) : f32[1, 4, 6, 6]\n"
        "  %3 = aten.clamp.default(%2, -1.0, 1.0) : f32[1, 4, 6, 6]\n  out %3 user\n}"
    )
    constants = {1: torch.randn(4, 2, 3, 3)}
    options = backend.options_type()
    data = backend.dump(backend.compile(graph, options, constants))
    loaded = backend.load(data, graph, options, constants)
    assert [m.is_fused for m in models] == [True, True]
    x = torch.randn(1, 2, 6, 6)
    x[0, 0, 2, 2] = math.nan
    (got,) = loaded([x])
    assert int(got.isnan().sum()) == 9 * 4
