"""One form for what AOTAutograd emits in many, so that backends meet as few ops as possible."""

from __future__ import annotations

import msgspec

from fairlead.ir import (
    Argument,
    DimExpr,
    DType,
    Graph,
    Node,
    Token,
    Value,
    dims,
)
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._memory import drop_clones, show_views
from fairlead.passes._nodes import logical_same, operand, shape_argument, unless_equal
from fairlead.passes._ops import Ops
from fairlead.passes._random import RANDOM_RULES
from fairlead.passes._regions import in_regions
from fairlead.passes._rewrite import Emitter, Replacement, Rule, by_op, rewrite
from fairlead.passes._views import VIEW_RULES, merge_permutations


def canonicalize(graph: Graph) -> Graph:
    """The graph in the canonical vocabulary of the IR.

    Before: ATen as AOTAutograd emits it. After: no aliases of a value under another name, views as view, permute,
    expand, select, slice, squeeze.dims, unsqueeze or split_with_sizes with complete non-negative arguments, factories
    as full or arange, scalar overloads as tensor overloads, fused multiply-adds as a product and a sum, device-specific
    attention and LSTM kernels as ``nn.scaled_dot_product_attention`` and ``nn.lstm``. A clone stays only where it is
    what keeps an output apart from another value; a view that an output is, is read by nothing else. The same holds in
    regions.
    """
    graph = in_regions(graph, canonicalize)
    graph = merge_permutations(drop_clones(rewrite(graph, by_op(_RULES))))
    return remove_dead_nodes(show_views(graph))


_CLONE = "aten.clone.default"


def _same(node: Node, emit: Emitter) -> Replacement:
    return (operand(node),)


def _renamed(op: str) -> Rule:
    def rule(node: Node, emit: Emitter) -> Replacement:
        return (emit(op, node.args, node.result.type),)

    return rule


def _cat(node: Node, emit: Emitter) -> Replacement | None:
    tensors, dim = node.args
    result = node.result.tensor
    if not isinstance(tensors, tuple) or not isinstance(dim, int):
        return None
    parts = [t for t in tensors if isinstance(t, Value) and not (t.tensor.shape == (0,) and result.rank > 1)]
    if all(p.tensor.dtype != result.dtype for p in parts):  # one that was dropped gave the result its dtype
        parts[0] = _cast(parts[0], result.dtype, emit)
    if len(parts) == 1:
        return (emit(_CLONE, (parts[0], None), node.result.type),)
    return unless_equal(node, emit, node.op, (tuple(parts), dim % result.rank))


def _cast(value: Value, dtype: DType, emit: Emitter, device: str = "") -> Value:
    moved = device not in ("", value.tensor.device)
    args = (value, Token("dtype", dtype), None, Token("device", device) if moved else None, None, False, None)
    type_ = msgspec.structs.replace(value.tensor, dtype=dtype, strides=None, device=device or value.tensor.device)
    return emit("aten._to_copy.default", args, type_)


def _to_copy(node: Node, emit: Emitter) -> Replacement | None:
    if logical_same(node):
        return _clone(node, emit)
    new, old = node.result.tensor, operand(node).tensor
    device = Token("device", new.device) if new.device != old.device else None
    args = (node.args[0], Token("dtype", new.dtype), None, device, None, False, None)
    return unless_equal(node, emit, "aten._to_copy.default", args)


def _clone(node: Node, emit: Emitter) -> Replacement | None:
    """A copy under the one name that copies have, so that `drop_clones` can tell which are needed."""
    return unless_equal(node, emit, _CLONE, (node.args[0], None))


def _copy(node: Node, emit: Emitter) -> Replacement:
    """``copy(self, src)``: src in the shape and dtype of self, and on its device."""
    value, target = operand(node, 1), node.result.tensor
    if (value.tensor.dtype, value.tensor.device) != (target.dtype, target.device):
        value = _cast(value, target.dtype, emit, target.device)
    if value.tensor.shape != target.shape:
        value = emit("aten.expand.default", (value, shape_argument(target.shape), False), node.result.type)
    return (emit(_CLONE, (value, None), node.result.type),)


def _full(fill_index: int | None, constant: float | int = 0) -> Rule:
    def rule(node: Node, emit: Emitter) -> Replacement | None:
        fill: Argument = constant if fill_index is None else node.args[fill_index]
        if isinstance(fill, Value):
            return None
        t = node.result.tensor
        if t.dtype is DType.bool and isinstance(fill, int | float):
            fill = bool(fill)
        args = (
            shape_argument(t.shape),
            fill,
            Token("dtype", t.dtype),
            Token("layout", "strided"),
            Token("device", t.device),
            False,
        )
        return unless_equal(node, emit, "aten.full.default", args)

    return rule


