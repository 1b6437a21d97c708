"""Where a program ends and its backward begins: two of AOTAutograd's rules, but that views of inputs are not saved.

A backward makes them anew of the inputs themselves, of which it knows what they are: a weight and not its transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch._functorch.config
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch.fx import Graph, GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

__all__ = ["partition", "recomputing"]

_aten = torch.ops.aten

_VIEWS = frozenset(
    {
        _aten.alias.default,
        _aten.detach.default,
        _aten.expand.default,
        _aten.permute.default,
        _aten.squeeze.default,
        _aten.squeeze.dim,
        _aten.squeeze.dims,
        _aten.t.default,
        _aten.transpose.int,
        _aten.unsqueeze.default,
        _aten.view.default,
    }
)
"""Ops whose result shows all elements of what it is a view of: saving that takes no more memory."""

_SHOWN = _VIEWS | {_aten._unsafe_view.default}

_PRODUCTS = frozenset(
    {
        _aten.addmm.default,
        _aten.baddbmm.default,
        _aten.bmm.default,
        _aten.convolution.default,
        _aten.mm.default,
    }
)
"""Ops that read their operands from memory, whoever fuses the rest."""

_LOSSES_BACKWARD = frozenset({_aten.nll_loss_backward.default, _aten.nll_loss2d_backward.default})

_NORMS: dict[Any, tuple[int, int | None]] = {
    _aten.native_batch_norm_backward.default: (2, 7),
    _aten.batch_norm_backward.default: (2, 7),
    _aten.cudnn_batch_norm_backward.default: (2, None),
}
"""Where backwards of batch norms take the weight, and whether they train; their running statistics follow the weight.

They read those in evaluation alone. One without a weight tells by them which dtype its other statistics have.
"""


def partition(joint: GraphModule, inputs: Sequence[Any], *, num_fwd_outputs: int, **how: Any) -> tuple[Any, Any]:
    """AOTAutograd's ``partition_fn``: all that the backward reads is saved. Changes ``joint`` in place."""
    _forget_running_statistics(joint.graph)
    _forget_biases(joint.graph)
    _copy_views(joint.graph, num_fwd_outputs)
    joint.recompile()
    return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **how)


def recomputing(joint: GraphModule, inputs: Sequence[Any], *, num_fwd_outputs: int, **how: Any) -> tuple[Any, Any]:
    """AOTAutograd's ``partition_fn`` for compilers that fuse: what is cheap is computed anew, by torch's own rule.

    Changes ``joint`` in place. That rule never computes a ``detach`` anew, which is the value itself here; and it takes
    a copy that a product reads, as of attention's transposed heads, for one that is fused, which none can be. Of the
    logarithm of a softmax it would save all, so that is written out: two numbers of each row are enough.
    """
    _forget_running_statistics(joint.graph)
    _forget_biases(joint.graph)
    for op in (_aten.alias.default, _aten.detach.default):
        for node in joint.graph.find_nodes(op="call_function", target=op):
            node.replace_all_uses_with(node.args[0], delete_user_cb=lambda user: user.op != "output")
    for node in joint.graph.find_nodes(op="call_function", target=_aten._log_softmax.default):
        _write_out_log_softmax(node)
    for node in joint.graph.find_nodes(op="call_function", target=_aten.clone.default):
        if "recompute" not in node.meta and _is_read_from_memory(node) and not _shows_input(node.args[0]):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    config: Any = torch._functorch.config
    with config.patch(recompute_views=True):
        return min_cut_rematerialization_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **how)


def _write_out_log_softmax(node: Node) -> None:
    """Put the largest values and the sums of exponentials in its place, and in that of its gradient.

    As torch decomposes them, of float32 and wider. The gradient of a loss that reads it reads its shape alone.
    """
    x, dim, _ = node.args
    assert isinstance(x, Node), "the logits"
    assert isinstance(dim, int), "its dimension"
    given, made = x.meta["val"], node.meta["val"]
    is_wide = given.dtype == made.dtype and given.dtype.itemsize >= 4
    has_rows = given.dim() > 0 and isinstance(given.shape[dim], int) and given.shape[dim] > 0
    if not is_wide or not has_rows or "recompute" in node.meta:
        return
    with node.graph.inserting_before(node):
        shifted = _made(node, _aten.sub.Tensor, x, _made(node, _aten.amax.default, x, [dim], True))
        total = _made(node, _aten.sum.dim_IntList, _made(node, _aten.exp.default, shifted), [dim], True)
        found = _made(node, _aten.sub.Tensor, shifted, _made(node, _aten.log.default, total))
    node.replace_all_uses_with(found)
    node.graph.erase_node(node)
    for user in list(found.users):
        with node.graph.inserting_before(user):
            if user.target is _aten._log_softmax_backward_data.default:
                gradient: Any = user.args[0]
                rows = _made(user, _aten.sum.dim_IntList, gradient, [dim], True)
                spread = _made(user, _aten.mul.Tensor, _made(user, _aten.exp.default, found), rows)
                user.replace_all_uses_with(_made(user, _aten.sub.Tensor, gradient, spread))
                node.graph.erase_node(user)
            elif user.target in _LOSSES_BACKWARD and all(isinstance(n, int) for n in made.shape):
                how = {"dtype": made.dtype, "device": made.device}
                user.update_arg(1, _made(user, _aten.full.default, list(made.shape), 0.0, **how))


