"""Put together again what AOTAutograd and programs take apart: linear layers and root mean square norms."""

from __future__ import annotations

import msgspec

from fairlead.ir import Argument, Graph, Kind, Node, TensorType, Value, dims
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._regions import in_regions
from fairlead.passes._rewrite import Emitter, Replacement, rewrite
from fairlead.passes._rms_norm import RmsNorm

LINEAR = "aten.linear.default"


def recognize_composites(graph: Graph) -> Graph:
    """The graph with ``aten.linear.default`` and ``aten._fused_rms_norm.default`` where it computes them in pieces.

    Before: a canonical graph. After: ``mm(view(x), permute(w))``, with or without a bias and views around it, is one
    node, and so is ``x * rsqrt(mean(x**2) + eps)``, with or without a weight, where nothing else reads the pieces.
    Backward graphs are left alone: their products are not layers.
    """
    if graph.kind is Kind.backward:
        return graph
    graph = in_regions(graph, recognize_composites)
    graph = remove_dead_nodes(rewrite(graph, _Linear(graph)))
    return remove_dead_nodes(rewrite(graph, RmsNorm(graph)))


class _Linear:
    def __init__(self, graph: Graph) -> None:
        self.producers: dict[int, Node] = {}
        self.users = dict(graph.users())

    def __call__(self, node: Node, emit: Emitter) -> Replacement | None:
        self.producers.update((r.id, node) for r in node.results if r is not None)
        replacement = self._rewritten(node, emit)
        if replacement is not None:
            new = emit.nodes[-1]
            self.producers[new.result.id] = new
            self.users[new.result.id] = self.users.get(node.result.id, 0)
        return replacement

    def _rewritten(self, node: Node, emit: Emitter) -> Replacement | None:
        match node:
            case Node(op="aten.mm.default", args=(Value() as x, Value() as w)):
                return self._flat(node, emit, x, w, None)
            case Node(op="aten.addmm.default", args=(Value() as bias, Value() as x, Value() as w, 1 | 1.0, 1 | 1.0)):
                return self._flat(node, emit, x, w, bias)
            case Node(op="aten.view.default", args=(Value() as flat, _)):
                return self._unflattened(node, emit, flat)
        return None

    def _flat(self, node: Node, emit: Emitter, x: Value, w: Value, bias: Value | None) -> Replacement | None:
        transposed = self.producers.get(w.id)
        if transposed is None or (transposed.op, transposed.args[1:]) != ("aten.permute.default", ((1, 0),)):
            return None
        if bias is not None and bias.tensor.shape != node.result.tensor.shape[1:]:
            return None
        args: tuple[Argument, ...] = (x, transposed.args[0], bias)
        return (emit(LINEAR, args, node.result.type),)

    def _unflattened(self, node: Node, emit: Emitter, flat: Value) -> Replacement | None:
        linear = self.producers.get(flat.id)
        if linear is None or linear.op != LINEAR or self.users.get(flat.id) != 1:
            return None
        flattened = self.producers.get(_id(linear.args[0]))
        if flattened is None or flattened.op != "aten.view.default" or not isinstance(flattened.args[0], Value):
            return None
        x = flattened.args[0]
        out, inner = node.result.tensor, linear.result.tensor
        if out.shape != (*x.tensor.shape[:-1], inner.shape[-1]) or not _flattens(x.tensor, flattened.result.tensor):
            return None
        return (emit(LINEAR, (x, *linear.args[1:]), msgspec.structs.replace(out, strides=None)),)


def _flattens(old: TensorType, new: TensorType) -> bool:
    return new.shape == (dims.product(old.shape[:-1]), old.shape[-1])


def _id(arg: Argument) -> int:
    return arg.id if isinstance(arg, Value) else -1
