"""The table of op cases: op, element types, and a function that makes the arguments for one of them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any, TypeAlias

import torch

__all__ = ["CASES", "Row"]

Row: TypeAlias = "tuple[str, str, Callable[[torch.dtype], tuple[Any, ...]]]"

_INTS = "u8 i8 i16 i32 i64"
_FLOATS = "f16 bf16 f32 f64"
_F = "f32"
_FD = "f32 f64"
_ALL = f"bool {_INTS} {_FLOATS}"
_NUMBERS = f"{_INTS} {_FLOATS}"
_MOST = "bool i32 i64 f32 bf16"
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-8, -1e-8, 3.7, -7.3, 20.0, -20.0, 1e4, -1e4)
WILD = (*EDGES, inf, -inf, nan)


def n(*shape: int) -> Any:
    """Normal numbers; small integers for integer types."""

    def make(dtype: torch.dtype) -> torch.Tensor:
        if dtype is torch.bool:
            return torch.rand(shape) > 0.5
        if not dtype.is_floating_point:
            return torch.randint(0 if dtype is torch.uint8 else -9, 10, shape).to(dtype)
        return torch.randn(shape).to(dtype)

    return make


def v(*values: float) -> Any:
    """These values, as far as the type holds them."""

    def make(dtype: torch.dtype) -> torch.Tensor:
        if dtype.is_floating_point:
            return torch.tensor(values, dtype=torch.float64).to(dtype)
        finite = [x for x in values if abs(x) <= 100 and (x >= 0 or dtype is not torch.uint8)]
        return torch.tensor(finite).to(dtype)

    return make


def far(*shape: int) -> Any:
    """Integers of any size that the type holds, as many of each length in bits."""

    def make(dtype: torch.dtype) -> torch.Tensor:
        info = torch.iinfo(dtype)
        bits = torch.randint(info.min, info.max, shape, dtype=torch.int64) >> torch.randint(0, info.bits, shape)
        return bits.to(dtype)

    return make


def below_end(*steps: int) -> Any:
    """Integers so many steps below the largest of the type."""
    return lambda dtype: torch.tensor([torch.iinfo(dtype).max - n for n in steps]).to(dtype)


def mesh(*values: float, dim: int) -> Any:
    """These values along one of two dimensions, of which the other is 1."""
    line = v(*values)
    return lambda dtype: line(dtype).unsqueeze(1 - dim)


def p(*shape: int) -> Any:
    """Positive numbers."""
    return lambda dtype: torch.rand(shape).to(dtype) + 0.1


def i(high: int, *shape: int, low: int = 0, dtype: torch.dtype = torch.int64) -> Any:
    """Integers whatever the type of the case."""
    return lambda _: torch.randint(low, high, shape, dtype=dtype)


def _ends(*numbers: int) -> Any:
    return fixed(torch.tensor(numbers, dtype=torch.int32))


def fixed(tensor: torch.Tensor) -> Any:
    return lambda _: tensor


def b(*shape: int) -> Any:
    return lambda _: torch.rand(shape) > 0.5


def row(op: str, dtypes: str, *args: Any) -> Row:
    def fill(arg: Any, dtype: torch.dtype) -> Any:
        if isinstance(arg, tuple):
            return tuple(fill(a, dtype) for a in arg)
        return arg(dtype) if callable(arg) else arg

    return op if "." in op else f"aten.{op}.default", dtypes, lambda dtype: tuple(fill(a, dtype) for a in args)


def _pointwise() -> list[Row]:
    rows = [
        row(op, _FLOATS, v(*WILD))
        for op in [
            "abs",
            "ceil",
            "cos",
            "exp",
            "floor",
            "neg",
            "reciprocal",
            "relu",
            "round",
            "sigmoid",
            "sign",
            "sin",
            "sqrt",
            "tanh",
            "trunc",
        ]
    ]
    rows += [
        row(op, "i32 f16 bf16 f32", mesh(*WILD, dim=0), mesh(*WILD, dim=1))
        for op in ("aten.atan2.default", "aten.copysign.Tensor")
    ]
    rows += [row("angle", "i32 f32 f64", v(*WILD)), row("aten.copysign.Tensor", _F, v(*EDGES), -2.0)]
    rows += [
        row(op, _F, v(*WILD))
        for op in [
            "acosh",
            "asin",
            "asinh",
            "acos",
            "atan",
            "atanh",
            "cosh",
            "erf",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "rsqrt",
            "sinh",
            "tan",
        ]
    ]
    rows += [
        row(op, "f64 bf16", v(0.5, 1.5, 1e-9, -0.3)) for op in ["log1p", "expm1", "log2", "log10", "rsqrt", "exp2"]
    ]
    rows += [
        row(op, _INTS, v(0, 1, -1, 5, -7)) for op in ["abs", "neg", "sign", "ceil", "floor", "round", "trunc", "relu"]
    ]
    rows += [row(op, "i64 bool", n(5)) for op in ["sin", "exp", "sqrt", "sigmoid", "tanh", "reciprocal"]]
    rows += [row(op, f"{_FLOATS} i64", v(*WILD)) for op in ["isnan", "isinf", "logical_not"]]
    rows += [row("bitwise_not", f"bool {_INTS}", n(7))]
    rows += [row(f"aten.{op}.Tensor", _NUMBERS, n(2, 3), n(3)) for op in ["add", "sub", "mul"]]
    rows += [row(f"aten.{op}.Tensor", "bool", n(2, 3), n(3)) for op in ["add", "mul"]]
    rows += [row(f"aten.{op}.Tensor", "f32 i64 i32", n(2, 3), 2) for op in ["add", "sub", "mul", "div"]]
    rows += [
        row(f"aten.{op}.Tensor", "f32 i64", n(2, 3), 1.5)
        for op in ["add", "sub", "mul", "div", "eq", "lt", "le", "gt", "ge", "ne"]
    ]
    rows += [row(f"aten.{op}.Tensor", "f32 i64 bf16", n(2, 3), n(3), 3) for op in ["add", "sub"]]
    rows += [row("aten.div.Tensor", f"{_FLOATS} i64 bool", v(*WILD), v(3.0))]
    rows += [row("exp", _F, v(88.4, 88.7, 88.8, -87.4, -100.0))]
    rows += [row("aten.div.Tensor_mode", _FD, v(*WILD), 0.3, mode) for mode in (None, "trunc", "floor")]
    rows += [row("aten.div.Tensor_mode", _FD, n(4, 5), n(5), mode) for mode in ("trunc", "floor")]
    rows += [row("aten.div.Tensor_mode", _INTS, n(20), k, mode) for mode in ("trunc", "floor") for k in (3,)]
    rows += [row("aten.div.Tensor_mode", "i32 i64", n(20), k, mode) for mode in ("trunc", "floor") for k in (-3, -1)]
    rows += [row("aten.div.Tensor_mode", _INTS, far(40), 3, mode) for mode in ("trunc", "floor")]
    rows += [row("aten.div.Tensor_mode", "i32 i64", far(40), -7, mode) for mode in ("trunc", "floor")]
    rows += [row(f"aten.{op}.Tensor", "i16 i32 i64", far(40), k) for op in ("remainder", "fmod") for k in (5, -3)]
    rows += [row(f"aten.{op}.Tensor", _INTS, far(40), far(40)) for op in ("add", "sub", "mul")]
    rows += [row(op, _INTS, far(40)) for op in ("abs", "neg", "sign", "relu")]
    rows += [row("aten.clamp.Tensor", _INTS, far(40), 1, 5)]
    rows += [row(f"aten.{op}.Tensor", _FD, v(*EDGES), k) for op in ("remainder", "fmod") for k in (3.0, -2.5)]
    rows += [row(f"aten.{op}.Tensor", _INTS, n(20), 3) for op in ("remainder", "fmod")]
    rows += [row(f"aten.{op}.Tensor", "i64", n(20), -3) for op in ("remainder", "fmod")]
    rows += [row("aten.remainder.Tensor", _F, n(5, 4), n(4))]
    rows += [row("aten.pow.Tensor_Tensor", _FD, v(*EDGES), k) for k in (0.5, 2, 3, -1, -2, -0.5, 2.5)]
    rows += [row("aten.pow.Tensor_Tensor", "i32 i64 u8", n(9), k) for k in (1, 2, 3, 5)]
    rows += [row("aten.pow.Tensor_Tensor", _FD, p(2, 3), n(3)), row("aten.pow.Tensor_Tensor", _F, 2.0, n(5))]
    rows += [row(f"aten.{op}.Tensor", _ALL, n(3, 4), n(4)) for op in ["eq", "ne", "lt", "le", "gt", "ge"]]
    ends = below_end(0, 1, 2, 3, 0), below_end(1, 1, 0, 3, 2)
    rows += [row(f"aten.{op}.Tensor", _INTS, *ends) for op in ["eq", "ne", "lt", "le", "gt", "ge"]]
    rows += [row(op, _INTS, *pair) for op in ("maximum", "minimum") for pair in (ends, (far(40), far(40)))]
    rows += [row(f"aten.{op}.Tensor", _F, v(*WILD), v(*reversed(WILD))) for op in ["eq", "ne", "lt", "le", "gt", "ge"]]
    rows += [row(op, _FD, v(*WILD), v(*reversed(WILD))) for op in ("maximum", "minimum")]
    rows += [row(op, _ALL, n(3, 4), n(4)) for op in ("maximum", "minimum")]
    rows += [
        row("aten.clamp.Tensor", f"{_INTS} f32 f64 bf16", n(9), low, high)
        for low, high in ((1, 5), (None, 4), (2, None), (5, 1))
    ]
    rows += [row("aten.clamp.Tensor", _F, v(*WILD), low, high) for low, high in ((None, 0.5), (0.5, None))]
    rows += [
        row("aten.clamp.Tensor", _F, v(*WILD), -0.7, 0.7),
        row("aten.clamp.Tensor", _F, v(*WILD), fixed(torch.tensor(-1.0)), None),
    ]
    rows += [row("aten.where.self", _ALL, b(3, 4), n(3, 4), n(4)), row("aten.where.self", _F, b(3), n(3), -inf)]
    rows += [row(f"logical_{op}", "bool i64 f32", n(3, 4), n(4)) for op in ("and", "or", "xor")]
    rows += [row(f"aten.bitwise_{op}.Tensor", f"bool {_INTS}", n(3, 4), n(4)) for op in ("and", "or", "xor")]
    rows += [
        row("aten.add.Tensor", _F, fixed(torch.tensor(2)), n(3)),
        row("aten.mul.Tensor", "bf16", n(3), fixed(torch.tensor(2.0))),
    ]
    rows += [row("aten.add.Tensor", "bool", b(3, 1), b(4), False), row("aten.sub.Tensor", "f32 i64", n(3), n(3), 0)]
    rows += [row("aten.add.Tensor", "f32 i64", n(0, 3), n(3)), row("aten.mul.Tensor", _F, n(), n())]
    targets = (torch.bool, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)
    rows += [row("aten._to_copy.default", "bool u8 i32 i64 f16 bf16 f32 f64", n(6), target) for target in targets]
    rows += [
        row("aten._to_copy.default", _F, v(0.3, -0.4, 0.0, nan, 1.9, -1.9), torch.bool),
        row("aten._to_copy.default", "i64", n(9), torch.uint8),
    ]
    return rows


def _views() -> list[Row]:
    x = n(2, 3, 4)
    rows = [row("view", _ALL, x, (4, 6)), row("view", "f32 i64", n(2, 0, 3), (0, 6)), row("view", _F, n(1), ())]
    rows += [row("permute", _ALL, x, (2, 0, 1)), row("permute", _F, x, (0, -1, 1)), row("permute", _F, n(), ())]
    rows += [row("expand", _ALL, n(3, 1), (2, 3, 4)), row("expand", _F, n(), (2,)), row("expand", _F, n(1), (0,))]
    rows += [row("unsqueeze", _MOST, x, d) for d in (0, -1, 3)]
    rows += [row("aten.squeeze.dims", _MOST, n(1, 3, 1), d) for d in ((0,), (0, 2), (1,), (-1,))]
    rows += [row("aten.select.int", _ALL, x, 1, -1), row("aten.select.int", _F, n(3), 0, 1)]
    rows += [
        row("aten.slice.Tensor", _ALL, x, 2, 1, 3, 1),
        row("aten.slice.Tensor", _F, x, 2, 0, 4, 2),
        row("aten.slice.Tensor", _F, x, 1, 2, 2, 1),
    ]
    rows += [row("aten.slice.Tensor", "f32", x, 1, -2, 9223372036854775807, 1)]
    rows += [row("split_with_sizes", _ALL, n(6, 2), (1, 2, 3), 0), row("aten.unbind.int", _MOST, x, 1)]
    rows += [row("cat", _ALL, (x, n(2, 1, 4)), 1), row("cat", _F, (n(2), n(0)), 0), row("cat", _F, (n(2, 2), n(0)), -1)]
    rows += [row("cat", _F, (n(2), i(5, 3)), 0), row("stack", _MOST, (n(2, 3), n(2, 3)), 1)]
    rows += [
        row("flip", _ALL, x, (0, 2)),
        row("roll", _MOST, x, (1, -2), (0, 2)),
        row("repeat", _ALL, n(2, 3), (2, 1, 2)),
    ]
    rows += [row("constant_pad_nd", _ALL, x, (1, 2, 0, 1), 1), row("constant_pad_nd", _F, x, (-1, 1, -1, -1), 0.5)]
    rows += [row("diagonal", _MOST, n(3, 4, 5), off, a, d) for off, a, d in ((0, 0, 1), (1, 1, 2), (-1, 2, 0))]
    rows += [row(op, _ALL, n(4, 5), k) for op in ("tril", "triu") for k in (0, 1, -1)]
    rows += [
        row("slice_scatter", "f32 i64", n(7, 4), n(3, 4), 0, 1, 7, 2),
        row("slice_scatter", _F, n(5), n(2), -1, -4, None, 2),
    ]
    rows += [
        row("diagonal_scatter", "f32 i64 bool", n(4, 5), n(4), 0, 0, 1),
        row("diagonal_scatter", _F, n(3, 4, 2), n(4, 2), -1, 0, 2),
        row("diagonal_scatter", _F, n(3, 4, 2), n(4, 1), 1, -3, -1),
    ]
    rows += [
        row(f"{kind}_pad{rank}d", "f32 i64", n(2, *(4, 5, 3)[3 - rank :]), (1, 2, 0, 3, 2, 1)[: 2 * rank])
        for kind in ("reflection", "replication")
        for rank in (1, 2)
    ]
    rows += [row("replication_pad3d", _F, n(1, 2, 3, 4, 2), (3, 0, -1, 2, 1, 1))]
    rows += [
        row("im2col", "f32 bf16", n(2, 3, 6, 5), (2, 3), (1, 1), (0, 0), (1, 1)),
        row("im2col", _F, n(2, 7, 8), (2, 2), (2, 1), (1, 2), (3, 2)),
    ]
    rows += [
        row("masked_scatter", "f32 i64 bool", n(3, 4), b(3, 4), n(12)),
        row("masked_scatter", _F, n(2, 3, 4), b(4), n(2, 3, 4)),
    ]
    rows += [row("aten.select_scatter.default", _MOST, x, n(2, 4), 1, k) for k in (0, 1, -1)]
    rows += [row("slice_scatter", _MOST, x, n(2, 2, 4), 1, s, e, 1) for s, e in ((0, 2), (1, 3), (-2, None))]
    rows += [row("clone", _F, x, None), row("unfold", _MOST, n(2, 9), 1, 3, 2)]
    rows += [
        row("full", d, (2, 3), value, dtype)
        for d, value, dtype in (
            ("f32", 1.5, torch.float32),
            ("f32", -7, torch.int64),
            ("f32", True, torch.bool),
            ("f32", nan, torch.bfloat16),
        )
    ]
    rows += [
        row("full_like", _ALL, x, 1),
        row("aten.arange.start_step", _F, 2, 11, 3),
        row("aten.arange.start_step", _F, 0.0, 1.0, 0.1),
        row("aten.arange.start_step", _F, 5, -1, -2),
    ]
    return rows


def _reductions() -> list[Row]:
    x = n(3, 4, 5)
    rows = [row("aten.sum.dim_IntList", _ALL, x, d, k) for d, k in (((1,), False), ((0, -1), True), (None, False))]
    rows += [row("aten.sum.dim_IntList", _F, n(), (), False), row("aten.sum.dim_IntList", _F, n(2, 0), (1,), False)]
    rows += [row("aten.mean.dim", _FLOATS, x, d, k) for d, k in (((1,), False), ((0, -1), True), (None, False))]
    rows += [row("aten.mean.dim", _F, n(2, 0), (1,), False), row("aten.prod.dim_int", "f32 f64 i64 i32", x, 1, False)]
    rows += [row(op, f"{_NUMBERS} bool", x, (1,), k) for op in ("amax", "amin") for k in (False, True)]
    rows += [row(op, _INTS, far(5, 9), (1,), False) for op in ("amax", "amin")]
    rows += [
        row(op, _F, fixed(torch.tensor([[1.0, nan, 3.0], [nan, 0.0, 1.0], [1.0, 2.0, -inf]])), (1,), False)
        for op in ("amax", "amin")
    ]
    edges = fixed(torch.tensor([[1.0, nan, 3.0], [0.0, -0.0, 0.0], [1.0, 0.0, -inf]]))
    rows += [row("linalg_vector_norm", _F, edges, order, (1,)) for order in (2, 1, 0, 3, -1, -1.5, inf, -inf)]
    rows += [row("linalg_vector_norm", _FLOATS, x, 2, d, k) for d, k in (((0, -1), True), (None, False))]
    rows += [row("linalg_vector_norm", _F, n(2, 0), 2, (1,)), row("linalg_vector_norm", _F, n(), 2, ())]
    rows += [
        row(f"aten.{op}.dims", "bool i64 f32", n(3, 4), d, k)
        for op in ("any", "all")
        for d, k in (((1,), False), (None, False), ((0,), True))
    ]
    rows += [row("aten.any.dims", "f32", fixed(torch.tensor([[nan, 0.0], [0.0, -0.0]])), (1,), False)]
    rows += [row(f"aten.{op}.dim", "f32 f64 i64 i32 bf16", x, 1, k) for op in ("max", "min") for k in (False, True)]
    rows += [
        row(op, "f32 f64 i64 i32 bf16", x, d, k)
        for op in ("argmax", "argmin")
        for d, k in ((1, False), (None, False), (-1, True))
    ]
    rows += [
        row(op, _F, fixed(torch.tensor([[1.0, 3.0, 3.0], [nan, 4.0, nan], [5.0, nan, 1.0]])), 1, False)
        for op in ("argmax", "argmin")
    ]
    rows += [row("aten.var.correction", _FLOATS, x, (1,), c, True) for c in (0, 1)] + [
        row("aten.var_mean.correction", _FD, x, (0, 2), 1, False)
    ]
    rows += [
        row("aten.logsumexp.default", _FD, x, (1,), False),
        row("aten.logsumexp.default", _F, fixed(torch.tensor([[-inf, -inf], [0.0, -inf], [inf, 1.0]])), (1,), False),
    ]
    rows += [row(op, "f32 bf16", n(), (d,), False) for op in ("aten.logsumexp.default", "amax") for d in (0, -1)]
    rows += [
        row(f"aten.{op}", _F, n(), (0,), k) for op in ("sum.dim_IntList", "mean.dim", "any.dims") for k in (False, True)
    ]
    rows += [
        row("aten.var.correction", _F, n(), (0,), 0, False),
        row("aten.var.correction", _F, n(0, 3), (0,), 1, True),
        row("aten.prod.dim_int", _F, n(), 0, False),
    ]
    rows += [
        row("aten.sum.dim_IntList", "i64", fixed(torch.tensor([[2**53 + 1, 1, 1], [2**62, 2**62, 1]])), d, k)
        for d, k in (((1,), False), ((0, 1), True), (None, False))
    ]
    rows += [
        row(
            "aten.sum.dim_IntList",
            "i32",
            fixed(torch.tensor([2**31 - 1, 1], dtype=torch.int32)),
            (0,),
            False,
            torch.int32,
        )
    ]
    rows += [row("topk", _F, v(2.0, nan, -inf, inf), k, 0, largest, True) for k in (2, 4) for largest in (True, False)]
    rows += [row("aten.sort.stable", _F, v(2.0, nan, -inf, inf, nan, 1.0), True, 0, d) for d in (False, True)]
    rows += [row("cumsum", _ALL, n(3, 4), d) for d in (0, -1)] + [row("cumsum", _F, n(), 0)]
    rows += [row("aten.sort.default", "f32 f64 i64 i32", n(3, 7), -1, d) for d in (False, True)]
    rows += [row("aten.sort.stable", "u8 i32 i64", n(2, 3, 50), True, -1, d) for d in (False, True)]
    rows += [row("aten.histc.default", _F, values, 8, 0, 7) for values in (n(5, 40), v(*WILD, 7.0, 6.9999995, 0.875))]
    rows += [row("aten.histc.default", _F, n(5, 40), bins, -1.3, 2.1) for bins in (1, 7, 10)]
    rows += [
        row("topk", "f32 i64", fixed(torch.randperm(21).reshape(3, 7).float()), 3, 1, largest, True)
        for largest in (True, False)
    ]
    return rows


def _nn() -> list[Row]:
    halves = "f16 bf16 f32"
    rows = [row(op, "f32 bf16", v(*EDGES)) for op in ["silu", "hardswish", "hardsigmoid", "mish", "relu"]]
    rows += [row("gelu", "f32 bf16", v(*EDGES), k) for k in ("none", "tanh")]
    rows += [
        row("elu", "f32 bf16", v(*EDGES), 1.3, 1.0, 1.0),
        row("leaky_relu", "f32 bf16", v(*EDGES), 0.1),
        row("leaky_relu", "f32 bf16", v(*EDGES), -0.5),
        row("hardtanh", "f32 f64 i64", v(*EDGES), -1, 2),
    ]
    rows += [row("softplus", "f32 bf16", v(*EDGES), beta, 20) for beta in (1, 2.0)] + [
        row("_prelu_kernel", _F, n(2, 3, 4), fixed(torch.tensor([0.1, 0.2, 0.3]).view(3, 1)))
    ]
    rows += [row(op, "f32 f64 bf16", n(2, 3, 4), d, False) for op in ("_softmax", "_log_softmax") for d in (1, -1)]
    rows += [
        row(op, _F, v(value)(torch.float32).reshape(()), 0, False)
        for op in ("_softmax", "_log_softmax")
        for value in (2.0, inf)
    ]
    rows += [
        row("_softmax", _F, fixed(torch.tensor([[-inf, -inf], [0.0, -inf]])), 1, False),
        *(
            row(op, _F, fixed(torch.tensor([[0.0, nan, 1.0], [inf, 0.0, inf], [1.0, -inf, 2.0]])), 1, False)
            for op in ("_softmax", "_log_softmax")
        ),
        row("_safe_softmax", _F, fixed(torch.tensor([[-inf, -inf], [0.0, -inf]])), 1, None),
    ]
    rows += [
        row("linear", "f32 bf16 f64", n(*shape, 4), n(3, 4), bias)
        for shape in ((2,), (2, 5), ())
        for bias in (None, n(3))
    ]
    rows += [
        row("mm", "f32 bf16 f64 i64 i32", n(2, 3), n(3, 4)),
        row("bmm", "f32 bf16", n(2, 3, 4), n(2, 4, 5)),
        row("mm", _F, n(2, 0), n(0, 3)),
        *(
            row("aten._grouped_mm.default", "f32 bf16", n(9, 16), n(4, 16, 8), ends, None, None)
            for ends in (_ends(2, 2, 7, 9), _ends(0, 0, 0, 9), _ends(9, 9, 9, 9))
        ),
    ]
    rows += [
        row("addmm", "f32 bf16", bias, n(2, 3), n(3, 4), beta, alpha)
        for bias in (n(4), n(2, 4), n())
        for beta, alpha in ((1, 1), (0.5, 2), (0, 1))
    ]
    rows += [
        row("addmm", "f64", n(4), n(2, 3), n(3, 4), 0.1, 0.2),
        row("baddbmm", _F, n(2, 3, 5), n(2, 3, 4), n(2, 4, 5), 1, 1),
        row("mv", _F, n(3, 4), n(4)),
        row("dot", _F, n(4), n(4)),
    ]
    rows += [
        row("native_layer_norm", "f32 f64 bf16", n(2, 3, 4), s, w, c, 1e-5)
        for s, w, c in (((4,), n(4), n(4)), ((3, 4), None, None), ((4,), n(4), None))
    ]
    rows += [
        row("native_group_norm", "f32 bf16", n(2, 6, 3, 3), w, c, 2, 6, 9, 3, 1e-5)
        for w, c in ((n(6), n(6)), (None, None))
    ]
    rows += [
        row("_native_batch_norm_legit_no_training", "f32", n(2, 3, 4, 4), w, c, n(3), p(3), 0.1, 1e-5)
        for w, c in ((n(3), n(3)), (None, None))
    ]
    rows += [
        row("_native_batch_norm_legit_functional", "f32", n(*s), n(3), n(3), n(3), p(3), True, 0.1, 1e-5)
        for s in ((2, 3, 4, 4), (5, 3))
    ]
    conv = (
        ((3, 3), (1, 1), (1, 1), (1, 1), 1),
        ((3, 3), (2, 2), (1, 0), (1, 1), 1),
        ((3, 3), (1, 2), (2, 2), (2, 1), 1),
        ((3, 3), (1, 1), (0, 0), (1, 1), 2),
    )
    rows += [
        row("convolution", halves, n(2, 4, 9, 8), n(6, 4 // g, *k), bias, s, pad, d, False, (0, 0), g)
        for k, s, pad, d, g in conv
        for bias in (None, n(6))
    ]
    rows += [
        row("convolution", _F, n(2, 4, 5, 5), n(4, 3, 3, 3), n(3), (2, 2), (1, 1), (1, 1), True, (1, 0), 1),
        row("convolution", _F, n(2, 4, 9), n(6, 4, 3), n(6), (2,), (1,), (1,), False, (0,), 1),
        row("convolution", _F, n(2, 4, 5, 5), n(4, 3, 3, 3), n(3), (2, 2), (1, 1), (4, 4), True, (3, 0), 1),
    ]
    rows += [
        row(
            "convolution",
            _F,
            n(1, 2, 4, 5, 5),
            n(3, 2, 3, 3, 3),
            None,
            (1, 1, 1),
            (1, 1, 1),
            (1, 1, 1),
            False,
            (0, 0, 0),
            1,
        )
    ]
    windows: tuple[tuple[Any, ...], ...] = (
        ((2, 2), (), (0, 0), (1, 1), False),
        ((3, 3), (2, 2), (1, 1), (1, 1), False),
        ((3, 3), (2, 2), (1, 1), (1, 1), True),
        ((3, 2), (2, 2), (0, 0), (2, 1), True),
    )
    rows += [row("max_pool2d_with_indices", "f32 bf16 f64", n(2, 3, 9, 8), *window) for window in windows]
    averages: tuple[tuple[Any, ...], ...] = (
        ((2, 2), (), (0, 0), False, True, None),
        ((3, 3), (2, 2), (1, 1), False, True, None),
        ((3, 3), (2, 2), (1, 1), False, False, None),
        ((3, 3), (2, 1), (1, 1), False, True, 5),
        ((2, 2), (2, 2), (0, 0), True, True, None),
    )
    rows += [row("avg_pool2d", _F, n(2, 3, 9, 8), *average) for average in averages]
    rows += [row("_adaptive_avg_pool2d", "f32 bf16", n(2, 3, 7, 8), s) for s in ((1, 1), (3, 2), (7, 8), (9, 4))]
    return rows


def _indexing() -> list[Row]:
    x = n(4, 5, 6)
    rows = [
        row("embedding", "f32 bf16", n(7, 3), i(7, 2, 4)),
        row("embedding", _F, n(7, 3), i(7, 4, dtype=torch.int32), 2),
    ]
    rows += [
        row("index_select", _ALL, x, 1, i(5, 3)),
        row("index_select", _F, x, -1, i(5)),
        row("gather", _ALL, n(4, 5), 1, i(5, 3, 7)),
        row("gather", _F, n(4, 5), 0, i(4, 2, 5)),
    ]
    rows += [
        row("aten.scatter.src", _ALL, n(4, 5), 1, fixed(torch.tensor([[0, 2], [4, 1]])), n(3, 3)),
        row("aten.scatter.value", "f32 i64", n(4, 5), 0, fixed(torch.tensor([[0, 2], [3, 1]])), 7),
    ]
    rows += [row("scatter_add", "f32 f64 i64 i32 bf16", n(4, 5), 1, i(5, 4, 7), n(4, 7))]
    rows += [
        row("aten.scatter_reduce.two", "f32 i64", n(4, 5), 1, i(5, 4, 7), n(4, 7), how, takes_part)
        for how in ("sum", "prod")
        for takes_part in (True, False)
    ]
    rows += [
        row("aten.scatter_reduce.two", "f32 bf16", n(4, 5), 0, i(4, 6, 5), n(6, 5), how, takes_part)
        for how in ("mean", "amax", "amin")
        for takes_part in (True, False)
    ]
    rows += [
        row(
            "aten.scatter_reduce.two",
            _F,
            v(1.0, nan, -inf, 2.0),
            0,
            fixed(torch.tensor([0, 0, 2, 3])),
            v(nan, 3.0, inf, -3.0),
            how,
            part,
        )
        for how in ("amax", "amin")
        for part in (True, False)
    ]
    rows += [
        row("aten.scatter.src", _F, n(), 0, fixed(torch.tensor([0])), n(1)),
        row("scatter_add", _F, n(3), 0, fixed(torch.tensor([], dtype=torch.int64)), n(0)),
        row("gather", _F, n(), 0, fixed(torch.tensor([0, 0]))),
        row("gather", _F, n(5), 0, fixed(torch.tensor(3))),
        row("index_select", _F, n(), 0, fixed(torch.tensor([0]))),
    ]
    rows += [
        row("aten.index.Tensor", _ALL, x, (i(4, 3, low=-4),)),
        row("aten.index.Tensor", _F, x, (None, i(5, 2, 3, low=-5))),
    ]
    rows += [
        row("aten.index.Tensor", "f32 bool i64", x, (i(4, 3), i(5, 3))),
        row("aten.index.Tensor", _F, x, (i(4, 3, 1), i(5, 2), i(6, 3, 2))),
    ]
    rows += [
        row("aten.index.Tensor", _F, x, (None, i(5, 3), i(6, 3))),
        row("aten.index.Tensor", _F, x, (i(4, 3), None, i(6, 2, 1))),
    ]
    rows += [
        row("aten.index_put.default", _MOST, x, (fixed(torch.tensor([0, 2])),), n(2, 5, 6), False),
        row("aten.index_put.default", "f32 i64", x, (i(4, 9), i(5, 9)), n(9, 6), True),
    ]
    rows += [
        row("aten.index_put.default", _F, x, (None, fixed(torch.tensor([-1, 2]))), n(6), False),
        row("aten.index_put.default", _F, x, (b(4, 5),), fixed(torch.tensor(9.0)), False),
    ]
    rows += [
        row("index_copy", _MOST, x, d, fixed(torch.tensor([3, 0])), n(*s)) for d, s in ((0, (2, 5, 6)), (1, (4, 2, 6)))
    ]
    target = fixed(torch.tensor([1, 3, -100, 0]))
    rows += [
        row("nll_loss_forward", "f32 f64 bf16", n(4, 5), target, w, r, -100) for w in (None, p(5)) for r in (0, 1, 2)
    ]
    rows += [
        row("nll_loss2d_forward", _F, n(2, 5, 3, 4), i(5, 2, 3, 4), w, r, 2) for w in (None, p(5)) for r in (0, 1, 2)
    ]
    rows += [row("nll_loss2d_backward", _F, n(), n(2, 5, 3, 4), i(5, 2, 3, 4), p(5), 1, 2, p())]
    rows += [
        row("nll_loss_backward", _F, n(), n(4, 5), target, None, 1, -100, fixed(torch.tensor(3.0))),
        row("nll_loss_backward", _F, n(4), n(4, 5), target, p(5), 0, -100, fixed(torch.tensor(0.0))),
    ]
    rows += [row("embedding_dense_backward", "f32 bf16", n(2, 4, 3), i(7, 2, 4), 7, pad, False) for pad in (-1, 2)]
    return rows


def _backward() -> list[Row]:
    g, x = n(17), v(*EDGES)
    rows = [row("gelu_backward", "f32 bf16", g, x, k) for k in ("none", "tanh")] + [
        row(op, "f32 f64 bf16", g, x) for op in ("silu_backward", "sigmoid_backward", "tanh_backward")
    ]
    rows += [
        row("threshold_backward", "f32 bf16", g, x, 0),
        row("hardtanh_backward", _F, g, x, -1, 1),
        row("hardsigmoid_backward", _F, g, x),
        row("hardswish_backward", _F, g, x),
    ]
    rows += [
        row("leaky_relu_backward", _F, g, x, 0.1, False),
        row("elu_backward", _F, g, 1.3, 1.0, 1.0, False, x),
        row("elu_backward", _F, g, 1.3, 1.0, 1.0, True, x),
        row("softplus_backward", _F, g, x, 2.0, 20),
    ]
    rows += [row("native_dropout_backward", _F, n(3, 4), b(3, 4), 2.0)]
    rows += [
        row(
            "_softmax_backward_data",
            "f32",
            n(2, 5),
            fixed(torch.tensor([[0.1, 0.2, 0.3, 0.15, 0.25]] * 2)),
            1,
            torch.float32,
        ),
        row("_log_softmax_backward_data", _F, n(2, 5), n(2, 5), 1, torch.float32),
    ]
    mask = (True, True, True)
    rows += [
        row("native_layer_norm_backward", _F, n(2, 3, 4), n(2, 3, 4), (4,), n(2, 3, 1), p(2, 3, 1), w, w, mask)
        for w in (n(4),)
    ]
    rows += [
        row("native_group_norm_backward", _F, n(2, 6, 3, 3), n(2, 6, 3, 3), n(2, 3), p(2, 3), n(6), 2, 6, 9, 3, mask)
    ]
    rows += [
        row(
            "native_batch_norm_backward",
            _F,
            n(2, 3, 4, 4),
            n(2, 3, 4, 4),
            n(3),
            n(3),
            p(3),
            n(3),
            p(3),
            train,
            1e-5,
            mask,
        )
        for train in (True, False)
    ]
    rows += [
        row(
            "max_pool2d_with_indices_backward",
            _F,
            n(1, 2, 2, 2),
            n(1, 2, 4, 4),
            (2, 2),
            (2, 2),
            (0, 0),
            (1, 1),
            False,
            fixed(torch.tensor([[0, 2], [13, 15]]).repeat(1, 2, 1, 1)),
        )
    ]
    rows += [
        row("avg_pool2d_backward", _F, n(1, 2, 5, 4), n(1, 2, 9, 8), (3, 3), (2, 2), (1, 1), c, count, d)
        for c, count, d in ((False, True, None), (False, False, None), (False, True, 4))
    ]
    rows += [row("_adaptive_avg_pool2d_backward", _F, n(2, 3, 3, 2), n(2, 3, 7, 8))]
    for k, s, pad, d in (
        ((3, 3), (1, 1), (1, 1), (1, 1)),
        ((3, 3), (2, 2), (1, 1), (1, 1)),
        ((1, 1), (2, 2), (0, 0), (1, 1)),
        ((3, 3), (1, 1), (2, 2), (2, 2)),
    ):
        size = [(9 + 2 * q - e * (m - 1) - 1) // t + 1 for m, t, q, e in zip(k, s, pad, d, strict=True)]
        rows += [
            row(
                "convolution_backward",
                _F,
                n(2, 6, *size),
                n(2, 4, 9, 9),
                n(6, 4, *k),
                (6,),
                s,
                pad,
                d,
                False,
                (0, 0),
                1,
                mask,
            )
        ]
    return rows


def _attention() -> list[Row]:
    q, k, x = n(2, 3, 4, 8), n(2, 3, 6, 8), n(2, 3, 6, 8)
    dead = torch.zeros(2, 1, 4, 6)
    dead[0, 0, 1] = -inf
    dead[1, 0, :, 3:] = -inf
    op = "nn.scaled_dot_product_attention"
    return [
        row(op, "f32 bf16", q, k, x, None, 0.0, False, 0.3),
        row(op, "f32", q, k, x, fixed(dead), 0.0, False, 0.3),
        row(op, "f32", q, k, x, n(4, 6), 0.0, False, 0.3),
        row(op, "f32", k, k, x, None, 0.0, True, 0.3),
        row(op, "f32 bf16", n(2, 6, 4, 8), k, x, fixed(dead), 0.0, False, 0.3),
        row(op, "f32", n(2, 6, 4, 8), k, x, None, 0.0, True, 0.3),
        row(f"{op}_backward", "f32", n(2, 6, 4, 8), n(2, 6, 4, 8), k, x, fixed(dead), 0.0, False, 0.3),
        row(f"{op}_backward", "f32", q, q, k, x, fixed(dead), 0.0, False, 0.3),
        row(f"{op}_backward", "f32", k, k, k, x, None, 0.0, True, 0.3),
    ]


def _recurrent() -> list[Row]:
    x, state = n(5, 2, 3), n(1, 2, 4)
    weights, biases = (n(16, 3), n(16, 4)), (n(16), n(16))
    return [
        row("nn.lstm", "f32 bf16", x, state, state, *weights, *biases, False),
        row("nn.lstm", "f32 bf16", x, state, state, *weights, *biases, True),
        row("nn.lstm", "f32", x, state, state, *weights, None, None, True),
        row("nn.lstm", "f32", n(1, 1, 3), n(1, 1, 4), n(1, 1, 4), *weights, *biases, False),
    ]


_Z = "c64"
_PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -3.7, 1e-3, 20.0)


def z(*shape: int) -> Any:
    """Normal complex numbers."""
    return lambda dtype: torch.randn(shape, dtype=dtype)


def real(*shape: int) -> Any:
    """Normal numbers, of the parts of the case's type."""
    return lambda dtype: torch.randn(shape, dtype=dtype.to_real())


