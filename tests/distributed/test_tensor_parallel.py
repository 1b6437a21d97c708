"""Tensor parallel modules over gloo: one graph each, whose collectives are its nodes, and what eager ranks compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch.distributed

from tests.distributed.launch import told

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")

COLLECTIVES = {
    "block": [["all_reduce"] * 2, ["all_reduce"] * 2, ["all_reduce"] * 4],
    "sequence": [["all_gather_into_tensor", "reduce_scatter_tensor"]] * 3,
    "direct": [["all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "broadcast", "all_reduce"]],
}
"""Of each program, those of its inference graph and, where it has weights, its forward and its backward."""


def results(kinds: Sequence[str], backends: Sequence[str], *, processes: int, device: str = "cpu") -> Any:
    """What each rank says of each program and backend, once all are there and agree with the eager run."""
    found = told("parallel", ",".join(kinds), *backends, processes=processes, device=device)
    assert sorted((f["kind"], f["backend"], f["rank"]) for f in found) == sorted(
        (k, b, r) for k in kinds for b in backends for r in range(processes)
    )
    for each in found:
        assert each["inference"] < 1e-5, each
        assert each["loss"] < 1e-5, each
        assert each["gradients"] < 1e-4, each
        assert each["graphs"] == ["inference", "forward", "backward"][: len(COLLECTIVES[each["kind"]])], each
        assert each["collectives"] == COLLECTIVES[each["kind"]], each
        assert each["recompilations"] == [], each
        assert each["declined"] == 0, each
    return found


@pytest.mark.parametrize(
    ("processes", "kinds", "backends"),
    [
        (2, ("block",), ("inductor", "openvino")),
        (4, ("block", "sequence", "direct"), ("onnxrt",)),
    ],
)
def test_ranks_that_share_a_module_compute_what_eager_ranks_do(
    processes: int, kinds: Sequence[str], backends: Sequence[str]
) -> None:
    for each in results(kinds, backends, processes=processes):
        assert each["takers"] == ["inductor" if each["backend"] == "inductor" else "eager"], each


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two CUDA devices are needed")
def test_ranks_that_share_a_module_with_a_device_each_compute_what_eager_ranks_do() -> None:
    results(("block", "sequence", "direct"), ("eager", "cudagraphs", "inductor"), processes=2, device="cuda")
