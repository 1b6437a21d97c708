"""What each process of a DDP or FSDP2 run does: ``training.py ddp|fsdp [--cuda] BACKEND...``.

With ``--cuda`` each rank has a device of its own, and NCCL in place of gloo. It writes one line of JSON for each
backend, beside the same run in eager mode.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import fairlead
from tests.distributed.launch import say

STEPS = 50

DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if "--cuda" in sys.argv else torch.device("cpu")


class Block(torch.nn.Module):
    """A layer of 1 MiB: Dynamo compiles no frame of torch's own modules by itself, as FSDP2's hooks leave them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x))


class Net(torch.nn.Module):
    """Several buckets, and a layer that only some calls use."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(3))
        self.norm = torch.nn.LayerNorm(width)
        self.head, self.other = torch.nn.Linear(width, 4), torch.nn.Linear(width, 4)

    def forward(self, x: torch.Tensor, *, other: bool = False) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.other(x) if other else self.head(x)


def identity(model: torch.nn.Module) -> Any:
    return model


def replicated() -> torch.nn.Module:
    return DistributedDataParallel(Net().to(DEVICE), bucket_cap_mb=1.25, find_unused_parameters=True)


def sharded() -> torch.nn.Module:
    model = Net().to(DEVICE)
    mesh = init_device_mesh(DEVICE.type, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


WRAPPED = {"ddp": replicated, "fsdp": sharded}


def batches(steps: int) -> list[torch.Tensor]:
    """Those of this rank: each has its own."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    return [torch.randn(8, 512, generator=generator).to(DEVICE) for _ in range(steps)]


def curve(kind: str, compiled: Callable[[torch.nn.Module], Any]) -> tuple[list[float], Any]:
    """The losses of a training run with AdamW."""
    model = WRAPPED[kind]()
    run = compiled(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    losses = []
    for x in batches(STEPS):
        optimizer.zero_grad()
        loss = (run(x) - x[:, :4]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, run


def accumulated(kind: str, compiled: Callable[[torch.nn.Module], Any], *, other: bool) -> list[torch.Tensor]:
    """This rank's gradients of two batches, of which DDP does not synchronise the first."""
    model = WRAPPED[kind]()
    run = compiled(model)
    for place, x in enumerate(batches(2)):
        alone = place == 0 and isinstance(model, DistributedDataParallel)
        with model.no_sync() if alone else contextlib.nullcontext():
            run(x, other=other).square().mean().backward()
    gradients = [p.grad for p in model.parameters()]
    local = [g.to_local() if isinstance(g, DTensor) else g for g in gradients]
    return [g if g is not None else torch.zeros((), device=DEVICE) for g in local]


def furthest(found: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    return max(float((a - b).norm() / b.norm().clamp(min=1e-12)) for a, b in zip(found, right, strict=True))


def main() -> None:
    torch.set_num_threads(1)
    if DEVICE.type == "cuda":
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if DEVICE.type == "cuda" else "gloo")
    kind, *backends = (argument for argument in sys.argv[1:] if argument != "--cuda")
    right, _ = curve(kind, identity)
    gradients = {other: accumulated(kind, identity, other=other) for other in (False, True)}
    for backend in backends:

        def compiled(model: torch.nn.Module, backend: str = backend) -> Any:
            torch._dynamo.reset()  # its limits count all programs together
            return fairlead.compile(model, backend=backend)

        losses, run = curve(kind, compiled)
        say(
            {
                "backend": backend,
                "rank": dist.get_rank(),
                "loss": max(abs(a - b) / b for a, b in zip(losses, right, strict=True)),
                "learned": right[-1] / right[0],
                "gradients": max(furthest(accumulated(kind, compiled, other=o), r) for o, r in gradients.items()),
                "graphs": [graph.kind.value for graph in run.fairlead.placement.graphs],
                "recompilations": [str(each) for each in run.fairlead.recompilations],
                "declined": sum(graph.total - graph.native for graph in run.fairlead.placement.graphs),
            }
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