def grid(*parts: float) -> Any:
    """Complex numbers with each of these as either part."""
    line = torch.tensor(parts)
    return fixed(torch.complex(*(x.contiguous() for x in torch.meshgrid(line, line, indexing="ij"))))


def _complex() -> list[Row]:
    functions = "_conj_physical abs angle cos cosh exp isnan log log10 neg rsqrt sigmoid silu sin sinh sqrt tan tanh"
    far = (1e30, -1e30, 1e-30, 3.0, 0.0, -0.0)
    wild = grid(inf, -inf, nan, 1.0)
    pairs = (z(3, 1, 4), z(2, 4)), (z(4), real(3, 1)), (z(5), 2.5)
    rows = [row(op, _Z, grid(*_PARTS)) for op in functions.split()]
    rows += [row(op, _Z, grid(*far)) for op in ("abs", "angle", "log", "sqrt", "logical_not", "view_as_real")]
    rows += [row(op, _Z, wild) for op in ("abs", "isinf", "isnan")]
    rows += [row(f"aten.{op}.Tensor", _Z, *pair) for op in ("mul", "div", "eq", "ne") for pair in pairs]
    rows += [row(f"aten.{op}.Tensor", _Z, *pairs[0], 2) for op in ("add", "sub")]
    rows += [row("aten.pow.Tensor_Scalar", _Z, z(5), power) for power in (0, 2, -3, 0.5, 7)]
    return [
        *rows,
        row("aten.sub.Tensor", _Z, real(3), z(3), 1),
        row("aten.div.Tensor", _Z, grid(*far), grid(*far[:4], 1e25, 2.0)),
        row("aten.div.Tensor", _Z, 1.0, grid(*far)),
        row("_to_copy", _Z, z(5), torch.float32),
        row("_to_copy", _Z, z(5), torch.bool),
        row("_to_copy", _Z, real(5), torch.complex64),
        row("complex", _Z, real(2, 3), real(2, 3)),
        row("polar", _Z, real(2, 3), real(2, 3)),
        row("view_as_complex", _Z, real(3, 2)),
        *_complex_tensors(),
    ]


