"""The rules, family by family: an op, its arguments, and the types of its results."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.ir import Complex

from ._notation import inferred

Case = tuple[str, tuple[Any, ...], str]

POINTWISE: list[Case] = [
    ("aten.relu.default", ("f32[b, 3]",), "f32[b, 3]"),
    ("aten.exp.default", ("i64[2]",), "f32[2]"),
    ("aten.exp.default", ("bf16[2]",), "bf16[2]"),
    ("aten.abs.default", ("c64[2]",), "f32[2]"),
    ("aten.angle.default", ("c128[2]",), "f64[2]"),
    ("aten.angle.default", ("i32[2]",), "f32[2]"),
    ("aten.isnan.default", ("f16[2, 2]",), "bool[2, 2]"),
    ("aten.add.Tensor", ("f32[b, 3]", "f32[3]", 1), "f32[b, 3]"),
    ("aten.add.Tensor", ("i64[2]", 1.5, 1), "f32[2]"),
    ("aten.add.Tensor", ("f16[2]", "f64[]", 1), "f16[2]"),
    ("aten.add.Tensor", ("i64[2]", "<b>", 1), "i64[2]"),
    ("aten.mul.Tensor", ("f64[2]", Complex(0.0, 1.0)), "c128[2]"),
    ("aten.div.Tensor", ("i64[2]", "i64[2]"), "f32[2]"),
    ("aten.div.Tensor_mode", ("i64[2]", "i64[2]", "floor"), "i64[2]"),
    ("aten.div.Tensor_mode", ("i64[2]", "i64[2]", None), "f32[2]"),
    ("aten.pow.Scalar", (2, "f32[3]"), "f32[3]"),
    ("aten.pow.Tensor_Scalar", ("i64[3]", 0.5), "f32[3]"),
    ("aten.lt.Tensor", ("f32[2, 1]", "i64[3]"), "bool[2, 3]"),
    ("aten.where.self", ("bool[4, 1]", "f32[]", "i64[4]"), "f32[4, 4]"),
    ("aten.clamp.default", ("i64[2]", 0.5, None), "f32[2]"),
    ("aten.complex.default", ("f32[2]", "f32[2]"), "c64[2]"),
    ("aten._to_copy.default", ("f32[b]", "#bf16", None, "@cuda:0", None, False, None), "bf16[b] @cuda:0"),
    ("aten.gelu_backward.default", ("f32[2, 3]", "f32[2, 3]", "none"), "f32[2, 3]"),
    ("aten.threshold_backward.default", ("f32[2]", "f32[2]", 0), "f32[2]"),
    ("aten.mul.Tensor", ("f32[] @cpu", "f32[2] @cuda:0"), "f32[2] @cuda:0"),
    ("aten.polygamma.default", (1, "i64[2]"), "f32[2]"),
]

REDUCTIONS: list[Case] = [
    ("aten.sum.dim_IntList", ("f32[b, 3]", [1], False, None), "f32[b]"),
    ("aten.sum.dim_IntList", ("bool[b, 3]", [0, -1], True, None), "i64[1, 1]"),
    ("aten.sum.dim_IntList", ("f16[2]", [0], False, "#f32"), "f32[]"),
    ("aten.mean.dim", ("f32[2, 3]", None, False, None), "f32[]"),
    ("aten.any.dims", ("u8[2, 3]", [0], False), "u8[3]"),
    ("aten.all.dims", ("f32[2, 3]", [], False), "bool[2, 3]"),
    ("aten.amax.default", ("f32[2, s]", [1], True), "f32[2, 1]"),
    ("aten.var.correction", ("c64[2, 3]", [1], 1, False), "f32[2]"),
    ("aten.var_mean.correction", ("c64[2, 3]", None, None, False), "f32[], c64[]"),
    ("aten.argmax.default", ("f32[2, 3]", None, False), "i64[]"),
    ("aten.max.dim", ("f32[2, 3]", 1, False), "f32[2], i64[2]"),
    ("aten.kthvalue.default", ("f32[5]", 2, 0, True), "f32[1], i64[1]"),
    ("aten.cumsum.default", ("bool[2, 3]", 1, None), "i64[2, 3]"),
    ("aten.cummax.default", ("f32[2, 3]", 0), "f32[2, 3], i64[2, 3]"),
]

VIEWS: list[Case] = [
    ("aten.view.default", ("f32[b, 6]", ["<b>", 2, 3]), "f32[b, 2, 3]"),
    ("aten.view.default", ("f32[b, 6]", [-1, 3]), "f32[2*b, 3]"),
    ("aten.view.dtype", ("f32[2, 3]", "#u8"), "u8[2, 12]"),
    ("aten.permute.default", ("f32[2, 3, b]", [2, 0, 1]), "f32[b, 2, 3]"),
    ("aten.expand.default", ("f32[1, 3]", ["<b>", -1, 3], False), "f32[b, 1, 3]"),
    ("aten.unsqueeze.default", ("f32[2]", -1), "f32[2, 1]"),
    ("aten.squeeze.dims", ("f32[1, 2, 1]", [0, 1]), "f32[2, 1]"),
    ("aten.select.int", ("f32[2, s]", 1, "<s - 1>"), "f32[2]"),
    ("aten.slice.Tensor", ("f32[10]", 0, 2, 2**63 - 1, 3), "f32[3]"),
    ("aten.slice.Tensor", ("f32[10]", 0, -3, -1, 1), "f32[2]"),
    ("aten.slice.Tensor", ("f32[10]", 0, 8, 2, 1), "f32[0]"),
    ("aten.slice.Tensor", ("f32[s + 1]", 0, 1, 2**63 - 1, 1), "f32[s]"),
    ("aten.slice.Tensor", ("f32[s + 1]", 0, None, -1, 2), "f32[((s + 1)//2)]"),
    ("aten.slice.Tensor", ("f32[s]", 0, 0, 4, 1), "f32[min(4, s)]"),
    ("aten.split_with_sizes.default", ("f32[2, 5]", [2, 3], 1), "f32[2, 2], f32[2, 3]"),
    ("aten.unbind.int", ("f32[2, b]", 0), "f32[b], f32[b]"),
    ("aten.diagonal.default", ("f32[3, 5, b]", 1, 0, 1), "f32[b, 3]"),
    ("aten.as_strided.default", ("f32[12]", [3, 2], [1, 5], 0), "f32[3, 2]"),
    ("aten.unfold.default", ("f32[2, 10]", 1, 4, 3), "f32[2, 3, 4]"),
    ("aten.cat.default", (["f32[2, b]", "f64[3, b]", "f32[0]"], 0), "f64[5, b]"),
    ("aten.repeat.default", ("f32[2, b]", [3, 1, 2]), "f32[3, 2, 2*b]"),
    ("aten.constant_pad_nd.default", ("f32[2, s]", [1, -2], 0), "f32[2, s - 1]"),
    ("aten.reflection_pad2d.default", ("f32[3, 5, 5]", [1, 2, 3, 4]), "f32[3, 12, 8]"),
    ("aten.view_as_real.default", ("c64[2]",), "f32[2, 2]"),
    ("aten.view_as_complex.default", ("f64[3, 2]",), "c128[3]"),
]

PRODUCTS: list[Case] = [
    ("aten.mm.default", ("f32[b, 3]", "f32[3, 5]"), "f32[b, 5]"),
    ("aten.bmm.default", ("f32[b, 2, 3]", "f32[b, 3, s]"), "f32[b, 2, s]"),
    ("aten.addmm.default", ("f32[5]", "f32[2, 3]", "f32[3, 5]", 1, 1), "f32[2, 5]"),
    ("aten.linear.default", ("bf16[b, s, 8]", "bf16[16, 8]", None), "bf16[b, s, 16]"),
    ("aten._int_mm.default", ("i8[32, 8]", "i8[8, 16]"), "i32[32, 16]"),
    (
        "aten._scaled_mm.default",
        ("f8e4m3fn[16, 32]", "f8e4m3fn[32, 16]", "f32[]", "f32[]", None, None, "#bf16", False),
        "bf16[16, 16]",
    ),
    ("aten._cdist_forward.default", ("f32[2, 4, 3]", "f32[5, 3]", 2.0, None), "f32[2, 4, 5]"),
    ("aten._pdist_forward.default", ("f32[5, 3]", 2.0), "f32[10]"),
    (
        "aten._trilinear.default",
        ("i64[2, 3]", "i64[5, 3, 4]", "i64[2, 4]", [1, 3], [0], [1, 2], [2, 3], 1),
        "i64[2, 5]",
    ),
    (
        "nn.lstm",
        ("f32[t, b, 8]", *["f32[1, b, 16]"] * 2, "f32[64, 8]", "f32[64, 16]", "f32[64]", "f32[64]", True),
        "f32[t, b, 16], f32[1, b, 16], f32[1, b, 16]",
    ),
    (
        "nn.scaled_dot_product_attention",
        ("bf16[b, 8, s, 64]", "bf16[b, 2, t, 64]", "bf16[b, 2, t, 32]", None, 0.0, True, 0.125),
        "bf16[b, 8, s, 32], f32[b, 8, s]",
    ),
]

SPATIAL: list[Case] = [
    (
        "aten.convolution.default",
        ("f32[b, 3, h, 224]", "f32[64, 3, 7, 7]", None, [2, 2], [3, 3], [1, 1], False, [0, 0], 1),
        "f32[b, 64, ((h - 1)//2) + 1, 112]",
    ),
    (
        "aten.convolution.default",
        ("f32[2, 8, 5]", "f32[8, 4, 3]", "f32[8]", [2], [1], [1], True, [1], 2),
        "f32[2, 8, 10]",
    ),
    (
        "aten.convolution_backward.default",
        ("f32[2, 4, 3]", "f32[2, 3, 5]", "f32[4, 3, 3]", [4], [1], [0], [1], False, [0], 1, [True, False, True]),
        "f32[2, 3, 5], _, f32[4]",
    ),
    ("aten.avg_pool2d.default", ("f32[2, 3, 7, 7]", [2, 2], [], [0, 0], True, True, None), "f32[2, 3, 4, 4]"),
    (
        "aten.max_pool2d_with_indices.default",
        ("f32[3, h, 8]", [3, 3], [2, 2], [1, 1], [1, 1], False),
        "f32[3, ((h - 1)//2) + 1, 4], i64[3, ((h - 1)//2) + 1, 4]",
    ),
    # The second of the windows that ceil_mode adds would begin in the padding.
    ("aten.avg_pool2d.default", ("f32[1, 2, 2]", [2, 2], [3, 3], [1, 1], True, True, None), "f32[1, 1, 1]"),
    ("aten._adaptive_avg_pool2d.default", ("f32[2, 3, h, w]", [1, 1]), "f32[2, 3, 1, 1]"),
    ("aten.upsample_nearest2d.default", ("f32[1, 2, h, 4]", ["<2*h>", 8], None, None), "f32[1, 2, 2*h, 8]"),
    ("aten._upsample_bilinear2d_aa.default", ("f32[1, 2, 8, 8]", [3, 5], False, None, None), "f32[1, 2, 3, 5]"),
    ("aten.grid_sampler_2d.default", ("f32[2, 3, 8, 8]", "f32[2, h, 5, 2]", 0, 0, False), "f32[2, 3, h, 5]"),
    ("aten.col2im.default", ("f32[2, 12, 9]", [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]), "f32[2, 3, 4, 4]"),
    ("aten.im2col.default", ("f32[2, 3, 4, 4]", [2, 2], [1, 1], [0, 0], [1, 1]), "f32[2, 12, 9]"),
]

NORMS: list[Case] = [
    (
        "aten.native_layer_norm.default",
        ("bf16[b, s, 8]", [8], "f32[8]", "f32[8]", 1e-5),
        "bf16[b, s, 8], f32[b, s, 1], f32[b, s, 1]",
    ),
    (
        "aten.native_layer_norm_backward.default",
        ("f32[2, 8]", "f32[2, 8]", [8], "f32[2, 1]", "f32[2, 1]", "f32[8]", None, [True, True, False]),
        "f32[2, 8], f32[8], _",
    ),
    (
        "aten.native_group_norm.default",
        ("f32[b, 6, 4]", None, None, "<b>", 6, 4, 3, 1e-5),
        "f32[b, 6, 4], f32[b, 3], f32[b, 3]",
    ),
    (
        "aten._native_batch_norm_legit_functional.default",
        ("f32[2, 3, 4]", None, None, "f32[3]", "f32[3]", True, 0.1, 1e-5),
        "f32[2, 3, 4], f32[3], f32[3], f32[3], f32[3]",
    ),
    (
        "aten._native_batch_norm_legit_no_training.default",
        ("f32[2, 3, 4]", None, None, "f32[3]", "f32[3]", 0.1, 1e-5),
        "f32[2, 3, 4], f32[0], f32[0]",
    ),
    (
        "aten._native_batch_norm_legit_functional.default",
        ("bf16[2, 3]", None, None, "f32[3]", "bf16[3]", True, 0.1, 1e-5),
        "bf16[2, 3], f32[3], f32[3], f32[3], bf16[3]",
    ),
    ("aten._softmax.default", ("f32[b, 3]", -1, False), "f32[b, 3]"),
    ("aten._log_softmax_backward_data.default", ("f32[2]", "f32[2]", 0, "#f16"), "f16[2]"),
]

INDEXING: list[Case] = [
    ("aten.index.Tensor", ("f32[2, 3, 4]", [None, "i64[5]"]), "f32[2, 5, 4]"),
    ("aten.index.Tensor", ("f32[2, 3, 4]", ["i64[5, 1]", None, "i64[6]"]), "f32[5, 6, 3]"),
    ("aten.index.Tensor", ("f32[2, 3]", ["bool[2]"]), "_"),
    ("aten.index_put.default", ("f32[2, 3]", ["i64[5]"], "f32[5, 3]", True), "f32[2, 3]"),
    ("aten.index_select.default", ("f32[2, 3]", 1, "i64[7]"), "f32[2, 7]"),
    ("aten.gather.default", ("f32[2, 3]", 1, "i64[2, 1]", False), "f32[2, 1]"),
    ("aten.scatter_add.default", ("f32[2, 3]", 1, "i64[2, 1]", "f32[2, 1]"), "f32[2, 3]"),
    ("aten.embedding.default", ("f32[100, 8]", "i64[b, s]", -1, False, False), "f32[b, s, 8]"),
    ("aten.embedding_dense_backward.default", ("f32[b, s, 8]", "i64[b, s]", 100, -1, False), "f32[100, 8]"),
    (
        "aten._embedding_bag.default",
        ("f32[9, 4]", "i64[6]", "i64[3]", False, 1, False, None, True, -1),
        "f32[2, 4], i64[6], i64[2], i64[2]",
    ),
    ("aten.nonzero.default", ("f32[2, 3]",), "_"),
    ("aten.masked_select.default", ("f32[2]", "bool[2]"), "_"),
    ("aten.nonzero_static.default", ("f32[2, 3]", 4, -1), "i64[4, 2]"),
]

MADE: list[Case] = [
    ("aten.full.default", (["<b>", 2], 1.0, None, None, None, None), "f32[b, 2]"),
    ("aten.full.default", ([2], True, None, None, None, None), "bool[2]"),
    ("aten.arange.start_step", (0, "<s>", 1, None, None, None, None), "i64[s]"),
    ("aten.arange.start_step", (5, 0, -2, None, None, None, None), "i64[3]"),
    ("aten.arange.start_step", (0.0, 1.0, 0.25, None, None, "@cuda:1", None), "f32[4] @cuda:1"),
    ("aten.randperm.default", ("<s>", None, None, None, None), "i64[s]"),
    ("nn.bernoulli.default", (["<b>", 2], 0.9, "#bool", "@cpu"), "bool[b, 2]"),
    ("aten.native_dropout.default", ("f32[2]", 0.5, True), "f32[2], bool[2]"),
    ("aten.multinomial.default", ("f32[b, 9]", 4, False, None), "i64[b, 4]"),
    ("aten._local_scalar_dense.default", ("i64[]",), "i64"),
    ("aten.tril_indices.default", (3, 3, 0, None, None, None, None), "i64[2, 6]"),
]

SORTED: list[Case] = [
    ("aten.sort.default", ("f32[b, 3]", -1, False), "f32[b, 3], i64[b, 3]"),
    ("aten.topk.default", ("f32[b, 9]", "<k>", 1, True, True), "f32[b, k], i64[b, k]"),
    ("aten.searchsorted.Tensor", ("f32[9]", "f32[2, 2]", True, False, None, None), "i32[2, 2]"),
    ("aten.histc.default", ("f32[2, 2]", 10, 0, 0), "f32[10]"),
    ("aten.bincount.default", ("i64[5]", None, 0), "_"),
    ("aten._unique2.default", ("f32[2, 3]", True, True, False), "_, i64[2, 3], _"),
]

LINEAR_ALGEBRA: list[Case] = [
    ("aten._linalg_svd.default", ("c64[b, 5, 3]", True, True, None), "c64[b, 5, 5], f32[b, 3], c64[b, 3, 3]"),
    ("aten._linalg_eigh.default", ("f32[2, 3, 3]", "L", True), "f32[2, 3], f32[2, 3, 3]"),
    ("aten._linalg_solve_ex.default", ("f32[3, 3]", "f32[3]", True, False), "f32[3], f32[3, 3], i32[3], i32[]"),
    ("aten.linalg_qr.default", ("f32[5, n]", "reduced"), "f32[5, min(5, n)], f32[min(5, n), n]"),
    ("aten.linalg_lu.default", ("f32[3, 5]", True), "f32[3, 3], f32[3, 3], f32[3, 5]"),
    ("aten.linalg_pinv.atol_rtol_tensor", ("f32[2, 3, 5]", None, None, False), "f32[2, 5, 3]"),
    ("aten.linalg_lstsq.default", ("f32[5, 3]", "f32[5, 2]", None, None), "f32[3, 2], _, _, _"),
]

COUNTED: list[Case] = [
    ("aten.histogram.bin_ct", ("f32[9]", 4, None, None, False), "f32[4], f32[5]"),
    ("aten.segment_reduce.default", ("f32[9, 2]", "sum", "i64[4]", None, None, 0, False, None), "f32[4, 2]"),
    ("aten.hash_tensor.default", ("f32[2, 3]", [1], False, 0), "u64[2]"),
]

COLLECTIVE: list[Case] = [
    ("_c10d_functional.all_gather_into_tensor.default", ("f32[b, 3]", 4, "0"), "f32[4*b, 3]"),
    ("_c10d_functional.reduce_scatter_tensor.default", ("f32[8, 3]", "sum", 4, "0"), "f32[2, 3]"),
    ("_c10d_functional.all_reduce_coalesced.default", (["f32[2]", "f16[]"], "sum", "0"), "f32[2], f16[]"),
    ("_c10d_functional.all_to_all_single.default", ("f32[4, 2]", [1, 2], [2, 2], "0"), "f32[3, 2]"),
    ("_dtensor.shard_dim_alltoall.default", ("f32[b, 8, 3]", 0, 1, "0@4"), "f32[4*b, 2, 3]"),
]

REST: list[Case] = [
    ("aten._fft_r2c.default", ("f32[2, n]", [1], 0, True), "c64[2, (n//2) + 1]"),
    ("aten._fft_c2r.default", ("c128[2, 5]", [1], 0, 8), "f64[2, 8]"),
    ("aten._fft_c2c.default", ("c64[2, 5]", [0, 1], 0, True), "c64[2, 5]"),
    ("aten.nll_loss_forward.default", ("f32[b, 9]", "i64[b]", None, 1, -100), "f32[], f32[]"),
    ("aten.nll_loss_forward.default", ("f32[b, 9]", "i64[b]", None, 0, -100), "f32[b], f32[]"),
    ("aten.nll_loss2d_forward.default", ("f32[2, 9, 4, 4]", "i64[2, 4, 4]", None, 0, -100), "f32[2, 4, 4], f32[]"),
]

CASES = [
    *POINTWISE,
    *REDUCTIONS,
    *VIEWS,
    *PRODUCTS,
    *SPATIAL,
    *NORMS,
    *INDEXING,
    *MADE,
    *SORTED,
    *LINEAR_ALGEBRA,
    *COUNTED,
    *COLLECTIVE,
    *REST,
]


@pytest.mark.parametrize(("op", "args", "expected"), CASES, ids=lambda part: part if isinstance(part, str) else None)
def test_an_op_has_the_types_of_its_rule(op: str, args: tuple[Any, ...], expected: str) -> None:
    assert inferred(op, *args) == expected


def test_an_op_without_a_rule_has_no_results() -> None:
    assert inferred("mine.op.default", "f32[2]") == ""
