"""A sample of ``benchmarks/gradient_parity.py``: gradients of whole models, captured, decomposed and interpreted."""

from __future__ import annotations

import warnings

import pytest
from gradient_parity import compare

from fairlead.passes import DECOMPOSABLE

SAMPLE = [("llama", "train"), ("vit", "eval"), ("bert", "autocast"), ("resnet", "autocast"), ("mamba", "eval")]


@pytest.mark.parametrize(("model", "mode"), SAMPLE)
def test_gradients_of_a_base_only_backend_are_as_near_to_float64_as_eager_s(model: str, mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers and of torch, about the models
        row = compare(model, mode)
    assert row.passed, row
    assert row.graphs == 2
    assert not row.ops & DECOMPOSABLE
