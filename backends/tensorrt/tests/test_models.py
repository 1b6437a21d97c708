"""The build-only profile of the bundled models: an engine for each, which is looked at and not run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import fairlead
from fairlead._compare._reference import example, with_dynamic
from fairlead._models import CATALOG, Model
from fairlead._models._captured import mark
from fairlead._models._load import load, with_dtype
from fairlead.ir import DType
from fairlead.registry import registry

pytest.importorskip("tensorrt_rtx")
from fairlead_tensorrt.testing import BuildOnly, Made


@pytest.fixture
def built() -> Iterator[BuildOnly]:
    backend = BuildOnly()
    registry.register(backend)
    torch._dynamo.reset()
    yield backend
    registry.unregister(backend.name)


def made(model: Model, built: BuildOnly, *, dynamic: bool = False) -> Made:
    """The one engine that a model is."""
    tensors = example(model, dynamic)
    if dynamic:
        mark(model, tensors)
    program = fairlead.compile(model.module, backend=built.name, fallback=())
    args, kwargs = model.inputs(tensors)
    with torch.no_grad():
        program(*args, **kwargs)
    assert program.fairlead.placement.native_share == 1.0
    (found,) = built.made
    return found


@pytest.mark.parametrize("name", CATALOG)
def test_each_model_is_one_engine_whose_weights_have_names(name: str, built: BuildOnly) -> None:
    found = made(load(name), built)
    assert found.engine.precisions["Float"] > 0
    assert len(found.engine.named) == found.constants > 0, "what has no name cannot be refitted"
    assert not found.engine.ranges


def test_products_of_halves_are_halves(built: BuildOnly) -> None:
    assert made(with_dtype(load("bert"), DType.bf16), built).engine.precisions["BFloat16"] > 10


def test_sizes_that_vary_are_ranges(built: BuildOnly) -> None:
    found = made(with_dynamic(load("gpt2")), built, dynamic=True)
    assert [(r.smallest, r.largest) for r in found.engine.ranges.values()] == [((2, 2), (512, 512))]