def _extreme(op: str) -> Rule:
    def rule(node: Node, emit: Emitter) -> Replacement:
        source = operand(node)
        return (emit(op, (source, tuple(range(source.tensor.rank)), False), node.result.type),)

    return rule


def _pow_scalar(node: Node, emit: Emitter) -> Replacement | None:
    """Powers stay as they are but for the exponent one, which is a copy."""
    return _clone(node, emit) if node.args[1] == 1 and logical_same(node) else None


def _reduce_all(op: str) -> Rule:
    def rule(node: Node, emit: Emitter) -> Replacement:
        rank = operand(node).tensor.rank
        return (emit(op, (node.args[0], tuple(range(rank)), False, *node.args[1:]), node.result.type),)

    return rule


def _reduce_dims(node: Node, emit: Emitter) -> Replacement | None:
    """Reductions with every dimension written out, in order, not negative."""
    rank = operand(node).tensor.rank
    given = node.args[1]
    listed = (given,) if isinstance(given, int) else given
    if listed is not None and not isinstance(listed, tuple):
        return None
    order = tuple(sorted({d % rank for d in listed or () if isinstance(d, int)})) if rank else ()
    op = {"aten.any.dim": "aten.any.dims", "aten.all.dim": "aten.all.dims"}.get(node.op, node.op)
    empty_is_all = op not in ("aten.any.dims", "aten.all.dims") or given is None
    if not order and empty_is_all:
        order = tuple(range(rank))
    args = _without_own_dtype((node.args[0], order, *node.args[2:]))
    emit.nodes.append(msgspec.structs.replace(node, op=op, args=args))
    return node.results


def _vector_norm(node: Node, emit: Emitter) -> Replacement | None:
    return unless_equal(node, emit, node.op, _without_own_dtype(node.args))