def _complex_tensors() -> list[Row]:
    """What moves, adds, multiplies and transforms complex numbers."""
    rows = [row("_fft_r2c", _Z, real(5, size), (0, 1), 0, size > 6) for size in (1, 6, 7, 96, 97)]
    rows += [row("_fft_c2r", _Z, z(4, size // 2 + 1), (0, 1), 2, size) for size in (1, 2, 7, 100)]
    return [
        *rows,
        row("_fft_c2c", _Z, z(5, 6, 64), (1, 2), 1, True),
        row("_fft_c2c", _Z, z(5, 3, 130), (1, 2), 1, False),
        row("cat", _Z, (z(2, 3), z(2, 1)), -1),
        row("constant_pad_nd", _Z, z(2, 3), (1, 2), 1.5),
        row("full", _Z, (2, 3), 1.5 - 2j, torch.complex64),
        row("aten.where.self", _Z, b(4, 3), z(4, 3), z(3)),
        row("aten.index_put.default", _Z, z(4, 3), (i(4, 6),), z(6, 3), True),
        row("aten.unbind.int", _Z, z(2, 3), 0),
        row("aten.sum.dim_IntList", _Z, z(2, 3), (1,)),
        row("aten.mean.dim", _Z, z(2, 3), None),
        row("aten.var.correction", _Z, z(2, 3), (1,)),
        *(row("linalg_vector_norm", _Z, z(2, 3), order, (1,)) for order in (2, 1.0)),
        row("aten.var_mean.correction", _Z, z(2, 3), (1,)),
        row("aten.any.dims", _Z, z(2, 3), (1,)),
        row("mm", _Z, z(2, 3), z(3, 4)),
        row("bmm", _Z, z(2, 2, 3), z(2, 3, 4)),
        row("addmm", _Z, z(4), z(2, 3), z(3, 4), 1, 1),
        row("addmm", _Z, z(4), z(2, 3), z(3, 4), 0.5, 1 - 2j),
        row("linear", _Z, z(2, 2, 3), z(4, 3), z(4)),
    ]


CASES: list[Row] = [
    *(*_pointwise(), *_views(), *_reductions(), *_nn()),
    *(*_indexing(), *_backward(), *_attention(), *_recurrent(), *_complex()),
    row("aten._to_copy.default", "bf16 f16 f32 f64", v(300.0, -300.0, 127.0, -128.0), torch.int8),
]
"""Every row: the op, the names of the element types, and what makes the arguments."""
