"""What each process of a tensor parallel run does: ``parallel.py block,sequence,direct [--cuda] BACKEND...``.

With ``--cuda`` each rank has a device of its own, and NCCL in place of gloo. It writes one line of JSON for each
program and backend, beside the same run in eager mode.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

import fairlead
from tests.distributed.launch import say

STEPS = 5
WIDTH, HEADS = 32, 8

DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if "--cuda" in sys.argv else torch.device("cpu")


class Mlp(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.nn.functional.gelu(self.up(x)))


class Attention(torch.nn.Module):
    """Each process has some of the heads. Keys have no bias, whose gradient is nothing but rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(WIDTH, WIDTH, bias=each != "k") for each in "qkv")
        self.out = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (m(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for m in (self.q, self.k, self.v))
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(found.transpose(1, 2).flatten(2))


class Block(torch.nn.Module):
    def __init__(self, *, attends: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attention = Attention() if attends else torch.nn.Identity()
        self.mlp = Mlp()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mlp(x + self.attention(self.norm(x)))


def block() -> torch.nn.Module:
    """Attention and an MLP, of which each process has some of the heads and of the hidden features."""
    plan: dict[str, Any] = {f"attention.{each}": ColwiseParallel() for each in "qkv"}
    plan |= {"attention.out": RowwiseParallel(), "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel()}
    return _parallel(Block(attends=True), plan)


def sequence() -> torch.nn.Module:
    """Between the layers each process has some of the positions."""
    along = Shard(1)
    plan: dict[str, Any] = {
        "norm": SequenceParallel(use_local_output=True),
        "mlp.up": ColwiseParallel(input_layouts=along),
        "mlp.down": RowwiseParallel(output_layouts=along),
    }
    return _parallel(Block(attends=False), plan)


def _parallel(model: torch.nn.Module, plan: dict[str, Any]) -> torch.nn.Module:
    return parallelize_module(model.to(DEVICE), init_device_mesh(DEVICE.type, (dist.get_world_size(),)), plan)


class Direct(torch.nn.Module):
    """Collectives by name."""

    def forward(self, x: Tensor) -> Tensor:
        group, size = dist.group.WORLD, dist.get_world_size()
        gathered = collectives.all_gather_tensor(x[0] * 2, 0, group)
        part = collectives.reduce_scatter_tensor(gathered.sin(), "sum", 0, group)
        counts = [part.shape[0] // size] * size
        swapped = collectives.all_to_all_single(part, counts, counts, group)
        first = collectives.broadcast(x[1], 0, group)
        return first + collectives.all_reduce((swapped @ x[1].t()).t(), "max", group).t() @ first


MADE: dict[str, Callable[[], torch.nn.Module]] = {"block": block, "sequence": sequence, "direct": Direct}


def batches(kind: str) -> list[Tensor]:
    """What all ranks are given; where a rank has some of the positions, or says what it has, its own."""
    generator = torch.Generator().manual_seed(0 if kind == "block" else dist.get_rank())
    return [torch.randn(2, 16, WIDTH, generator=generator).to(DEVICE) for _ in range(STEPS)]


def compiled(model: torch.nn.Module, backend: str) -> Any:
    torch._dynamo.reset()  # its limits count all programs together
    return fairlead.compile(model, backend=backend, fullgraph=True)


def curve(kind: str, model: torch.nn.Module, run: Any) -> tuple[list[float], list[Tensor]]:
    """The losses of some steps, and the gradients of the last; nothing of a module that has no weights."""
    if not any(True for _ in model.parameters()):
        return [], []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, foreach=False)  # torch mixes no DTensors with tensors
    losses = []
    for x in batches(kind):
        optimizer.zero_grad()
        loss = (run(x) - x[:1].roll(1, -1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [_local(p.grad) for p in model.parameters() if p.grad is not None]


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def furthest(found: list[Tensor], right: list[Tensor]) -> float:
    return max(
        (float((a - b).norm() / b.norm().clamp(min=1e-12)) for a, b in zip(found, right, strict=True)), default=0.0
    )


def compare(kind: str, backends: list[str]) -> None:
    """Inference and training through each backend, beside eager mode."""
    x, made = batches(kind)[0], MADE[kind]
    with torch.no_grad():
        right = made()(x)
    eager = made()
    losses, gradients = curve(kind, eager, eager)
    for backend in backends:
        inferring = compiled(made(), backend)
        with torch.no_grad():
            inferred = inferring(x)
        model = made()
        training = compiled(model, backend)
        found, found_gradients = curve(kind, model, training)
        graphs = [graph for run in (inferring, training) for graph in run.fairlead.placement.graphs]
        say(
            {
                "kind": kind,
                "backend": backend,
                "rank": dist.get_rank(),
                "inference": furthest([inferred], [right]),
                "loss": max((abs(a - b) / b for a, b in zip(found, losses, strict=True)), default=0.0),
                "gradients": furthest(found_gradients, gradients),
                "graphs": [graph.kind.value for graph in graphs],
                "collectives": [_collectives(graph) for graph in graphs],
                "takers": sorted({n.backend for g in graphs for n in g.nodes if _starts(n.op)}),
                "recompilations": [str(r) for run in (inferring, training) for r in run.fairlead.recompilations],
                "declined": sum(graph.total - graph.native for graph in graphs),
            }
        )


def _collectives(graph: Any) -> list[str]:
    return [n.op.split(".")[1] for n in graph.nodes if _starts(n.op)]


def _starts(op: str) -> bool:
    """Whether an op is a collective and not what waits for one."""
    return op.startswith("_c10d_functional.") and "wait" not in op


def main() -> None:
    torch.set_num_threads(1)
    if DEVICE.type == "cuda":
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if DEVICE.type == "cuda" else "gloo")
    kinds, *backends = (argument for argument in sys.argv[1:] if argument != "--cuda")
    for kind in kinds.split(","):
        compare(kind, backends)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
