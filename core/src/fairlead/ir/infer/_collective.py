"""Functional collectives: what each of the processes of a group gets."""

from __future__ import annotations

from fairlead.ir._groups import ProcessGroup
from fairlead.ir._types import TensorType
from fairlead.ir.dims import add, mul
from fairlead.ir.infer._rule import Dims, Results, Rule, require
from fairlead.ir.infer._sizes import floordiv, like, replaced, with_shape


def same(tensor: TensorType) -> Results:
    """The same."""
    return like(tensor)


def reduced(input: TensorType, reduce_op: str, group_name: str) -> Results:  # noqa: A002 - the schema's name
    """The same shape: each element is combined."""
    return like(input)


def all_reduced(inputs: tuple[TensorType, ...], reduce_op: str, group_name: str) -> Results:
    """The same shapes."""
    return tuple(map(like, inputs))


def broadcast(input: TensorType, src: int, group_name: str) -> Results:  # noqa: A002 - the schema's name
    """The same shape."""
    return like(input)


def gathered(input: TensorType, group_size: int, group_name: str) -> Results:  # noqa: A002 - the schema's name
    """What each process has, one after the other along the first dimension."""
    return _gathered(input, group_size)


def all_gathered(inputs: tuple[TensorType, ...], group_size: int, group_name: str) -> Results:
    """What each process has, one after the other along the first dimension."""
    return tuple(_gathered(x, group_size) for x in inputs)


def _gathered(x: TensorType, count: int) -> TensorType:
    require(x.rank > 0, "a number has no first dimension")
    return with_shape(x, replaced(x.shape, 0, mul(x.shape[0], count)))


def scattered(input: TensorType, reduce_op: str, group_size: int, group_name: str) -> Results:  # noqa: A002 - the schema's name
    """A part of the combined elements, cut along the first dimension."""
    return _scattered(input, group_size)


def all_scattered(inputs: tuple[TensorType, ...], reduce_op: str, group_size: int, group_name: str) -> Results:
    """A part of the combined elements, cut along the first dimension."""
    return tuple(_scattered(x, group_size) for x in inputs)


def _scattered(x: TensorType, count: int) -> TensorType:
    require(x.rank > 0, "a number has no first dimension")
    return with_shape(x, replaced(x.shape, 0, floordiv(x.shape[0], count)))


def exchanged(
    input: TensorType,  # noqa: A002 - the schema's name
    output_split_sizes: Dims,
    input_split_sizes: Dims,
    group_name: str,
) -> Results:
    """Parts from each process, one after the other along the first dimension."""
    require(input.rank > 0, "a number has no first dimension")
    return (
        with_shape(input, replaced(input.shape, 0, add(0, *output_split_sizes))) if output_split_sizes else like(input)
    )


def resharded(input: TensorType, gather_dim: int, shard_dim: int, group_name: str) -> Results:  # noqa: A002 - the schema's name
    """The pieces of all processes put together along one dimension, and a piece along the other."""
    size = ProcessGroup.from_text(group_name).size
    require(size is not None, "the group's size is not known")
    assert size is not None
    whole = replaced(input.shape, gather_dim, mul(input.shape[gather_dim], size))
    return with_shape(input, replaced(whole, shard_dim, floordiv(whole[shard_dim], size)))


_NAMESPACE = "_c10d_functional"

RULES: dict[str, Rule] = {
    f"{_NAMESPACE}.wait_tensor.default": same,
    f"{_NAMESPACE}.all_reduce.default": reduced,
    f"{_NAMESPACE}.all_reduce_coalesced.default": all_reduced,
    f"{_NAMESPACE}.broadcast.default": broadcast,
    f"{_NAMESPACE}.all_gather_into_tensor.default": gathered,
    f"{_NAMESPACE}.all_gather_into_tensor_coalesced.default": all_gathered,
    f"{_NAMESPACE}.reduce_scatter_tensor.default": scattered,
    f"{_NAMESPACE}.reduce_scatter_tensor_coalesced.default": all_scattered,
    f"{_NAMESPACE}.all_to_all_single.default": exchanged,
    "_dtensor.shard_dim_alltoall.default": resharded,
}
