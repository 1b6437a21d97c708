"""Which of Inductor's options a graph needs for results that are rounded as eager's are."""

from __future__ import annotations

from typing import Any

from torch._inductor import config as inductor_config

from fairlead.ir import DType, Graph, Node, TensorType, Value

__all__ = ["rounding"]

_HALVES = (DType.f16, DType.bf16)


def rounding(graph: Graph, *, on_cuda: bool) -> dict[str, bool]:
    """The options, by their names."""
    casts = _rounds_by_casts(graph) or (on_cuda and not _has_halves(graph))
    quotients = _quotients_as_eager() if on_cuda and _divides(graph) else {}
    return {**({"emulate_precision_casts": True} if casts else {}), **quotients}


def _quotients_as_eager() -> dict[str, bool]:
    """Have Triton round quotients of float32 as eager does, whatever this release of torch calls that."""
    for name in ("eager_numerics.division_rounding", "emulate_division_rounding", "emulate_divison_rounding"):
        owner, _, last = name.rpartition(".")
        found: Any = inductor_config if not owner else getattr(inductor_config, owner, None)
        if hasattr(found, last):
            return {name: True}
    return {}


def _divides(graph: Graph) -> bool:
    """Whether quotients are among what the graph was captured with, and not but within a norm or a softmax.

    One that is rounded as eager's takes several instructions, in the norms of a ResNet for each pixel.
    """
    return any(name in node.op for node in graph.walk() for name in ("div", "fmod", "reciprocal", "remainder"))


def _rounds_by_casts(graph: Graph) -> bool:
    """Whether a value is rounded to 16 bits and read again, a rounding that Inductor leaves out unless it is told.

    Told so, it rounds between fused ops as well, which costs time: so only those graphs are.
    """
    rounded: set[int] = set()
    for node in graph.walk():
        if _reads_a_wider_number(node):
            return True
        if node.op != "aten._to_copy.default" or not isinstance(given := node.args[0], Value):
            continue
        if given.id in rounded:
            return True
        if node.result.tensor.dtype in _HALVES and given.tensor.dtype.itemsize > node.result.tensor.dtype.itemsize:
            rounded.add(node.result.id)
    return False


def _has_halves(graph: Graph) -> bool:
    """Whether numbers of 16 bits occur; where none do, the option of Inductor's casts says but one thing on CUDA.

    Triton then rounds a product before it is added to something, as torch's kernels do, one after another.
    """
    values = [*(i.value for i in graph.inputs), *(r for n in graph.walk() for r in n.results if r is not None)]
    return any(isinstance(v.type, TensorType) and v.type.dtype in _HALVES for v in values)


def _reads_a_wider_number(node: Node) -> bool:
    """Whether halves on CUDA meet a tensor of one number with more bits, which torch's kernels there round first."""
    if node.op not in _ARITHMETIC or node.result.tensor.dtype not in _HALVES or node.result.tensor.device == "cpu":
        return False
    return any(v.tensor.dtype.is_floating and v.tensor.dtype not in _HALVES for v in node.operands())


_ARITHMETIC = frozenset(f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div"))
