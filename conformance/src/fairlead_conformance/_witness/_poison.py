"""ATen's kernels for the ops of a graph, replaced for the whole process by ones that tell on who calls them.

A dispatch mode sees calls of its own thread, and backends can turn it off. A kernel in the dispatcher's table is
reached from any thread, from TorchScript and from C++ alike. What this cannot see: calls of ``at::native`` functions
that go past the dispatcher, kernels that a vendor compiled in from elsewhere, and other processes.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch

from fairlead.ir import Graph
from fairlead_conformance._device_names import KEYS
from fairlead_conformance._witness._relatives import relatives

__all__ = ["BOUNDARY", "Poisoned", "kernels", "poisoned"]

BOUNDARY = frozenset(
    (
        "_assert_async",
        "_copy_from",
        "_copy_from_and_resize",
        "_local_scalar_dense",
        "_nested_tensor_from_mask",
        "_pin_memory",
        "_reshape_alias",
        "_to_copy",
        "_unsafe_view",
        "alias",
        "as_strided",
        "as_strided_",
        "clone",
        "contiguous",
        "copy",
        "copy_",
        "detach",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "expand",
        "expand_as",
        "fill",
        "fill_",
        "flatten",
        "is_contiguous",
        "item",
        "lift_fresh",
        "new_empty",
        "new_empty_strided",
        "permute",
        "pin_memory",
        "reshape",
        "resize_",
        "resolve_conj",
        "resolve_neg",
        "select",
        "set_",
        "size",
        "slice",
        "squeeze",
        "stride",
        "t",
        "to",
        "transpose",
        "unflatten",
        "unsqueeze",
        "view",
        "view_as",
        "view_as_complex",
        "view_as_real",
        "zero_",
    )
)
"""What glue between a runtime and torch does: memory, copies, views, assertions. It is free, and computes nothing."""


class Poisoned(RuntimeError):
    """What a poisoned kernel raises."""


@functools.cache
def _overloads() -> dict[str, tuple[str, ...]]:
    """The names of ATen's operators that kernels can be registered for, by the name without the overload."""
    found: dict[str, list[str]] = {}
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        if namespace == "aten":
            found.setdefault(rest.partition(".")[0], []).append(rest)
    return {base: tuple(names) for base, names in found.items()}


@functools.cache
def _whole() -> tuple[str, ...]:
    return tuple(name for base, names in _overloads().items() if base not in BOUNDARY for name in names)


def kernels(graph: Graph, *, all_ops: bool = False) -> tuple[str, ...]:
    """The overloads to poison for a graph: of each op that computes all, with in-place and ``out`` ones.

    So are those of ops that compute the same by another name, as ``addmm`` does for ``linear``. ``all_ops``: every
    operator of ATen that computes, which takes a tenth of a second.
    """
    if all_ops:
        return _whole()
    bases = {base for node in graph.walk() for base in relatives(node.op)} - BOUNDARY
    table = _overloads()
    return tuple(name for base in sorted(bases) for name in (*table.get(base, ()), *table.get(f"{base}_", ())))


@contextlib.contextmanager
def poisoned(names: Collection[str], hits: list[str], kind: str = "cpu") -> Iterator[None]:
    """Within, each of these kernels raises `Poisoned`, whoever calls it, and is added to ``hits``.

    Those of the CPU are, where work that a device is lent for would be done unseen, and those of the ``kind`` of
    device that is judged.
    """
    keys = dict.fromkeys((KEYS["cpu"], KEYS[kind]))
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():  # torch warns once of every kernel that is replaced
            warnings.simplefilter("ignore")
            for name in names:
                for key in keys:
                    library.impl(name, _kernel(name, hits), key, allow_override=True)
        yield
    finally:
        library._destroy()


def _kernel(name: str, hits: list[str]) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        hits.append(name)
        raise Poisoned(f"aten::{name} was called while a backend ran that does not declare it")

    return kernel
