"""What Inductor cannot compile is told apart from what fails while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_reduce

import fairlead
from fairlead.errors import CompileError
from fairlead_inductor import _executable


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def compile_fx(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(_executable, "compile_fx", compile_fx)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    dist.destroy_process_group()


def total(x: torch.Tensor) -> torch.Tensor:
    return all_reduce(x.sin(), "sum", dist.group.WORLD)


@pytest.mark.usefixtures("broken")
def test_collectives_that_do_not_compile_are_run_by_the_next() -> None:
    compiled = fairlead.compile(total, backend="inductor")
    assert torch.equal(compiled(torch.ones(3)), torch.ones(3).sin())
    (graph,) = compiled.fairlead.placement.graphs  # type: ignore[attr-defined]
    assert graph.parts[0].backend == "eager"


@pytest.mark.usefixtures("broken")
def test_what_does_not_compile_is_an_error_where_nothing_else_may_run_it() -> None:
    with pytest.raises(CompileError, match="Inductor raised RuntimeError: no compiler here"):
        fairlead.compile(total, backend="inductor", fallback=())(torch.ones(3))
