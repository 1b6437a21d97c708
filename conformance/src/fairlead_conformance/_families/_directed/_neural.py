"""Layers of networks: large magnitudes, constant rows, masks that hide everything, odd options."""

from __future__ import annotations

import torch

from fairlead.ir import DType
from fairlead_conformance._case import Level
from fairlead_conformance._families._directed._row import INF, NAN, Row, b1, f32, i64, ramp, row

__all__ = ["ROWS"]

_FAR = f32([[1e4, 1e4 + 1.0, 1e4 - 1.0, 0.0], [-1e4, -1e4, -1e4, -1e4], [3e38, 3e38, -3e38, 0.0]])
_HIDDEN = f32([[0.0, -INF, 1.0], [-INF, -INF, -INF], [INF, 0.0, 1.0], [NAN, 0.0, 1.0]])
_Q, _K, _V = ramp(1, 2, 3, 4), ramp(1, 2, 5, 4, low=-1.0), ramp(1, 2, 5, 4, high=1.0)
_ATTENTION = "nn.scaled_dot_product_attention"

_LSTM = "nn.lstm"
_STATES = ramp(1, 2, 4), ramp(1, 2, 4, low=-1.0)
_GATES = ramp(16, 3, low=-0.5, high=0.5), ramp(16, 4, low=-0.5, high=0.5)


def _masked(hidden: list[int]) -> torch.Tensor:
    """Nothing for the first query, and for the others what is not hidden."""
    mask = torch.zeros(1, 1, 3, 5)
    mask[..., 1, hidden] = -INF
    return mask


