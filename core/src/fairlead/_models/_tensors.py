"""The tensors inside a nested value, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["tensors_of", "with_tensors"]


def tensors_of(value: Any) -> dict[str, torch.Tensor]:
    """Every tensor in ``value`` by its path: ``"0"``, ``"logits"``, ``"cache.layers.0.keys"``.

    It looks into mappings, sequences and, because caches are plain objects, the attributes of anything else that has
    some. A lone tensor is called ``"0"``.
    """
    return dict(_walk(value, "", frozenset()))


def _walk(value: Any, path: str, above: frozenset[int]) -> Iterator[tuple[str, torch.Tensor]]:
    import torch

    if isinstance(value, torch.Tensor):
        yield path or "0", value
        return
    if id(value) in above:
        return
    for key, child in _children(value):
        yield from _walk(child, _join(path, key), above | {id(value)})


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(key), child) for key, child in value.items())
    elif isinstance(value, list | tuple):
        yield from ((str(index), child) for index, child in enumerate(value))
    elif not isinstance(value, type) and hasattr(value, "__dict__"):
        yield from vars(value).items()


def with_tensors(value: Any, tensors: dict[str, torch.Tensor], path: str = "") -> Any:
    """A copy of nested dicts, lists and tuples with each tensor replaced by the one for its path."""
    import torch

    if isinstance(value, torch.Tensor):
        return tensors[path or "0"]
    if isinstance(value, dict):
        return {key: with_tensors(child, tensors, _join(path, str(key))) for key, child in value.items()}
    if isinstance(value, list | tuple):
        children = [with_tensors(child, tensors, _join(path, str(index))) for index, child in enumerate(value)]
        return type(value)(*children) if hasattr(value, "_fields") else type(value)(children)
    return value


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
