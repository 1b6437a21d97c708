"""Sizes that are declared once: programs for the buckets or for the range, and the same meaning on every backend."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

import fairlead
from fairlead import Dim
from fairlead.errors import ArgumentError, FairleadError, NotCompiledError, ShapeError

from .nets import Mlp

FAST = ("eager", "onnxrt", "openvino")
some = pytest.mark.parametrize("backend", FAST)


class Masked(torch.nn.Module):
    """Mixes positions, but for those that the mask leaves out; results of several shapes, and one that is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, scale: torch.Tensor | None = None) -> dict[str, Any]:
        scores = (x @ x.transpose(1, 2)).masked_fill(~mask[:, None, :], -1e4)
        mixed = self.linear(scores.softmax(-1) @ x)
        pooled = (mixed * mask[..., None]).sum(1) * (1.0 if scale is None else scale)
        return {"tokens": mixed, "pooled": (pooled, 3), "mask": mask.logical_not()}


class Statistics(torch.nn.Module):
    """Results of one row depend on the others."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


def close(result: Any, expected: Any) -> None:
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


@some
def test_ten_sizes_run_in_the_programs_of_two_buckets(backend: str) -> None:
    model = Mlp().eval()
    batch = Dim("batch", max=16, buckets=[4, 16])
    compiled = fairlead.compile(model, backend=backend, shapes={"x": {0: batch}})
    with torch.no_grad():
        seconds = fairlead.compile_ahead(compiled, [torch.randn(3, 8)])
        assert list(seconds) == ["batch=4", "batch=16"]
        with fairlead.freeze(compiled) as frozen:
            for size in (1, 2, 3, 4, 5, 9, 15, 16, 1, 7):
                x = torch.randn(size, 8)
                close(compiled(x), model(x))
        assert frozen.misses == 0
        assert len(compiled.fairlead.placement.graphs) == 2


@some
def test_a_range_without_buckets_has_one_program_beside_size_one(backend: str) -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend=backend, shapes={"x": {0: Dim("batch", max=16)}})
    with torch.no_grad():
        assert list(fairlead.compile_ahead(compiled, [torch.randn(3, 8)])) == ["batch=1", "batch=2"]
        with fairlead.freeze(compiled):
            for size in (1, 2, 5, 16, 5, 5, 5):
                x = torch.randn(size, 8)
                close(compiled(x), model(x))
        assert len(compiled.fairlead.placement.graphs) == 2


@some
@pytest.mark.parametrize("miss", ["error", "eager"])
def test_an_undeclared_size_gives_the_chosen_outcome(backend: str, miss: Any) -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend=backend, shapes={"x": {0: Dim("batch", max=4, buckets=[4])}})
    x = torch.randn(5, 8)
    with torch.no_grad():
        fairlead.compile_ahead(compiled, [torch.randn(3, 8)])
        with fairlead.freeze(compiled, miss=miss) as frozen:
            if miss == "error":
                with pytest.raises(NotCompiledError, match=r"Mlp\(float32\[5, 8\]\)"):
                    compiled(x)
            else:
                close(compiled(x), model(x))
            assert frozen.misses == 1
        close(compiled(x), model(x))  # thawed, it compiles


@some
def test_two_dimensions_and_results_of_every_shape(backend: str) -> None:
    model = Masked().eval()
    batch, length = Dim("batch", max=4, buckets=[2, 4]), Dim("length", max=8, buckets=[8])
    shapes = {"x": {0: batch, 1: length}, "mask": {0: batch, 1: length}, "scale": {0: batch}}
    compiled = fairlead.compile(model, backend=backend, shapes=shapes)
    example = torch.randn(1, 3, 8), torch.ones(1, 3, dtype=torch.bool)
    with torch.no_grad():
        assert list(fairlead.compile_ahead(compiled, example)) == ["batch=2, length=8", "batch=4, length=8"]
        with fairlead.freeze(compiled):
            for b, n in ((1, 3), (2, 8), (4, 8), (3, 5), (1, 3), (1, 3)):
                x, mask = torch.randn(b, n, 8), torch.ones(b, n, dtype=torch.bool)
                mask[:, 1] = False
                close(compiled(x, mask=mask), model(x, mask))


def test_padding_that_changes_results_is_an_error() -> None:
    batch = Dim("batch", max=4, buckets=[4])
    compiled = fairlead.compile(Statistics(), backend="eager", shapes={"x": {0: batch}})
    with pytest.raises(ShapeError) as caught:
        fairlead.compile_ahead(compiled, [torch.randn(3, 8)])
    assert str(caught.value).splitlines() == [
        "FL204: padding along 'batch' changes the values of result 0",
        "  from: Statistics, with zeros behind 'batch' up to its next bucket",
        "  next: leave buckets out: one program then serves the whole range; or let the model mask what is padded",
    ]
    with pytest.raises(ShapeError):
        compiled(torch.randn(3, 8))
    assert compiled(torch.ones(4, 8)).shape == (4, 8)


def test_trying_out_writes_no_buffer_and_draws_no_number() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(8))
    state = copy.deepcopy(model.state_dict())
    compiled = fairlead.compile(model, backend="eager", shapes={"input": {0: Dim("n", max=4, buckets=[4])}})
    before = torch.get_rng_state()
    with pytest.raises(ShapeError):
        fairlead.compile_ahead(compiled, [torch.randn(3, 8, generator=torch.Generator().manual_seed(1))])
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


@some
def test_gradients_flow_through_what_is_padded(backend: str) -> None:
    model = Mlp()
    reference = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend=backend, shapes={"x": {0: Dim("batch", max=4, buckets=[4])}})
    x = torch.randn(3, 8)
    compiled(x).square().sum().backward()
    reference(x).square().sum().backward()
    for parameter, other in zip(model.parameters(), reference.parameters(), strict=True):
        close(parameter.grad, other.grad)


def test_copies_and_pickles_keep_what_was_declared() -> None:
    compiled = fairlead.compile(Mlp().eval(), backend="eager", shapes={"x": {0: Dim("batch", max=4, buckets=[4])}})
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        with torch.no_grad():
            fairlead.compile_ahead(other, [torch.randn(3, 8)])
            with fairlead.freeze(other):
                assert other(torch.randn(2, 8)).shape == (2, 8)


def test_functions_and_more_buckets_than_torch_would_compile() -> None:
    batch = Dim("batch", max=24, buckets=range(2, 25, 2))

    @fairlead.compile(backend="eager", shapes={"x": {0: batch}})
    def double(x: torch.Tensor) -> torch.Tensor:
        return x + x

    assert len(fairlead.compile_ahead(double, [torch.ones(1, 3)])) == 12
    with fairlead.freeze(double):
        for size in range(1, 25):
            assert torch.equal(double(torch.ones(size, 3)), torch.full((size, 3), 2.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max": 0}, "reaches from 1 to 0"),
        ({"max": 8, "buckets": [8, 1]}, "has the buckets [8, 1]"),
        ({"max": 8, "buckets": [1, 4]}, "has buckets from 1 to 4 for a range from 1 to 8"),
        ({"min": 2, "max": 8, "buckets": [1, 8]}, "has buckets from 1 to 8 for a range from 2 to 8"),
    ],
)
def test_a_dimension_that_does_not_fit_together_is_an_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Dim("batch", **arguments)
    assert caught.value.what == f"dimension 'batch' {message}"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": {0: Dim("batch")}}, "shapes names the argument 'y'"),
        ({"x": {0: 3}}, "shapes of 'x' is {0: 3}"),
        ({"x": {0: Dim("n", max=2), 1: Dim("n", max=3)}}, "two dimensions in shapes have one name"),
    ],
)
def test_wrong_shapes_are_errors_at_once(shapes: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        fairlead.compile(Mlp(), backend="eager", shapes=shapes)
    assert caught.value.what == message


def test_compiling_ahead_needs_declared_sizes_and_an_example_that_has_them() -> None:
    with pytest.raises(ArgumentError, match="there are no declared sizes"):
        fairlead.compile_ahead(fairlead.compile(Mlp(), backend="eager"), [torch.ones(1, 8)])
    compiled = fairlead.compile(Mlp(), backend="eager", shapes={"x": {2: Dim("batch", max=4, buckets=[4])}})
    with pytest.raises(FairleadError, match="the example has no dimension 2 of 'x'"):
        fairlead.compile_ahead(compiled, [torch.ones(1, 8)])


def test_progress_is_shown_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm"}.items():  # as on a terminal
        monkeypatch.setenv(name, value)
    compiled = fairlead.compile(Mlp(), backend="eager", shapes={"x": {0: Dim("batch", max=2, buckets=[1, 2])}})
    fairlead.compile_ahead(compiled, [torch.ones(1, 8)])
    assert capsys.readouterr().err == ""
    fairlead.compile_ahead(compiled, [torch.ones(1, 8)], progress=True)
    assert "compiling batch=2" in capsys.readouterr().err