ROWS: tuple[Row, ...] = (
    row("softmax-far-from-zero", "aten._softmax.default", _FAR, 1, False),
    row("softmax-of-inf", "aten._softmax.default", _HIDDEN, 1, False),
    row("softmax-along-first", "aten._softmax.default", ramp(5, 3, low=-50.0, high=50.0), 0, False),
    row("softmax-of-0d", "aten._softmax.default", f32([3.0]).reshape(()), 0, False),
    row("softmax-of-empty", "aten._softmax.default", torch.zeros(3, 0), 1, False),
    row("softmax-in-bf16", "aten._softmax.default", ramp(4, 300, low=-9.0, high=9.0).bfloat16(), 1, False),
    row("log-softmax-far-from-zero", "aten._log_softmax.default", _FAR, 1, False),
    row("log-softmax-of-inf", "aten._log_softmax.default", _HIDDEN, 1, False),
    row(
        "layer-norm-far-from-zero", "aten.native_layer_norm.default", 1e4 + ramp(4, 64), [64], None, None, 1e-5, keep=1
    ),
    row(
        "layer-norm-of-constant",
        "aten.native_layer_norm.default",
        torch.full((3, 8), 1234.5),
        [8],
        None,
        None,
        1e-5,
        keep=1,
    ),
    row("layer-norm-of-tiny", "aten.native_layer_norm.default", ramp(3, 8) * 1e-6, [8], None, None, 1e-5, keep=1),
    row("layer-norm-of-one", "aten.native_layer_norm.default", ramp(3, 1), [1], f32([2.0]), f32([0.5]), 1e-5, keep=1),
    row("layer-norm-two-dims", "aten.native_layer_norm.default", ramp(2, 3, 4), [3, 4], ramp(3, 4), None, 1e-5),
    row(
        "layer-norm-of-nothing",
        "aten.native_layer_norm.default",
        torch.zeros(0, 4),
        [4],
        ramp(4),
        ramp(4),
        1e-5,
        keep=1,
    ),
    row(
        "layer-norm-in-bf16",
        "aten.native_layer_norm.default",
        (100 + ramp(4, 256)).bfloat16(),
        [256],
        None,
        None,
        1e-5,
        keep=1,
    ),
    row("rms-norm-of-zeros", "aten._fused_rms_norm.default", torch.zeros(2, 4), [4], ramp(4), 1e-6, keep=1),
    row("rms-norm-default-eps", "aten._fused_rms_norm.default", ramp(2, 4) * 1e-4, [4], None, None, keep=1),
    row(
        "group-norm-far-from-zero",
        "aten.native_group_norm.default",
        1e3 + ramp(2, 6, 10),
        None,
        None,
        2,
        6,
        10,
        3,
        1e-5,
        keep=1,
    ),
    row(
        "group-norm-one-group",
        "aten.native_group_norm.default",
        ramp(2, 4, 3),
        ramp(4),
        ramp(4),
        2,
        4,
        3,
        1,
        1e-5,
        keep=1,
    ),
    row(
        "group-norm-a-group-a-channel",
        "aten.native_group_norm.default",
        ramp(2, 4, 3),
        ramp(4),
        ramp(4),
        2,
        4,
        3,
        4,
        1e-5,
        keep=1,
    ),
    row(
        "batch-norm-tiny-variance",
        "aten._native_batch_norm_legit_no_training.default",
        ramp(2, 3, 4),
        ramp(3),
        ramp(3),
        ramp(3),
        f32(1e-12, 1.0, 1e6),
        0.1,
        1e-5,
        keep=1,
    ),
    row(
        "batch-norm-without-weights",
        "aten._native_batch_norm_legit_no_training.default",
        ramp(2, 3),
        None,
        None,
        ramp(3),
        f32(0.5, 1.0, 2.0),
        0.1,
        1e-3,
        keep=1,
    ),
    row("gelu-of-edges", "aten.gelu.default", f32(-INF, -10.0, -1e-10, 0.0, 10.0, INF, NAN)),
    row("gelu-tanh", "aten.gelu.default", f32(-10.0, -1.0, 1e-10, 0.0, 3.0, 10.0), approximate="tanh"),
    row("silu-of-edges", "aten.silu.default", f32(-100.0, -0.0, 0.0, 100.0, INF, NAN)),
    row("mish-of-edges", "aten.mish.default", f32(-100.0, -1.0, 0.0, 30.0, 100.0)),
    row("softplus-of-large", "aten.softplus.default", f32(-200.0, -1.0, 0.0, 19.0, 21.0, 1e4)),
    row("softplus-options", "aten.softplus.default", f32(-3.0, 0.0, 2.0, 9.0), beta=2.0, threshold=5.0),
    row("elu-of-edges", "aten.elu.default", f32(-INF, -1e-8, -0.0, 0.0, 2.0), alpha=1.5, scale=2.0, input_scale=0.5),
    row("leaky-relu-negative-slope", "aten.leaky_relu.default", f32(-2.0, -0.0, 0.0, 2.0, NAN), negative_slope=-0.5),
    row("hardswish-of-edges", "aten.hardswish.default", f32(-3.0, -2.999, 0.0, 2.999, 3.0, 1e30)),
    row("hardsigmoid-of-edges", "aten.hardsigmoid.default", f32(-3.0, -2.999, 0.0, 3.0, INF)),
    row("hardtanh-of-edges", "aten.hardtanh.default", f32(-2.0, 0.5, 2.0, NAN), min_val=-0.5, max_val=1.5),
    row("attention", _ATTENTION, _Q, _K, _V, None, 0.0, False, 0.5, keep=1),
    row(
        "attention-is-causal",
        _ATTENTION,
        _Q,
        ramp(1, 2, 3, 4),
        ramp(1, 2, 3, 4, high=1.0),
        None,
        0.0,
        True,
        0.5,
        keep=1,
    ),
    row("attention-with-a-mask", _ATTENTION, _Q, _K, _V, _masked([0, 3]), 0.0, False, 0.5, keep=1),
    row("attention-all-but-one-hidden", _ATTENTION, _Q, _K, _V, _masked([0, 1, 3, 4]), 0.0, False, 0.5, keep=1),
    row("attention-far-from-zero", _ATTENTION, 100 * _Q, 100 * _K, _V, None, 0.0, False, 0.5, keep=1),
    row("attention-in-bf16", _ATTENTION, _Q.bfloat16(), _K.bfloat16(), _V.bfloat16(), None, 0.0, False, 0.5, keep=1),
    row("lstm", _LSTM, ramp(5, 2, 3), *_STATES, *_GATES, ramp(16), ramp(16, low=-1.0), False),
    row("lstm-in-reverse", _LSTM, ramp(5, 2, 3), *_STATES, *_GATES, None, None, True),
    row("lstm-of-one-step", _LSTM, ramp(1, 2, 3), *_STATES, *_GATES, ramp(16), ramp(16, low=-1.0), False),
    row("loss-ignores", "aten.nll_loss_forward.default", ramp(4, 3), i64(0, -100, 2, 1), None, 1, -100),
    row("loss-ignores-all", "aten.nll_loss_forward.default", ramp(2, 3), i64(-100, -100), None, 1, -100),
    row("loss-weighted", "aten.nll_loss_forward.default", ramp(4, 3), i64(0, 1, 2, 1), f32(0.5, 1.0, 2.0), 1, -100),
    row("loss-of-each", "aten.nll_loss_forward.default", ramp(4, 3), i64(0, 1, 2, 1), f32(0.5, 1.0, 2.0), 0, 1, keep=1),
    row("loss-summed", "aten.nll_loss_forward.default", ramp(4, 3), i64(0, 1, 2, 1), None, 2, -100),
    row("addmm-beta-zero", "aten.addmm.default", f32([NAN, INF]), ramp(3, 4), ramp(4, 2), beta=0),
    row("addmm-scales", "aten.addmm.default", ramp(2), ramp(3, 4), ramp(4, 2), beta=0.5, alpha=-2.0),
    row("inner-size-zero", "aten.mm.default", torch.zeros(3, 0), torch.zeros(0, 2)),
    row("inner-size-zero", "aten.addmm.default", ramp(2), torch.zeros(3, 0), torch.zeros(0, 2)),
    row("no-rows", "aten.linear.default", torch.zeros(0, 4), ramp(3, 4), ramp(3)),
    row("one-by-one", "aten.mm.default", f32([[3.0]]), f32([[-0.5]])),
    row("odd-sizes", "aten.mm.default", ramp(7, 13), ramp(13, 5)),
    row("odd-sizes", "aten.bmm.default", ramp(3, 5, 7), ramp(3, 7, 1)),
    row("linear-of-a-vector", "aten.linear.default", ramp(4), ramp(3, 4)),
    row(
        "integer-matrices",
        "aten.mm.default",
        i64([[3, -2], [7, 1]]),
        i64([[9007199254740993, 1], [0, -5]]),
        level=Level.L2,
    ),
    row("transposed-matrices", "aten.mm.default", ramp(5, 3).t(), ramp(4, 5).t()),
    row("matrix-of-inf", "aten.mm.default", f32([[INF, 0.0], [1.0, 2.0]]), f32([[0.0, 1.0], [1.0, 1.0]])),
    row(
        "complex-product",
        "aten.mm.default",
        torch.complex(ramp(2, 3), ramp(2, 3, low=0.0)),
        torch.complex(ramp(3, 2), ramp(3, 2, high=0.0)),
        level=Level.L2,
    ),
    row("conjugate", "aten.conj_physical.default", torch.complex(ramp(4), ramp(4)), level=Level.L2),
    row("complex-magnitude", "aten.abs.default", torch.complex(f32(3e30, 0.0), f32(4e30, -0.0)), level=Level.L2),
    row("angle-of-negative-zero", "aten.angle.default", f32(-1.0, -0.0, 0.0, 1.0, NAN), level=Level.L2),
    row("dropout-mask-applied", "aten.mul.Tensor", ramp(8), b1([True, False] * 4)),
    row("cast-for-a-sum", "aten._softmax.default", ramp(3, 5).half(), 1, False),
    row(
        "cdist-of-equal-points", "aten._cdist_forward.default", f32([[1.0, 2.0], [3.0, 4.0]]), f32([[1.0, 2.0]]), 2.0, 2
    ),
    row("mean-in-f64", "aten.mean.dim", ramp(3, 4), [1], dtype=DType.f64, level=Level.L2),
)
