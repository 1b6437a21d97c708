"""NumPy computes what torch computes: a sample of torch's own samples of its ops, and a model in training.

``python benchmarks/oracle.py`` is the whole of it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests import forked

ORACLE = Path(__file__).parents[3] / "benchmarks/oracle.py"

OPS = [
    "add", "div.floor_rounding", "div.trunc_rounding", "remainder", "pow", "clamp", "where", "round", "sigmoid", "sgn",
    "lgamma", "erfinv", "bitwise_right_shift", "eq", "isin", "sum", "prod", "var_mean", "argmax", "logsumexp", "cummax",
    "cumprod", "sort", "topk", "mode", "searchsorted", "histc", "matmul", "addmm", "einsum", "nn.functional.linear",
    "nn.functional.layer_norm", "nn.functional.group_norm", "nn.functional.batch_norm", "nn.functional.gelu",
    "nn.functional.elu", "nn.functional.conv2d", "nn.functional.conv_transpose2d", "nn.functional.max_pool2d",
    "nn.functional.avg_pool3d", "nn.functional.adaptive_avg_pool2d", "nn.functional.adaptive_max_pool2d",
    "nn.functional.interpolate.bilinear", "nn.functional.grid_sample", "nn.functional.embedding",
    "nn.functional.embedding_bag", "nn.functional.cross_entropy", "nn.functional.scaled_dot_product_attention",
    "nn.functional.pad.reflect", "nn.functional.pad.replicate_negative", "nn.functional.unfold", "softmax",
    "log_softmax.with_dtype", "cat", "unbind", "diagonal", "as_strided", "unfold", "flip", "gather",
    "scatter_reduce.mean", "index_put", "index_reduce.prod", "masked_scatter", "cdist", "fft.rfft2", "fft.irfft",
    "view_as_complex", "bernoulli",
]  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    """What came out for each op, in one process, which imports torch's samples once."""
    options = ["--json", "--samples", "2", "--dtypes", "f32,i64", "--seconds", "30"]
    run = forked.run([str(ORACLE), *options, *OPS], os.environ)
    assert run.stderr == ""
    return {line["op"]: line for line in map(json.loads, run.stdout.splitlines())}


@pytest.mark.parametrize("op", OPS)
def test_an_op_is_what_torch_computes(op: str, found: dict[str, dict[str, Any]]) -> None:
    outcome = found[op]
    bad = {kind: outcome[kind] for kind in ("differ", "unsupported", "no sample") if kind in outcome}
    assert bad == {}, outcome["notes"]
    assert sum(outcome.get(kind, 0) for kind in ("agree", "sensitive", "ties", "drawn")) > 0


def test_a_model_in_inference_and_training_is_what_torch_computes() -> None:
    pytest.importorskip("transformers")
    run = forked.run([str(ORACLE), "--models", "mlp", "llama"], os.environ)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("'agree'") == 4
