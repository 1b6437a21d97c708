"""PyTorch's own samples of its ops, captured and interpreted, are what eager computes, and lie in memory alike."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests import forked

OPS = [
    "add", "sub", "div.floor_rounding", "pow", "where", "clamp", "sigmoid", "erf", "round", "isnan", "cumsum", "sum",
    "mean", "amax", "argmax", "var", "std_mean", "logsumexp", "norm", "softmax", "log_softmax.with_dtype", "matmul",
    "addmm", "bmm", "einsum", "nn.functional.linear", "nn.functional.layer_norm", "nn.functional.group_norm",
    "nn.functional.batch_norm", "nn.functional.gelu", "nn.functional.silu", "nn.functional.conv2d",
    "nn.functional.conv_transpose2d", "nn.functional.max_pool2d", "nn.functional.avg_pool2d",
    "nn.functional.interpolate.bilinear", "nn.functional.embedding", "nn.functional.cross_entropy",
    "nn.functional.scaled_dot_product_attention", "nn.functional.pad.reflect", "cat", "stack", "split", "unbind",
    "permute", "reshape", "expand", "squeeze", "flip", "roll", "tril", "gather", "scatter_add", "index_put",
    "masked_fill", "topk", "sort", "unfold", "as_strided", "diagonal", "full_like", "linspace", "randn_like",
    "bernoulli", "view_as_complex", "randint_like", "max.reduction_no_dim", "view_copy", "addmv", "block_diag",
]  # fmt: skip


@pytest.fixture(scope="module")
def problems() -> dict[str, str]:
    """What is wrong with each op, empty where nothing is; all in one process, which imports torch's samples once."""
    child = Path(__file__).with_name("opinfo_child.py")
    run = forked.run([str(child), *OPS], os.environ, timeout=300)
    assert run.returncode == 0, run.stderr
    return dict(json.loads(line) for line in run.stdout.splitlines())


@pytest.mark.parametrize("op", OPS)
def test_an_op_is_what_eager_computes(op: str, problems: dict[str, str]) -> None:
    assert problems[op] == ""
