"""DDP and FSDP2 over gloo: every rank learns what eager ranks learn, through backends that compile within a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch.distributed

from tests.distributed.launch import told, torchrun

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")


def results(kind: str, *backends: str, processes: int, device: str = "cpu") -> list[dict[str, Any]]:
    """What each rank says of each backend, once all are there and agree with the eager run."""
    found = told("training", kind, *backends, processes=processes, device=device)
    assert sorted((f["backend"], f["rank"]) for f in found) == sorted(
        (b, r) for b in backends for r in range(processes)
    )
    for each in found:
        assert each["learned"] < 0.95, each
        assert each["loss"] < 1e-3, each
        assert each["gradients"] < 1e-4, each
        assert each["declined"] == 0, each
    return found


@pytest.mark.parametrize(("processes", "backends"), [(2, ("eager", "openvino")), (4, ("onnxrt",))])
def test_ranks_learn_what_eager_ranks_learn_in_a_graph_for_each_bucket(processes: int, backends: Sequence[str]) -> None:
    for each in results("ddp", *backends, processes=processes):
        assert each["graphs"] == ["forward", "forward", "backward", "backward"], each
        assert each["recompilations"] == [], each


def test_sharded_blocks_are_compiled_and_learn_what_they_learn_in_eager_mode() -> None:
    for each in results("fsdp", "onnxrt", processes=2):
        assert each["graphs"] == ["forward", "forward", "backward", "backward"], each
        (first,) = each["recompilations"]
        assert "requires_grad" in first, "the first block is compiled for inputs, the others for activations"


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two CUDA devices are needed")
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_ranks_with_a_device_each_learn_what_eager_ranks_learn(kind: str) -> None:
    for each in results(kind, "eager", "cudagraphs", "inductor", processes=2, device="cuda"):
        assert each["graphs"] == ["forward", "forward", "backward", "backward"], each


def test_a_rank_that_fails_to_compile_ends_all_with_its_reason() -> None:
    done = torchrun("one_fails")
    assert done.returncode != 0
    assert "aten.special_bessel_j0" in done.stderr
    assert "local_rank: 1" in done.stderr or "rank      : 1" in done.stderr
