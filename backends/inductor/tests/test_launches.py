"""Kernels that are launched without what older releases of torch look at before each launch."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from torch.autograd import profiler

from fairlead_inductor import _launches
from fairlead_inductor._launches import shorten_launches


class Launcher:
    store_cubin = False

    def __init__(self) -> None:
        self.launched: list[tuple[Any, ...]] = []

    def __call__(self, *args: Any, stream: int) -> str:
        self.launched.append((*args, stream))
        return "launched"


class Kernel:
    """As torch before 2.13 has them, as far as this goes."""

    def __init__(self, **others: Any) -> None:
        self.launchers = [Launcher()]
        self.inductor_meta: dict[str, Any] = {}
        self.looked_at = 0
        vars(self).update(others)

    def run(self, *args: Any, stream: int, **how: Any) -> str:
        self.looked_at += 1
        return self.launchers[0](*args, stream=stream)


def code(**kernels: Any) -> Any:
    """A function whose globals are these kernels, as those of generated code are."""
    return types.FunctionType((lambda: None).__code__, {"torch": torch, **kernels})


def test_kernels_are_launched_without_a_further_look() -> None:
    first, second = Kernel(), Kernel()
    assert shorten_launches(code(first=first, second=second)) == 2
    assert first.run(1, 2, stream=3) == "launched"
    assert first.launchers[0].launched == [(1, 2, 3)]
    assert (first.looked_at, second.looked_at) == (0, 0)


def test_methods_of_generated_code_count_as_well() -> None:
    kernel = Kernel()
    assert shorten_launches(types.MethodType(code(kernel=kernel), object())) == 1


@pytest.mark.parametrize(
    "others",
    [
        {"launchers": []},
        {"launchers": [Launcher(), Launcher()]},
        {"_cached_launcher": None},
        {"inductor_meta": {"coordinate_descent_tuning": True}},
        {"dump_launch_params": True},
        {"triton_interpret": True},
    ],
)
def test_kernels_that_are_not_settled_are_left_alone(others: dict[str, Any]) -> None:
    kernel = Kernel(**others)
    assert shorten_launches(code(kernel=kernel)) == 0
    assert "run" not in vars(kernel)


def test_whoever_observes_launches_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel()
    shorten_launches(code(kernel=kernel))
    kernel.run(1, stream=0, benchmark_run=True)
    monkeypatch.setattr(profiler, "_is_profiler_enabled", True)
    kernel.run(1, stream=0)
    monkeypatch.setattr(profiler, "_is_profiler_enabled", False)
    monkeypatch.setattr(_launches, "_debug_mode", lambda: "a mode")
    kernel.run(1, stream=0)
    assert kernel.looked_at == 3
    assert len(kernel.launchers[0].launched) == 3
