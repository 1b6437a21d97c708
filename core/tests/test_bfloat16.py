"""What torch multiplies in bfloat16 by this processor's instructions is left to it."""

from __future__ import annotations

import pytest
import torch

from fairlead.interpret import _bfloat16, quicker_in_bfloat16
from fairlead.ir import DType, Graph, parse_graph
from fairlead.passes import share_of_products


def layer(dtype: str = "bf16", *, width: int = 512, passes: int = 1, device: str = "") -> Graph:
    """A layer, and element-wise functions of what it gives."""
    type_ = f"{dtype}[64, {width}]{device}"
    chain = "\n".join(f"  %{3 + k} = aten.sin.default(%{2 + k}) : {type_}" for k in range(passes))
    return parse_graph(
        f"""graph @g inference {{
  in %0 user "x" : {type_}
  in %1 parameter "w" : {dtype}[{width}, {width}]{device}
  %2 = aten.linear.default(%0, %1, none) : {type_}
{chain}
  out %{2 + passes} user
}}"""
    )


def convolution(*, norm: bool) -> Graph:
    normed = "%6, _, _ = aten._native_batch_norm_legit_no_training.default(%5, %2, %2, %3, %4, 0.1, 1e-05)"
    last = f"  {normed} : bf16[1, 8, 16, 16], _, _\n  out %6 user" if norm else "  out %5 user"
    return parse_graph(
        f"""graph @g inference {{
  in %0 user "x" : bf16[1, 8, 16, 16]
  in %1 parameter "w" : bf16[8, 8, 3, 3]
  in %2 parameter "scale" : bf16[8]
  in %3 buffer "mean" : bf16[8]
  in %4 buffer "variance" : bf16[8]
  %5 = aten.convolution.default(%0, %1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) : bf16[1, 8, 16, 16]
{last}
}}"""
    )


@pytest.fixture
def has_quick_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bfloat16, "multiplies_bfloat16", lambda: True)


@pytest.mark.usefixtures("has_quick_instructions")
def test_products_of_bfloat16_are_left_to_torch() -> None:
    reason = quicker_in_bfloat16(layer())
    assert reason is not None
    assert reason.startswith("slower than eager here: ")


@pytest.mark.usefixtures("has_quick_instructions")
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(layer("f32"), id="torch has no advantage in float32"),
        pytest.param(layer(passes=100), id="little of it is products"),
        pytest.param(layer(device=" @cuda:0"), id="no instructions of the CPU"),
    ],
)
def test_other_graphs_are_kept(graph: Graph) -> None:
    assert quicker_in_bfloat16(graph) is None


def test_products_are_kept_without_the_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bfloat16, "multiplies_bfloat16", lambda: False)
    assert quicker_in_bfloat16(layer()) is None


@pytest.mark.usefixtures("has_quick_instructions")
def test_a_backend_that_folds_norms_keeps_convolutions_with_norms() -> None:
    assert quicker_in_bfloat16(convolution(norm=True), folds_norms=True) is None
    assert quicker_in_bfloat16(convolution(norm=False), folds_norms=True) is not None
    assert quicker_in_bfloat16(convolution(norm=True)) is not None


@pytest.mark.parametrize(
    ("amx", "avx512", "flags", "is_quick"),
    [
        (True, True, "avx512_bf16 avx512_fp16 amx_bf16", True),
        (False, True, "avx512_bf16 avx512_fp16", False),
        (False, True, "avx512_bf16", True),
        (False, True, "", True),
        (False, False, "avx2", False),
    ],
    ids=["AMX", "AMX switched off", "another maker's", "no Linux", "none"],
)
def test_instructions_that_are_slower_than_those_of_float32_do_not_count(
    amx: bool, avx512: bool, flags: str, is_quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512, raising=False)
    monkeypatch.setattr(_bfloat16.processor, "flags", lambda: frozenset(flags.split()))
    assert _bfloat16.multiplies_bfloat16() is is_quick


def test_each_kind_of_product_counts_for_what_it_multiplies() -> None:
    text = """graph @g inference {
  in %0 user "q" : bf16[1, 2, 512, 64]
  %1, _ = nn.scaled_dot_product_attention(%0, %0, %0, none, 0.0, false, 0.125) : bf16[1, 2, 512, 64], _
  %2 = aten.sin.default(%1) : bf16[1, 2, 512, 64]
  out %2 user
}"""
    numbers, products = 2 * 512 * 64, 2 * 2 * 512 * 64 * 512 / 64
    share = (4 * numbers + products) / (6 * numbers + products)
    assert share_of_products(parse_graph(text), DType.bf16) == pytest.approx(share)
