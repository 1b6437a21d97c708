"""Results are the caller's own, and are what eager's are: values, dtypes, strides, aliases, gradients."""

from __future__ import annotations

import copy

import pytest
import torch

import fairlead

from .nets import Attention, Mlp


def test_a_result_is_not_overwritten_by_a_later_call(backend: str) -> None:
    compiled = fairlead.compile(Mlp().eval(), backend=backend)
    with torch.no_grad():
        first = compiled(torch.ones(3, 8))
        kept = first.clone()
        second = compiled(torch.zeros(3, 8))
    assert torch.equal(first, kept)
    assert not torch.equal(first, second)


def _views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x * 2
    return (x, x.t(), x.view(-1), x.t().clone(), y, y.t(), y.t(), x.clone(), y.expand(2, *y.shape), y[:, 1:3])


def test_outputs_that_are_inputs_views_or_copies_are_what_they_are_in_eager(backend: str) -> None:
    x = torch.randn(3, 4)
    expected, got = _views(x), fairlead.compile(_views, backend=backend)(x)
    for e, g in zip(expected, got, strict=True):
        torch.testing.assert_close(g, e)
        assert g.stride() == e.stride()
        assert (g.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()) == (
            e.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        )
    assert got[0] is x


def test_writing_to_one_output_leaves_the_others_and_the_next_call_alone(backend: str) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        positions = torch.arange(4).unsqueeze(0)
        return positions, positions.clone() + x

    compiled = fairlead.compile(program, backend=backend)
    x = torch.zeros(4, dtype=torch.int64)
    first, second = compiled(x)
    first.fill_(7)
    assert second.tolist() == [[0, 1, 2, 3]]
    assert compiled(x)[0].tolist() == [[0, 1, 2, 3]]


def test_none_numbers_and_the_same_tensor_twice_come_back_as_they_are(backend: str) -> None:
    def program(x: torch.Tensor) -> dict[str, object]:
        y = x + 1
        return {"none": None, "size": x.shape[0], "once": y, "twice": y, "text": "kept"}

    got = fairlead.compile(program, backend=backend)(torch.zeros(2))
    assert (got["none"], got["size"], got["text"]) == (None, 2, "kept")
    assert got["once"].tolist() == got["twice"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "grad"])
def test_requires_grad_is_eagers_in_every_mode(backend: str, mode: str) -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend=backend)
    x = torch.randn(2, 8)
    context = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode, "grad": torch.enable_grad}[mode]
    with context():
        expected, got = model(x), compiled(x)
    torch.testing.assert_close(got, expected)
    assert (got.requires_grad, got.is_inference()) == (expected.requires_grad, expected.is_inference())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_gives_the_dtype_and_about_the_values_of_eager(backend: str, dtype: torch.dtype) -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend=backend)
    x = torch.randn(2, 8)
    with torch.no_grad(), torch.autocast("cpu", dtype):
        expected, got = model(x), compiled(x)
    assert got.dtype == expected.dtype
    torch.testing.assert_close(got, expected, atol=3e-2, rtol=3e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_every_dtype_comes_back_as_itself(backend: str, dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.where(x > 0, x, torch.zeros_like(x)), x.unsqueeze(0).transpose(0, 1)

    x = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(dtype)
    expected, got = program(x), fairlead.compile(program, backend=backend)(x)
    for e, g in zip(expected, got, strict=True):
        torch.testing.assert_close(g, e)
        assert g.stride() == e.stride()


def test_batch_and_length_may_grow_without_compiling_again(backend: str) -> None:
    model = Attention().eval()
    compiled = fairlead.compile(model, backend=backend, dynamic=True)
    with torch.no_grad():
        for batch, length in ((2, 5), (3, 7), (4, 2), (2, 31)):
            ids = torch.randint(0, 16, (batch, length))
            torch.testing.assert_close(compiled(ids), model(ids))
    assert len(compiled.fairlead.placement.graphs) == 1


def test_sizes_zero_and_one_are_right_too(backend: str) -> None:
    model = Mlp().eval()
    compiled = fairlead.compile(model, backend=backend, dynamic=True)
    with torch.no_grad():
        for shape in ((3, 2, 8), (1, 1, 8), (0, 4, 8), (5, 0, 8)):
            x = torch.randn(shape)
            torch.testing.assert_close(compiled(x), model(x))


def test_inputs_may_have_any_strides_and_offsets(backend: str) -> None:
    model = Mlp().eval()
    base = torch.randn(9, 4)
    inputs = (base[:8].t(), torch.randn(8).expand(3, 8), torch.randn(4, 16)[:, ::2], torch.randn(5, 10)[1:4, 2:])
    for x in inputs:
        torch._dynamo.reset()
        with torch.no_grad():
            torch.testing.assert_close(fairlead.compile(model, backend=backend)(x), model(x))


def test_float32_stays_float32(backend: str) -> None:
    torch.manual_seed(1)
    model = torch.nn.Linear(256, 64).eval()
    x = torch.randn(16, 256)
    with torch.no_grad():
        exact = copy.deepcopy(model).double()(x.double())
        error = (fairlead.compile(model, backend=backend)(x).double() - exact).abs().max().item()
        own = (model(x).double() - exact).abs().max().item()
    assert error <= max(4 * own, 1e-6)


def test_no_global_state_is_left_changed(backend: str) -> None:
    def state() -> tuple[object, ...]:
        return (
            torch.get_num_threads(),
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            torch.get_rng_state().tolist(),
        )

    compiled = fairlead.compile(Mlp().eval(), backend=backend)
    x = torch.randn(2, 8)
    before = state()
    with torch.no_grad():
        compiled(x)
        compiled(x)
    assert state() == before


@pytest.mark.parametrize("weighted", [True, False])
def test_a_root_mean_square_norm_is_whole(backend: str, weighted: bool) -> None:
    def written_out(x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        wide = x.to(torch.float32)
        y = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
        return y if weight is None else weight * y

    def called(x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x, (8,), weight, 1e-6)

    weight = torch.linspace(0, 2, 8) if weighted else None
    for norm in (written_out, called):
        compiled = fairlead.compile(norm, backend=backend, max_fallback=0)
        x = torch.randn(3, 5, 8) * 4
        torch.testing.assert_close(compiled(x, weight), norm(x, weight))
        (graph,) = compiled.fairlead.placement.graphs
        assert [n.op for n in graph.nodes] == ["aten._fused_rms_norm.default"]
