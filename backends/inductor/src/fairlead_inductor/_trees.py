"""Torch's CUDA graph trees, as Inductor's modes ``reduce-overhead`` and ``max-autotune`` use them."""

from __future__ import annotations

import functools
import operator
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._inductor import compile_fx
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.utils import align_inputs_from_check_idxs, clone_preserve_strides
from torch.utils._ordered_set import OrderedSet

from fairlead.interpret import Packing, copies
from fairlead.ir import Graph, Kind, Role
from fairlead_inductor._patched import in_this_thread

__all__ = [
    "Aligned",
    "Kept",
    "Recordings",
    "admit_thread",
    "compiler_on_cuda",
    "records",
    "without_looks_at_addresses",
]

_ALIGNMENT = 16
"""Bytes, of which Inductor's kernels take addresses to be multiples."""


def records(config: Mapping[str, Any], devices: set[str]) -> bool:
    """Whether code for these devices, compiled with this configuration, is recorded and replayed.

    What it returns lies in memory that the next replay writes.

    >>> records({"triton.cudagraphs": True}, {"cuda"}), records({"triton.cudagraphs": True}, {"cpu"})
    (True, False)
    """
    return bool(config.get("triton.cudagraphs")) and "cuda" in devices


class Aligned:
    """Inputs of a graph, of which those are copied that lie at odd addresses: code is generated for even ones.

    ``places``: those of tensors on a device among ``count`` inputs. Addresses are looked at in each call, as weights
    are exchanged, and others may be views; by one comparison where all are those of the call before, as those of
    weights mostly are. Torch's own look at them takes an odd one in the first call for what the code was generated for.
    """

    def __init__(self, count: int, places: Sequence[int]) -> None:
        self._places = sorted(places)
        self._seen: list[int | None] = [0] * count
        """By place the addresses that were found good last; one that is good stays so, whatever comes to lie there."""

    def have_stayed(self, inputs: list[Any]) -> bool:
        """Whether all lie where those lay that were seen to last, at addresses that are good."""
        return bool(torch._C._tensors_data_ptrs_at_indices_equal(inputs, self._seen, self._places))

    def see_to(self, inputs: list[Any], *, keep: bool = True) -> None:
        """Put copies in the place of those from whose addresses kernels cannot read many bytes at once.

        ``keep``: take those that lie here the next time for ones that have stayed.
        """
        addresses = [inputs[i].data_ptr() for i in self._places]
        if functools.reduce(operator.or_, addresses, 0) % _ALIGNMENT:
            addresses = [_move(inputs, i) for i in self._places]
        if not keep:
            return
        seen = self._seen.copy()
        for place, address in zip(self._places, addresses, strict=True):
            seen[place] = address
        self._seen = seen


def _move(inputs: list[Any], place: int) -> int:
    """The address of the input; 0 where it was an odd one, and a copy is put in the input's place."""
    address: int = inputs[place].data_ptr()
    if address % _ALIGNMENT:
        inputs[place] = clone_preserve_strides(inputs[place])
        return 0
    return address


def compiler_on_cuda(graph: Graph, stay: Sequence[int]) -> Callable[..., Any]:
    """Inductor's own ``inner_compile``, told what it reads off Dynamo's and AOTAutograd's records otherwise.

    Inputs that ``stay`` are read where they are; others are copied into a recording.
    """
    told = {
        "static_input_idxs": tuple(stay),
        "is_inference": graph.kind is Kind.inference,
        "is_backward": graph.kind is Kind.backward,
    }
    return lambda module, examples, **how: compile_fx_inner(module, examples, **{**how, **told})


class Kept:
    """Results of replays, of which those that a caller may keep are copied out of their memory.

    What a forward saves stays where it is: no new replay begins before the backward has read it, nor before what is
    written to inputs has been. Gradients come and go together. ``written``: results that are inputs.
    """

    def __init__(self, graph: Graph, written: Collection[int]) -> None:
        stays = {Role.saved, Role.mutation} if graph.kind is Kind.forward else set[Role]()
        left = [k for k in range(len(graph.outputs)) if k not in written]
        self._copied = [k for k in left if graph.outputs[k].role not in stays]
        self._together = graph.kind is Kind.backward
        results = list(graph.output_values())
        self._is_row_major = [results[k].tensor.strides is None for k in self._copied]
        self._is_fixed = not graph.symbols
        self._packing: Packing | None = None

    def __call__(self, results: Sequence[Any]) -> list[Any]:
        found = list(results)
        given = [found[k] for k in self._copied]
        for k, copy in zip(self._copied, self._copies(given), strict=True):
            found[k] = copy
        return found

    def _copies(self, tensors: Sequence[Any]) -> Sequence[Any]:
        if not self._together:
            return copies(tensors)
        packing = self._packing or Packing(tensors, self._is_row_major)
        if self._is_fixed:
            self._packing = packing
        return packing.copies(tensors)


def admit_thread() -> None:
    """Give this thread a table of recordings, which only the thread that imported torch's module has before 2.13."""
    from torch._inductor import cudagraph_trees

    names = ("tree_manager_containers", "tree_manager_locks")
    local = cudagraph_trees.local
    if hasattr(local, names[0]) or torch._C._is_key_in_tls(names[0]):
        return
    tables: tuple[dict[int, Any], ...] = ({}, defaultdict(threading.Lock))
    for name, table in zip(names, tables, strict=True):
        setattr(local, name, table)
        torch._C._stash_obj_in_tls(name, table)


class Recordings:
    """What is recorded of a graph of fixed sizes on CUDA devices alone, by code that sees to its inputs' addresses.

    That is when it runs, to be recorded or because it cannot be: a recording reads each input where it did, or where
    torch copies it to, which torch makes sure of before each replay. What is left beside recordings are kernels of
    torch's own, which take any address.
    """

    def __init__(self) -> None:
        self.made = False
        """Whether torch found that it can record what was compiled."""

    def within(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """``inner``, an ``inner_compile`` of Inductor's, for such code; for what this thread compiles."""

        def cudagraphify(found: Callable[..., Any]) -> Callable[..., Any]:
            def made(model: Callable[[list[Any]], Any], *args: Any, **how: Any) -> Any:
                self.made = True
                return found(_aligning(model, how.get("mutated_input_idxs", ())), *args, **how)

            return made

        def compiler(*args: Any, **how: Any) -> Any:
            with in_this_thread(compile_fx, "cudagraphify", cudagraphify):
                return inner(*args, **how)

        return compiler


def _aligning(model: Callable[[list[Any]], Any], written: Collection[int]) -> Callable[[list[Any]], Any]:
    """The code, called with copies of inputs at odd addresses, which are copied back where it writes them."""

    def run(inputs: list[Any]) -> Any:
        tensors = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
        return align_inputs_from_check_idxs(model, tensors, OrderedSet(written))(inputs)

    return run


def without_looks_at_addresses() -> AbstractContextManager[None]:
    """Have what this thread records look at no address of its inputs in each replay: that is done elsewhere.

    Torch looks at each that it was not told to stay, one after another: at all that a backward was saved.
    """
    from torch._inductor import cudagraph_trees

    return in_this_thread(cudagraph_trees, "get_input_idxs_to_check", lambda found: lambda *args: ())
