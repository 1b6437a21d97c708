"""Ops whose results torch leaves open from one call to the next, because several threads write to one place.

On CUDA that is so of many, which add: the list is that of the documentation of
``torch.use_deterministic_algorithms``, what raises under it on CUDA tensors and what behaves otherwise under it. What
such an op computes is compared as at the first call, within its bounds. On the CPU it is so of max_unpool where
channels come last, whose threads share planes.
"""

from __future__ import annotations

from fairlead.ir import Graph, Node, Value, row_major
from fairlead_conformance._device import device_of
from fairlead_conformance._device_names import kind_of

__all__ = ["adds_in_any_order", "left_open", "writes_in_any_order"]

_LISTED = (
    "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d_backward avg_pool2d_backward",
    "avg_pool3d_backward fractional_max_pool2d_backward fractional_max_pool3d_backward adaptive_max_pool3d_backward",
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward max_unpool2d max_unpool3d",
    "upsample_linear1d_backward upsample_bilinear2d_backward upsample_bicubic2d_backward upsample_trilinear3d_backward",
    "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward",
    "_upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward",
    "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward",
    "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward",
    "nll_loss2d_forward _ctc_loss_backward _embedding_bag_backward _embedding_bag_dense_backward",
    "embedding_dense_backward grid_sampler_2d_backward grid_sampler_3d_backward",
    "put index_put index_add index_copy index_reduce scatter scatter_add scatter_reduce bincount histc kthvalue median",
    "cumsum convolution convolution_backward scaled_dot_product_attention_backward segment_reduce",
)

_OPS = frozenset(name for line in _LISTED for name in line.split())


_WRITES = frozenset(("scatter", "put", "index_put", "_unsafe_index_put", "index_copy"))


def writes_in_any_order(graph: Graph) -> bool:
    """Whether it is left open which of two values stays that are written to one place.

    Indices that have changed places may name one twice, where those of a sample do not.
    """
    if kind_of(device_of(graph)) != "cuda":
        return False
    return any(node.op.split(".")[1] in _WRITES for node in graph.walk())


def left_open(graph: Graph) -> bool:
    """Whether several threads write values to one place, any of which may stay."""
    unpools = [node for node in graph.walk() if node.op.startswith("aten.max_unpool")]
    return bool(unpools) and (kind_of(device_of(graph)) == "cuda" or not all(map(_has_planes, unpools)))


def _has_planes(node: Node) -> bool:
    """Whether each plane of what is given lies by itself, and is one thread's."""
    given = node.args[0]
    assert isinstance(given, Value)
    type_ = given.tensor
    return type_.strides is None or type_.strides == row_major(type_.shape)


def adds_in_any_order(graph: Graph) -> bool:
    """Whether two calls with the same inputs may differ in their last bits.

    >>> from fairlead.ir import Builder
    >>> b = Builder()
    >>> _ = b.op("aten.cumsum.default", b.input("f32[3]"), 0)
    >>> adds_in_any_order(b.graph())
    False
    """
    if kind_of(device_of(graph)) != "cuda":
        return False
    return any(node.op.split(".")[1] in _OPS for node in graph.walk())
