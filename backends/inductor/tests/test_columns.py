"""Rows of a padded product are put together out of two products, or made together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.fx_passes import pad_mm

import fairlead
from fairlead_inductor import _columns, _executable
from fairlead_inductor._bands import OP, in_bands, takes

pytestmark = pytest.mark.skipif(
    not hasattr(pad_mm, "_should_pad"), reason="this release times a product on a device before it pads it"
)


@pytest.fixture
def ops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the graphs that Inductor is given consist of, where it pads products as it does on CUDA."""
    for name in ("check_device", "has_triton", "_should_pad"):
        monkeypatch.setattr(pad_mm, name, lambda *args, **how: True)
    torch._dynamo.reset()
    found: list[str] = []
    laying_out = _executable.laying_out

    def spied(graph: Any, written: Any, inner: Callable[..., Any], **how: Any) -> Callable[..., Any]:
        def compiler(module: torch.fx.GraphModule, *args: Any, **named: Any) -> Any:
            found.extend(str(n.target) for n in module.graph.nodes if n.op == "call_function")
            return inner(module, *args, **named)

        return laying_out(graph, written, compiler, **how)

    monkeypatch.setattr(_executable, "laying_out", spied)
    return found


@pytest.fixture
def tf32() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("width", [257, 263, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_results_of_odd_width_are_computed_without_a_copy_of_the_weight(
    ops: list[str], width: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    head = nn.Linear(64, width, bias=False).to(dtype)
    x = torch.randn(2, 8, 64, dtype=dtype)
    with torch.no_grad():
        result = fairlead.compile(head, backend="inductor", fallback=())(x)
        torch.testing.assert_close(result, head(x))
    assert result.is_contiguous()
    assert ops.count("aten.mm.default") == 2
    assert "aten.slice_scatter.default" in ops


def test_a_product_in_float32_is_computed_as_it_is(ops: list[str]) -> None:
    head = nn.Linear(64, 257, bias=False)
    x = torch.randn(2, 8, 64)
    with torch.no_grad():
        result = fairlead.compile(head, backend="inductor", fallback=())(x)
        torch.testing.assert_close(result, head(x))
    assert result.is_contiguous()
    assert ops.count("aten.mm.default") == 1
    assert not any("pad" in op or "slice" in op for op in ops)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("rows", "width"), [(8, 257), (64, 263), (16, 20001)])
def test_large_results_are_left_to_the_op_that_makes_bands(
    ops: list[str], monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, rows: int, width: int
) -> None:
    monkeypatch.setattr(_columns, "_MANY_TO_CALL", 0)
    torch.manual_seed(0)
    head = nn.Linear(64, width, bias=False).to(dtype)
    x = torch.randn(2, rows // 2, 64, dtype=dtype)
    with torch.no_grad():
        result = fairlead.compile(head, backend="inductor", fallback=())(x)
        torch.testing.assert_close(result, head(x))
    assert result.is_contiguous()
    assert str(OP) in ops
    assert not any("pad" in op or "scatter" in op for op in ops)


@pytest.mark.parametrize("remainder", range(1, 8))
@pytest.mark.parametrize("first", [0, 3])
def test_a_band_begins_anywhere_and_reads_a_part_of_a_weight(remainder: int, first: int) -> None:
    """In float32, of which a CPU's products can be written anywhere."""
    torch.manual_seed(remainder)
    x, weights = torch.randn(64, 16), torch.randn(20000 + remainder, 16)
    weight = weights[first : first + 19990 + remainder].t()
    found = in_bands(x, weight)
    assert found.is_contiguous()
    torch.testing.assert_close(found, x @ weight)


@pytest.mark.parametrize(
    ("x", "weight", "is_taken"),
    [
        ((1024, 768), (50257, 768), True),
        ((1023, 768), (50257, 768), False),
        ((1024, 766), (50257, 766), False),
        ((1024, 2048), (50257, 2048), False),
        ((4096, 1600), (50257, 1600), True),
    ],
)
def test_bands_are_for_rows_in_classes_and_weights_that_stay_in_a_cache(
    x: tuple[int, int], weight: tuple[int, int], is_taken: bool
) -> None:
    given, columns = (torch.empty(shape, dtype=torch.float16, device="meta") for shape in (x, weight))
    assert takes(given, columns.t()) is is_taken
    assert not takes(given, torch.empty(weight[::-1], dtype=torch.float16, device="meta")), "row by row"
    assert not takes(given.float(), columns.float().t())


@pytest.mark.usefixtures("tf32")
def test_both_results_that_are_one_part_of_a_product_are_put_together(ops: list[str]) -> None:
    weight = torch.randn(64, 13)

    def twice(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        product = x @ weight
        return product, product.view(2, 4, 13), product.exp()

    x = torch.randn(8, 64)
    found = fairlead.compile(twice, backend="inductor", fallback=())(x)
    for mine, eagers in zip(found, twice(x), strict=True):
        torch.testing.assert_close(mine, eagers, rtol=1e-5, atol=1e-4)
        assert mine.is_contiguous()
    assert ops.count("aten.mm.default") == 2


@pytest.mark.parametrize(("summed", "width"), [(64, 3), (13, 13)], ids=["few columns", "padded along what is summed"])
def test_other_padded_products_are_copied(ops: list[str], summed: int, width: int) -> None:
    head = nn.Linear(summed, width, bias=False)
    x = torch.randn(8, summed)
    with torch.no_grad():
        result = fairlead.compile(head, backend="inductor", fallback=())(x)
        torch.testing.assert_close(result, head(x), rtol=1e-5, atol=1e-5)
    assert result.is_contiguous()
    assert ops.count("aten.mm.default") == 1


@pytest.mark.usefixtures("tf32")
def test_a_step_of_training_has_eagers_gradients(ops: list[str]) -> None:
    torch.manual_seed(0)
    head, twin = (nn.Linear(64, 13, bias=False) for _ in range(2))
    twin.load_state_dict(head.state_dict())
    x, right = torch.randn(8, 64), torch.arange(8)
    compiled = fairlead.compile(head, backend="inductor", fallback=())
    for run in (compiled, twin):
        nn.functional.cross_entropy(run(x), right).backward()
    assert head.weight.grad is not None
    assert twin.weight.grad is not None
    torch.testing.assert_close(head.weight.grad, twin.weight.grad, rtol=1e-5, atol=1e-5)
    assert "aten.slice_scatter.default" in ops
