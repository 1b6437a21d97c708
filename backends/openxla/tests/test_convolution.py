"""Convolutions on a CPU, in each of the forms in which they are written there, and those that are left to others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import fairlead
from fairlead.backend import Executable
from fairlead.ir import Builder, DType, Graph, Input, Kind, Node, Output, TensorType, Value
from fairlead_openxla import OpenXLAOptions, backend
from fairlead_openxla._executable import XlaExecutable

FORMS = {
    "apart": (nn.Conv2d(8, 8, 3, padding=1, groups=8), (2, 8, 9, 7)),
    "apart with strides": (nn.Conv2d(8, 8, 7, stride=(2, 3), padding=(3, 1), groups=8), (2, 8, 12, 15)),
    "apart with gaps": (nn.Conv2d(6, 6, 3, padding=2, dilation=(2, 1), groups=6, bias=False), (1, 6, 9, 9)),
    "apart to several channels": (nn.Conv2d(5, 15, 3, groups=5), (2, 5, 6, 6)),
    "apart in one dimension": (nn.Conv1d(12, 12, 4, padding=3, groups=12), (2, 12, 10)),
    "apart in three dimensions": (nn.Conv3d(4, 4, 3, padding=1, groups=4), (1, 4, 5, 6, 7)),
    "apart without a batch": (nn.Conv2d(4, 4, 3, groups=4), (4, 6, 6)),
    "pointwise": (nn.Conv2d(24, 40, 1), (2, 24, 5, 7)),
    "pointwise with strides": (nn.Conv2d(24, 40, 1, stride=2), (2, 24, 5, 7)),
    "pointwise with a rim": (nn.Conv2d(24, 40, 1, padding=1), (2, 24, 5, 7)),
    "few channels": (nn.Conv2d(3, 16, 7, stride=2, padding=3), (2, 3, 20, 21)),
    "many channels": (nn.Conv2d(128, 32, 3, stride=2, padding=1), (2, 128, 9, 9)),
    "by Eigen": (nn.Conv2d(32, 32, 3, stride=2, padding=1), (2, 32, 20, 21)),
    "in one dimension": (nn.Conv1d(1, 32, 10, stride=5), (2, 1, 203)),
    "in three dimensions": (nn.Conv3d(3, 8, 3, padding=1), (1, 3, 5, 6, 7)),
    "in three dimensions, of many channels": (nn.Conv3d(32, 8, (1, 2, 3), dilation=2), (1, 32, 5, 6, 7)),
    "wide groups": (nn.Conv2d(64, 64, 3, groups=2), (1, 64, 6, 6)),
    "tiles": (nn.Conv2d(32, 48, 3, padding=1), (2, 32, 8, 8)),
    "tiles cut off": (nn.Conv2d(32, 32, 3, padding=(1, 2)), (1, 32, 9, 12)),
    "tiles without a rim": (nn.Conv2d(32, 32, 3, bias=False), (1, 32, 11, 13)),
    "many tiles": (nn.Conv2d(32, 32, 3, padding=1), (1, 32, 47, 48)),
    "tiles without a batch": (nn.Conv2d(32, 32, 3, padding=1), (32, 9, 9)),
}


TILES = [form for form in FORMS if "tiles" in form]


@pytest.mark.parametrize("form", FORMS)
def test_a_convolution_is_eagers_in_every_form(form: str) -> None:
    module, shape = FORMS[form]
    x = torch.randn(shape)
    run = fairlead.compile(module, backend="openxla", fallback=(), options={"winograd": form in TILES})
    with torch.no_grad():
        torch.testing.assert_close(run(x), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("form", ["apart", "few channels", "tiles"])
def test_other_element_types_take_the_same_forms_or_plainer_ones(form: str, dtype: torch.dtype) -> None:
    module, shape = FORMS[form]
    module, x = type(module)(**settings_of(module)).to(dtype), torch.randn(shape, dtype=dtype)
    run = fairlead.compile(module, backend="openxla", fallback=(), options={"winograd": True})
    with torch.no_grad():
        torch.testing.assert_close(run(x), module(x))


def settings_of(module: Any) -> dict[str, Any]:
    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "groups")
    return {name: getattr(module, name) for name in names}


def test_tiles_lose_few_more_bits_than_eager() -> None:
    module, x = nn.Conv2d(128, 128, 3, padding=1), torch.randn(2, 128, 24, 24)
    run = fairlead.compile(module, backend="openxla", fallback=(), options={"winograd": True})
    with torch.no_grad():
        exact = nn.functional.conv2d(x.double(), module.weight.double(), module.bias.double(), padding=1)  # type: ignore[union-attr]
        lost, by_eager = (run(x) - exact).abs().max(), (module(x) - exact).abs().max()
    assert lost < 4 * by_eager


@pytest.mark.parametrize("how", [{}, {"precision": "highest"}])
def test_without_tiles_a_nan_reaches_no_more_than_in_eager(how: dict[str, Any]) -> None:
    module, x = nn.Conv2d(32, 32, 3, padding=1), torch.randn(1, 32, 9, 9)
    x[0, 3, 4, 4] = torch.nan
    run = fairlead.compile(module, backend="openxla", fallback=(), **how)
    with torch.no_grad():
        assert torch.equal(run(x).isnan(), module(x).isnan())


def test_a_precision_of_less_than_the_highest_keeps_the_option() -> None:
    kept = backend.options_for_precision(OpenXLAOptions(winograd=True), "high")
    assert (kept.winograd, kept.precision) == (True, "tf32")


def graph(
    weight: tuple[int, ...],
    shape: tuple[int | str, ...],
    result: tuple[int | str, ...] | None = None,
    *,
    groups: int = 1,
    transposed: bool = False,
    device: str = "cpu",
) -> Graph:
    """A convolution by three of padding one, of an image and a weight that are inputs."""
    found = result or (shape[0], weight[0], *shape[2:])
    x, w, y = (Value(i, TensorType(DType.f32, s, device=device)) for i, s in enumerate((shape, weight, found)))
    given: tuple[Any, ...] = (x, w, None, (1, 1), (1, 1), (1, 1), transposed, (0, 0), groups)
    node = Node("aten.convolution.default", given, (y,))
    return Graph("g", Kind.inference, (Input(x), Input(w)), (node,), (Output(y),), ())


def tiled(weight: torch.Tensor) -> tuple[Graph, Executable]:
    g = graph(tuple(weight.shape), (1, weight.shape[1], 8, 8))
    return g, backend.compile(g, OpenXLAOptions(winograd=True), {1: weight})


def test_new_values_of_a_weight_become_new_factors_of_tiles() -> None:
    weight, x = torch.randn(32, 32, 3, 3), torch.randn(1, 32, 8, 8)
    _, run = tiled(torch.randn(32, 32, 3, 3))
    run.refit({1: weight})  # type: ignore[attr-defined]
    torch.testing.assert_close(run([x])[0], torch.conv2d(x, weight, None, 1, 1), rtol=1e-5, atol=1e-4)


def test_a_weight_that_comes_with_each_call_is_not_made_into_factors() -> None:
    weight, x = torch.randn(32, 32, 3, 3), torch.randn(1, 32, 8, 8)
    x[0, 0, 0, 0] = torch.inf
    run = backend.compile(graph((32, 32, 3, 3), (1, 32, 8, 8)), OpenXLAOptions(winograd=True), {})
    wanted = torch.conv2d(x, weight, None, 1, 1)
    assert torch.equal(run([x, weight])[0].isfinite(), wanted.isfinite())


def test_a_stored_program_of_tiles_is_loaded_with_its_factors() -> None:
    weight, x = torch.randn(32, 32, 3, 3), torch.randn(1, 32, 8, 8)
    g, run = tiled(weight)
    loaded = backend.load(backend.dump(run), g, OpenXLAOptions(winograd=True), {1: weight})
    assert torch.equal(loaded([x])[0], run([x])[0])


def reason(g: Graph) -> str | None:
    (node,) = g.nodes
    found = backend.supports(node)
    return None if found.accepted else found.reason


def test_narrow_groups_are_left_to_others_with_the_reason() -> None:
    found = reason(graph((128, 4, 3, 3), (2, 128, 24, 24), groups=32))
    assert found == "slower than eager here: XLA's convolutions on a CPU in groups of 4 channels"


def test_a_transposed_convolution_apart_is_left_to_others() -> None:
    found = reason(graph((64, 1, 3, 3), (2, 64, 24, 24), groups=64, transposed=True))
    assert found == "slower than eager here: XLA's convolutions on a CPU in groups of 1 channels"


@pytest.mark.parametrize(
    "kept",
    [
        graph((128, 1, 3, 3), (2, 128, 24, 24), groups=128),
        graph((128, 32, 3, 3), (2, 128, 24, 24), groups=4),
        graph((8, 4, 3, 3), (1, 8, 4, 4), groups=2),
    ],
    ids=["apart", "wide", "little"],
)
def test_other_groups_are_kept(kept: Graph) -> None:
    assert reason(kept) is None


def test_a_step_of_training_through_a_convolution_apart_has_eagers_gradients() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Linear(12, 12), nn.GELU(), nn.Unflatten(1, (6, 2)), nn.Conv1d(6, 6, 3, padding=1, groups=6), nn.Flatten(),
        nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3),
    )  # fmt: skip
    x = torch.randn(4, 12)
    module(x).square().sum().backward()
    wanted = [p.grad.clone() for p in module.parameters() if p.grad is not None]
    module.zero_grad()
    fairlead.compile(module, backend="openxla")(x).square().sum().backward()
    found = [p.grad for p in module.parameters()]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "given"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("size", [(2,), (2, 3), (1, 2, 2)], ids=str)
def test_a_transposed_convolution_in_blocks_is_torchs(size: tuple[int, ...], dtype: torch.dtype, packed: bool) -> None:
    """Where kernel and stride are the same, each place of the image has a block of the result for itself."""
    rank = len(size)
    shapes = (2, 6, *range(3, 3 + rank)), (6, 5, *size), (5,)
    x, weight, bias = given = [torch.randn(shape).to(dtype) for shape in shapes]
    zeros = (0,) * rank
    args = (size if rank > 1 else (2,), zeros, (1,) * rank, True, zeros, 1)
    expected = torch.ops.aten.convolution.default(*(t.float() for t in given), *args)
    b, name = Builder(), {torch.float32: "f32", torch.float16: "f16"}[dtype]
    values = [b.input(f"{name}{list(t.shape)}") for t in given]
    b.output(b.op("aten.convolution.default", *values, *args, to=f"{name}{list(expected.shape)}"))
    run = backend.compile(b.graph(), OpenXLAOptions(), {1: weight, 2: bias} if packed else {})
    (found,) = run([x] if packed else given)
    bound = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(found, expected.to(dtype), rtol=bound, atol=4 * bound)
    assert isinstance(run, XlaExecutable)
    assert "convolution(" not in run.readable()["0.hlo.txt"]


def test_no_matrix_is_written_of_all_windows_of_a_large_volume() -> None:
    """Twenty-seven times as large as the volume, it would take long to write, and much memory."""
    b = Builder()
    x, weight = b.input("f32[1, 3, 40, 60, 60]"), b.input("f32[4, 3, 3, 3, 3]")
    args = ((1,) * 3, (0,) * 3, (1,) * 3, False, (0,) * 3, 1)
    b.output(b.op("aten.convolution.default", x, weight, None, *args, to="f32[1, 4, 38, 58, 58]"))
    run = backend.compile(b.graph(), OpenXLAOptions(), {})
    assert isinstance(run, XlaExecutable)
    assert "convolution(" in run.readable()["0.hlo.txt"]