def _made(origin: Node, op: Any, *args: Any, **how: Any) -> Node:
    """A node of what ``origin`` was, with what is known of it."""
    made = origin.graph.call_function(op, args, how)
    with origin.meta["val"].fake_mode:
        value = op(*(a.meta["val"] if isinstance(a, Node) else a for a in args), **how)
    made.meta = {**origin.meta, "val": value}
    made.meta.pop("tensor_meta", None)
    return made


def _is_read_from_memory(node: Node) -> bool:
    """Whether a product reads the value, or a view of it: then it is made in the forward, and need not be again."""
    return any(
        user.target in _PRODUCTS or (user.target in _SHOWN and _is_read_from_memory(user)) for user in node.users
    )


def _shows_input(node: Any) -> bool:
    """Whether the value is an input, or a view of one."""
    while node.op == "call_function" and node.target in _SHOWN:
        node = node.args[0]
    return bool(node.op == "placeholder")


def _forget_running_statistics(graph: Graph) -> None:
    """Take from batch norms' backwards the running statistics that they do not read, or they would be saved for them.

    AOTAutograd passes what the forward made of them, a tensor each.
    """
    for op, (weight, training) in _NORMS.items():
        for node in graph.find_nodes(op="call_function", target=op):
            if node.args[weight] is not None and (training is None or node.args[training] is True):
                node.update_arg(weight + 1, None)
                node.update_arg(weight + 2, None)


def _forget_biases(graph: Graph) -> None:
    """Have layer norms' backwards take the weight, which they read, for the bias, or that would be saved for them.

    Of the bias they read but its shape and dtype.
    """
    for node in graph.find_nodes(op="call_function", target=_aten.native_layer_norm_backward.default):
        weight, bias = node.args[5:7]
        if isinstance(weight, Node) and isinstance(bias, Node) and _are_alike(weight.meta["val"], bias.meta["val"]):
            node.update_arg(6, weight)


def _are_alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    return (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device)


def _copy_views(graph: Graph, count: int) -> None:
    """Give what only the backward computes views of inputs of its own."""
    last, after = _forward_end(graph, count)
    views = _views_of_inputs(graph)
    users = {view: [user for user in view.users if user in after and user.op != "output"] for view in views}
    wanted: set[Node] = set()
    for view in reversed(views):
        if view not in after and (users[view] or not wanted.isdisjoint(view.users)):
            wanted.add(view)
    copies: dict[Node, Node] = {}
    for view in views:
        if view in wanted:
            with graph.inserting_after(last):
                last = copies[view] = graph.node_copy(view, lambda node: copies.get(node, node))
            last.meta.pop("partitioner_tag", None)
            for user in users[view]:
                user.replace_input_with(view, last)


def _forward_end(graph: Graph, count: int) -> tuple[Node, set[Node]]:
    """The last node that a forward of ``count`` outputs computes, and the nodes after it."""
    outputs: Any = graph.output_node().args[0]
    forward = _ancestors(outputs[:count])
    nodes = list(graph.nodes)
    last = max(
        place
        for place, node in enumerate(nodes)
        if node in forward or node.op == "placeholder" or node.meta.get("partitioner_tag") == "is_forward"
    )
    return nodes[last], set(nodes[last + 1 :])


def _views_of_inputs(graph: Graph) -> list[Node]:
    """Nodes that are views of an input, or of a view of one, in their order."""
    found = set(graph.find_nodes(op="placeholder"))
    views = []
    for node in graph.nodes:
        if node.target in _VIEWS and node.args[0] in found and "recompute" not in node.meta:
            found.add(node)
            views.append(node)
    return views


def _ancestors(nodes: Sequence[Any]) -> set[Node]:
    """The nodes, and all that they are computed from."""
    found: set[Node] = set()
    left = [node for node in nodes if isinstance(node, Node)]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found
