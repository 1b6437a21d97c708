"""Root mean square norms, which programs write out: ``x * rsqrt(mean(x**2) + eps)``, and times a weight."""

from __future__ import annotations

from fairlead.ir import Argument, DType, Graph, Node, Value
from fairlead.passes._rewrite import Emitter, Replacement

RMS_NORM = "aten._fused_rms_norm.default"


class RmsNorm:
    """The rule that puts one node in place of those of a norm whose parts nothing else reads.

    Norms of reduced precision are written in float32, between conversions. What is written in f16 or bf16 rounds after
    each step, which the composite does not, and stays.
    """

    def __init__(self, graph: Graph) -> None:
        self._producers: dict[int, Node] = {}
        self._users = dict(graph.users())

    def __call__(self, node: Node, emit: Emitter) -> Replacement | None:
        self._producers.update((r.id, node) for r in node.results if r is not None)
        if node.op != "aten.mul.Tensor" or not all(isinstance(a, Value) for a in node.args):
            return None
        new = self._weighted(node, emit) or self._normalized(node, emit)
        if new is None:
            return None
        self._producers[new.id] = emit.nodes[-1]
        self._users[new.id] = self._users.get(node.result.id, 0)
        return (new,)

    def _weighted(self, node: Node, emit: Emitter) -> Value | None:
        for y, weight in (node.args, node.args[::-1]):
            norm = self._only(y, RMS_NORM)
            if norm is None or norm.args[2] is not None or not isinstance(weight, Value):
                continue
            x, shape, _, eps = norm.args
            same = node.result.tensor.dtype is weight.tensor.dtype and weight.tensor.shape == shape
            if same and node.result.tensor.shape == y.tensor.shape:  # type: ignore[union-attr]
                types = node.result.type, norm.results[1].type  # type: ignore[union-attr]
                return emit.many(RMS_NORM, (x, shape, weight, eps), types)[0]
        return None

    def _normalized(self, node: Node, emit: Emitter) -> Value | None:
        for x, root in (node.args, node.args[::-1]):
            rsqrt = self._only(root, "aten.rsqrt.default")
            added = self._only(rsqrt.args[0], "aten.add.Tensor") if rsqrt else None
            mean = self._only(added.args[0], "aten.mean.dim") if added else None
            if rsqrt is None or added is None or mean is None or not isinstance(x, Value):
                continue
            shape, eps = _normalized_shape(x, mean), added.args[1]
            if shape and isinstance(eps, int | float) and added.args[2] == 1 and self._is_square(mean.args[0], x):
                return emit.many(RMS_NORM, (x, shape, None, eps), (node.result.type, rsqrt.result.type))[0]
        return None

    def _is_square(self, arg: Argument, x: Value) -> bool:
        square = self._only(arg, "aten.mul.Tensor") or self._only(arg, "aten.pow.Tensor_Scalar")
        return square is not None and square.args in ((x, x), (x, 2))

    def _only(self, arg: Argument, op: str) -> Node | None:
        """The node of this op that computes an argument that nothing else reads."""
        node = self._producers.get(arg.id) if isinstance(arg, Value) and self._users.get(arg.id) == 1 else None
        return node if node is not None and node.op == op else None


def _normalized_shape(x: Value, mean: Node) -> tuple[int, ...]:
    """The sizes of the trailing dimensions that a mean goes over; empty where it is another kind of mean."""
    axes = mean.args[1]
    if x.tensor.dtype not in (DType.f32, DType.f64) or not isinstance(axes, tuple) or mean.args[2:] != (True, None):
        return ()
    shape = x.tensor.shape[x.tensor.rank - len(axes) :]
    trailing = axes == tuple(range(x.tensor.rank - len(axes), x.tensor.rank))
    return tuple(d for d in shape if isinstance(d, int)) if trailing and all(isinstance(d, int) for d in shape) else ()