def _without_own_dtype(args: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """The arguments of a reduction, the last of which need not name the dtype that real numbers keep anyway."""
    value = args[0]
    if isinstance(value, Value) and value.tensor.dtype.is_floating and args[-1] == Token("dtype", value.tensor.dtype):
        return (*args[:-1], None)
    return args


def _fused_multiply_add(node: Node, emit: Emitter) -> Replacement:
    """What Dynamo makes of ``addcmul_`` with a Python number; without one it is a product and a sum, as in eager."""
    x, y, z = node.args
    assert isinstance(x, Value), "the product of two tensors"
    assert isinstance(y, Value | int | float)
    product = Ops(emit).binary("mul", x, y)
    return (emit("aten.add.Tensor", (product, z, 1), node.result.type),)


def _slice_scatter(node: Node, emit: Emitter) -> Replacement | None:
    """One that overwrites everything is a copy of what it writes."""
    target, source = operand(node), operand(node, 1)
    start, step = node.args[3], node.args[5]
    if target.tensor.shape != source.tensor.shape or start not in (None, 0) or step != 1:
        return None
    if source.tensor.dtype != node.result.tensor.dtype:
        source = _cast(source, node.result.tensor.dtype, emit)
    return (emit("aten.clone.default", (source, None), node.result.type),)


def _convert(node: Node, emit: Emitter) -> Replacement | None:
    if logical_same(node):
        return _clone(node, emit)
    args = (node.args[0], Token("dtype", node.result.tensor.dtype), None, None, None, False, None)
    return (emit("aten._to_copy.default", args, node.result.type),)


def _iota(node: Node, emit: Emitter) -> Replacement | None:
    length, start, step = node.args[:3]
    t = node.result.tensor
    if not isinstance(start, int) or not isinstance(step, int):
        return None
    size = length.expr if isinstance(length, DimExpr) else length
    if not isinstance(size, int | str) or isinstance(size, bool):
        return None
    end = shape_argument((dims.add(start, dims.mul(size, step)),))[0]
    args = (start, end, step, Token("dtype", t.dtype), Token("layout", "strided"), Token("device", t.device), False)
    return (emit("aten.arange.start_step", args, node.result.type),)


def _flash_attention(node: Node, emit: Emitter) -> Replacement | None:
    """CPU flash attention as the composite; the scale, where left out, is 1/sqrt(head dimension)."""
    query, key, value, dropout, causal, mask, scale = node.args
    scale = _scale(operand(node), scale)
    if scale is None:
        return None
    emit.nodes.append(
        msgspec.structs.replace(
            node,
            op="nn.scaled_dot_product_attention",
            args=(query, key, value, mask, dropout, causal, scale),
            results=node.results,
        )
    )
    return node.results


def _flash_attention_backward(node: Node, emit: Emitter) -> Replacement | None:
    grad, query, key, value, out, logsumexp, dropout, causal, mask, scale = node.args
    scale = _scale(operand(node, 1), scale)
    if scale is None:
        return None
    emit.nodes.append(
        msgspec.structs.replace(
            node,
            op="nn.scaled_dot_product_attention_backward",
            args=(grad, query, key, value, out, logsumexp, mask, dropout, causal, scale),
        )
    )
    return node.results


def _rnn_layer(node: Node, emit: Emitter) -> Replacement | None:
    """oneDNN's LSTM as the composite, where nothing is kept for a backward and all is of one dtype.

    Without biases it is given zeros.
    """
    *tensors, reverse, batch_sizes, mode, _, layers, has_biases, bidirectional, batch_first, train = node.args
    data, weight_ih, weight_hh, bias_ih, bias_hh, hx, cx = tensors
    form = (batch_sizes, mode, layers, bidirectional, batch_first, train)
    if form != ((), _LSTM, 1, False, False, False) or node.results[3] is not None:
        return None
    biases = (bias_ih, bias_hh) if has_biases else (None, None)
    args = (data, hx, cx, weight_ih, weight_hh, *biases, reverse)
    types = [a.tensor for a in args if isinstance(a, Value)]
    if None in (hx, cx) or any(t.rank != 3 for t in types[:3]) or any(t.dtype != types[0].dtype for t in types):
        return None
    emit.nodes.append(msgspec.structs.replace(node, op="nn.lstm", args=args, results=node.results[:3]))
    return node.results


_LSTM = 2
"""The number of ``mode``, as in ideep's ``rnn_kind``."""


def _scale(query: Value, scale: Argument) -> float | None:
    head = query.tensor.shape[-1]
    if scale is None:
        return float(head**-0.5) if isinstance(head, int) and head > 0 else None
    return float(scale) if isinstance(scale, int | float) else None


_SCALAR_OVERLOADS = {
    f"aten.{op}.Scalar": f"aten.{op}.Tensor"
    for op in [
        "add",
        "sub",
        "mul",
        "div",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "remainder",
        "fmod",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
    ]
} | {
    "aten.div.Scalar_mode": "aten.div.Tensor_mode",
    "aten.true_divide.Tensor": "aten.div.Tensor",
    "aten.true_divide.Scalar": "aten.div.Tensor",
}

_RULES: dict[str, Rule] = {
    **VIEW_RULES,
    **RANDOM_RULES,
    **{op: _renamed(new) for op, new in _SCALAR_OVERLOADS.items()},
    "aten.alias.default": _same,
    "aten.detach.default": _same,
    "aten.lift.default": _same,
    "aten.lift_fresh.default": _same,
    "aten.lift_fresh_copy.default": _clone,
    "aten.clone.default": _clone,
    "aten.contiguous.default": _clone,
    "aten.copy.default": _copy,
    "aten._to_copy.default": _to_copy,
    "prims.convert_element_type.default": _convert,
    "prims.fma.default": _fused_multiply_add,
    "prims.iota.default": _iota,
    "aten.cat.default": _cat,
    "aten.full.default": _full(1),
    "aten.full_like.default": _full(1),
    "aten.scalar_tensor.default": _full(0),
    "aten.zeros.default": _full(None, 0),
    "aten.zeros_like.default": _full(None, 0),
    "aten.ones.default": _full(None, 1),
    "aten.ones_like.default": _full(None, 1),
    "aten.empty.memory_format": _full(None, 0),
    "aten.empty_like.default": _full(None, 0),
    "aten.empty_strided.default": _full(None, 0),
    "aten.empty_permuted.default": _full(None, 0),
    "aten.new_empty.default": _full(None, 0),
    "aten.new_empty_strided.default": _full(None, 0),
    "aten._efficientzerotensor.default": _full(None, 0),
    "aten.mkldnn_rnn_layer.default": _rnn_layer,
    "aten.pow.Tensor_Scalar": _pow_scalar,
    "aten.max.default": _extreme("aten.amax.default"),
    "aten.min.default": _extreme("aten.amin.default"),
    "aten.mean.default": _reduce_all("aten.mean.dim"),
    "aten.sum.default": _reduce_all("aten.sum.dim_IntList"),
    "aten.any.default": _reduce_all("aten.any.dims"),
    "aten.all.default": _reduce_all("aten.all.dims"),
    "aten.mean.dim": _reduce_dims,
    "aten.sum.dim_IntList": _reduce_dims,
    "aten.amax.default": _reduce_dims,
    "aten.amin.default": _reduce_dims,
    "aten.var.correction": _reduce_dims,
    "aten.var_mean.correction": _reduce_dims,
    "aten.slice_scatter.default": _slice_scatter,
    "aten.linalg_vector_norm.default": _vector_norm,
    "aten.any.dim": _reduce_dims,
    "aten.any.dims": _reduce_dims,
    "aten.all.dim": _reduce_dims,
    "aten.all.dims": _reduce_dims,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": _flash_attention,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward.default": _flash_attention_backward,
}
