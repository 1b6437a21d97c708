"""Engines on a device, against eager: results, sizes that vary, weights that change, streams, threads."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
import torch
from torch import nn

import fairlead
from fairlead_tensorrt import backend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not backend.probe().ok, reason=f"tensorrt is not ready: {backend.probe().reason}"),
]


@pytest.fixture
def module() -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(1), nn.Linear(288, 4)).eval().cuda()
    )


def compiled(program: Any, **how: Any) -> Any:
    return fairlead.compile(program, backend="tensorrt", fallback=(), **how)


def batch(size: int = 4) -> torch.Tensor:
    return torch.randn(size, 3, 8, 8, device="cuda")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_results_are_eagers_and_are_kept(module: Any, dtype: torch.dtype) -> None:
    module = module.to(dtype)
    program, inputs = compiled(module), [batch().to(dtype) for _ in range(4)]
    tolerance = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    with torch.no_grad():
        results = [program(x) for x in inputs]
        for got, x in zip(results, inputs, strict=True):
            torch.testing.assert_close(got, module(x), rtol=tolerance, atol=tolerance)
    assert program.fairlead.placement.native_share == 1.0


def test_sizes_that_vary_are_followed(module: Any) -> None:
    program = compiled(module, dynamic=True)
    with torch.no_grad():
        for size in (4, 2, 7, 40, 3):
            x = batch(size)
            torch.testing.assert_close(program(x), module(x), rtol=1e-5, atol=1e-5)


def test_weights_that_change_are_seen(module: Any) -> None:
    program, x = compiled(module), batch()
    with torch.no_grad():
        program(x)
        for parameter in (module[0].weight, module[1].running_var, module[4].bias):
            parameter.mul_(1.5)
            torch.testing.assert_close(program(x), module(x), rtol=1e-5, atol=1e-5)
        module.load_state_dict({k: v * 0.5 for k, v in copy.deepcopy(module.state_dict()).items()})
        torch.testing.assert_close(program(x), module(x), rtol=1e-5, atol=1e-5)


def test_threads_on_streams_of_their_own_do_not_meet(module: Any) -> None:
    program, failures = compiled(module), list[str]()
    with torch.no_grad():
        program(batch())

    def work() -> None:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
            for _ in range(50):
                x = batch()
                if not torch.allclose(program(x), module(x), rtol=1e-5, atol=1e-5):
                    failures.append("another's result")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
