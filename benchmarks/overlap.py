"""When DDP begins to reduce each bucket of gradients, beside when the backward ends: docs/distributed.md.

    torchrun --nproc-per-node 2 benchmarks/overlap.py eager inductor onnxrt openvino

Processes over gloo train one model of six layers. A communication hook notes when it is given each bucket, and the
gradient of the input, which is computed last, when the backward ends. Times are medians over steps, of the first rank.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import fairlead

WIDTH, LAYERS, ROWS = 768, 6, 512
WARM_UPS, STEPS = 3, 15
CAP = 4.0
"""MiB of a bucket, which has two layers."""


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Clock:
    """Seconds since a backward began, by what happened."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self._began = 0.0

    def begin(self) -> None:
        self.steps.append({})
        self._began = time.perf_counter()

    def note(self, what: str) -> None:
        self.steps[-1][what] = time.perf_counter() - self._began

    def medians(self) -> dict[str, float]:
        steps = self.steps[WARM_UPS:]
        return {what: statistics.median(step[what] for step in steps) for what in steps[0]}


def measured(compiled: Callable[[torch.nn.Module], Any]) -> dict[str, float]:
    """Medians of seconds, in the order of the last step."""
    clock = Clock()

    def reduce(_: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        clock.note(f"bucket {bucket.index()}")
        done = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return done.then(lambda future: future.value()[0] / dist.get_world_size())

    reduce.__annotations__ = {}  # DDP takes no annotation that is text
    model = DistributedDataParallel(Net(), bucket_cap_mb=CAP)
    model.register_comm_hook(None, reduce)
    run = compiled(model)
    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    x.register_hook(lambda gradient: clock.note("backward computed"))
    for _ in range(WARM_UPS + STEPS):
        loss = run(x).square().mean()
        clock.begin()
        loss.backward()
        clock.note("all reduced")
    return clock.medians()


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    programs: dict[str, Callable[[torch.nn.Module], Any]] = {"eager DDP, not compiled": lambda model: model}
    for backend in sys.argv[1:]:
        programs[backend] = lambda model, backend=backend: fairlead.compile(model, backend=backend, benchmark=False)  # type: ignore[misc]
    for name, compiled in programs.items():
        torch._dynamo.reset()
        found = measured(compiled)
        if dist.get_rank() == 0:
            print(name, {what: f"{seconds * 1e3:.0f} ms" for what, seconds in found.items()}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
