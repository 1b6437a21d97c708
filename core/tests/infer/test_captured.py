"""What the rules infer is what torch's own shape propagation declares, on graphs that capture makes of programs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests import forked

OPS = [
    "add", "div.floor_rounding", "pow", "where", "clamp", "cumsum", "sum", "std_mean", "argmax", "logsumexp",
    "linalg.vector_norm", "matmul", "einsum", "cdist", "nn.functional.layer_norm", "nn.functional.group_norm",
    "nn.functional.batch_norm", "nn.functional.conv2d", "nn.functional.conv_transpose1d", "nn.functional.max_pool2d",
    "nn.functional.avg_pool3d", "nn.functional.interpolate.bicubic", "nn.functional.grid_sample",
    "nn.functional.embedding_bag", "nn.functional.cross_entropy", "nn.functional.scaled_dot_product_attention",
    "nn.functional.pad.replicate", "cat", "unbind", "diagonal", "index_put", "scatter_reduce.amax", "gather", "topk",
    "sort", "unfold", "as_strided", "fft.irfft2", "view_as_real", "polygamma.polygamma_n_0", "masked_scatter", "arange",
]  # fmt: skip

RUNS = {
    "ops": ["opinfo", *OPS],
    "ops on other numbers": ["opinfo", *OPS[::4], "fft.fft", "--dtype", "int64", "--dtype", "complex64"],
    "ops of symbolic sizes": ["opinfo", *OPS[::4], "--dynamic"],
    "models in training": ["models", "mamba", "convnext", "--mode", "training"],
    "models under autocast": ["models", "bert", "--mode", "autocast"],
    "models of symbolic sizes": ["models", "gemma", "--mode", "inference", "--dynamic"],
}


@pytest.fixture(scope="module", params=RUNS)
def programs(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """What was found in each program of a run, in a process of its own."""
    child = Path(__file__).with_name("captured.py")
    run = forked.run([str(child), *RUNS[request.param]], os.environ)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def test_no_node_has_other_types_than_its_rule_says(programs: list[dict[str, Any]]) -> None:
    assert [text for program in programs for text in program["wrong"]] == []


def test_the_programs_are_captured_and_their_nodes_have_rules(programs: list[dict[str, Any]]) -> None:
    rows = [row for program in programs for row in program["rows"]]
    right = sum(count for _, _, verdict, count in rows if verdict == "right")
    unknown = {op for op, _, verdict, _ in rows if verdict == "unknown"}
    assert right > 20
    assert unknown == set()
    assert [program for program in programs if not program["rows"]] == []
