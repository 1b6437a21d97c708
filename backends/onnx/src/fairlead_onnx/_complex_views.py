"""Ops that make, move and pick complex numbers, and sums of them: what is done to each part by itself."""

from __future__ import annotations

from fairlead.ir import Argument, Value
from fairlead_onnx._complex_call import ComplexCall, Result, rule
from fairlead_onnx._complex_functions import modulus
from fairlead_onnx._complex_ops import Pair
from fairlead_onnx._writer import Declined

__all__: list[str] = []

_OPERANDS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            "aten.alias.default",
            "aten.clone.default",
            "aten.cumsum.default",
            "aten.diagonal.default",
            "aten.expand.default",
            "aten.flip.default",
            "aten.gather.default",
            "aten.im2col.default",
            "aten.index.Tensor",
            "aten.index_select.default",
            "aten.mean.default",
            "aten.mean.dim",
            "aten.permute.default",
            "aten.reflection_pad1d.default",
            "aten.reflection_pad2d.default",
            "aten.reflection_pad3d.default",
            "aten.repeat.default",
            "aten.replication_pad1d.default",
            "aten.replication_pad2d.default",
            "aten.replication_pad3d.default",
            "aten.roll.default",
            "aten.select.int",
            "aten.slice.Tensor",
            "aten.split_with_sizes.default",
            "aten.squeeze.dims",
            "aten.sum.default",
            "aten.sum.dim_IntList",
            "aten.tril.default",
            "aten.triu.default",
            "aten.unbind.int",
            "aten.unfold.default",
            "aten.unsqueeze.default",
            "aten.view.default",
        ),
        (0,),
    ),
    **dict.fromkeys(
        ("aten.slice_scatter.default", "aten.select_scatter.default", "aten.diagonal_scatter.default"), (0, 1)
    ),
    **dict.fromkeys(("aten.scatter.src", "aten.scatter_add.default", "aten.scatter.value"), (0, 3)),
    **dict.fromkeys(("aten.index_put.default", "aten.masked_scatter.default", "aten.constant_pad_nd.default"), (0, 2)),
    "aten.cat.default": (0,),
    "aten.embedding.default": (0,),
    "aten.embedding_dense_backward.default": (0,),
    "aten.full.default": (1,),
    "aten.where.self": (1, 2),
}
"""Which arguments hold the numbers that an op moves or adds; the others say where."""


@rule(*_OPERANDS)
def each_part(c: ComplexCall) -> Result:
    re, im = (_of_part(c, which) for which in range(2))
    pairs = [None if r is None or i is None else Pair(r, i) for r, i in zip(re, im, strict=True)]
    (only, *others) = pairs
    return tuple(pairs) if others or only is None else only


def _of_part(c: ComplexCall, which: int) -> list[Value | None]:
    """The results of the op on one part."""
    operands = _OPERANDS[c.node.op]
    args = tuple(_part(c, arg, which) if i in operands else c.real(arg) for i, arg in enumerate(c.args))
    types = c.ops.types(c.node.op, args)
    if len(types) != len(c.node.results) or None in types:
        raise Declined(f"{c.node.op} of complex numbers, with results of unknown shape")
    made = c.ops.emit.many(c.node.op, args, [type_ for type_ in types if type_ is not None])
    return [value if result is not None else None for value, result in zip(made, c.node.results, strict=True)]


def _part(c: ComplexCall, arg: Argument, which: int) -> Argument:
    """One part of an operand, or of each in a list; that of a tensor has all its elements."""
    if isinstance(arg, tuple):
        return tuple(_part(c, item, which) for item in arg)
    part = c.parts(arg)[which]
    return c.ops.whole(part, arg.tensor.shape) if isinstance(arg, Value) and not isinstance(part, Value) else part


@rule("aten.view_as_real.default")
def view_as_real(c: ComplexCall) -> Value:
    return c.ops.stack(c.pair(0), c.shape(0))


@rule("aten.view_as_complex.default")
def view_as_complex(c: ComplexCall) -> Pair:
    return c.ops.unstack(c.value(0))


@rule("aten.complex.default")
def complex_(c: ComplexCall) -> Pair:
    return Pair(c.value(0), c.value(1))


@rule("aten.polar.default")
def polar(c: ComplexCall) -> Pair:
    b, size, angle = c.ops, c.value(0), c.value(1)
    return Pair(b.mul(size, b.unary("cos", angle)), b.mul(size, b.unary("sin", angle)))


@rule("aten.var.correction")
def variance(c: ComplexCall) -> Value:
    re, im = (c.ops(c.node.op, c.ops.tensor(part), *c.args[1:]) for part in c.pair(0))
    return c.ops("aten.add.Tensor", re, im, 1)


@rule("aten.var_mean.correction")
def variance_and_mean(c: ComplexCall) -> Result:
    z, (_, dims, _, keepdim) = c.pair(0), c.args
    var, mean = ("aten.var.correction", c.args[1:]), ("aten.mean.dim", (dims, keepdim, None))
    (re, im), means = ([c.ops(op, c.ops.tensor(part), *rest) for part in z] for op, rest in (var, mean))
    return c.ops("aten.add.Tensor", re, im, 1), Pair(*means)


@rule("aten.linalg_vector_norm.default")
def norm(c: ComplexCall) -> Value:
    b, z, rest = c.ops, c.pair(0), tuple(map(c.real, c.args[1:]))
    if c.args[1] == 2:
        return modulus(b, Pair(*(b(c.node.op, b.tensor(part), *rest) for part in z)))
    return b(c.node.op, modulus(b, z), *rest)
