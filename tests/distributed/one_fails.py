"""Two processes of a DDP run, of which the second one's backend may not leave anything to another."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import fairlead


class Airy(torch.nn.Module):
    """Has an op that ONNX Runtime does not."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(self.linear(x).detach()) * self.linear(x)


def main() -> None:
    dist.init_process_group("gloo")
    budget = 0.0 if dist.get_rank() == 1 else 1.0
    compiled = fairlead.compile(DistributedDataParallel(Airy()), backend="onnxrt", max_fallback=budget)
    compiled(torch.randn(4, 8)).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
