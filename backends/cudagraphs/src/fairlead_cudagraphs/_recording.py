"""One run of a graph's kernels, recorded on memory of its own, to be replayed."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter

from fairlead.interpret import Packing, copies, overlaps, overwrite
from fairlead.ir import Node
from fairlead_cudagraphs._loans import Loan
from fairlead_cudagraphs._pool import Pool

__all__ = ["Recording", "once", "recording_on", "room_for"]


class Recording:
    """A CUDA graph, and the tensors that it reads and writes; made within `recording_on` the pool's stream.

    ``inputs`` has what the kernels read: buffers for the inputs at ``copied``, and for the others the caller's own
    tensors, by whose addresses the recording is known. The results at ``lent`` are given out where they are, and no
    other recording may write there: then the recording has a pool of its own. Of others ``together`` tells whether
    their copies may share memory.
    """

    def __init__(
        self,
        module: GraphModule,
        inputs: Sequence[Any],
        pool: Pool,
        *,
        copied: Sequence[int],
        lent: Sequence[int],
        together: bool,
    ) -> None:
        self._pool = pool
        self._copied = tuple(copied)
        self._buffers = [once(inputs[i], inputs[i].stride()) for i in copied]
        self._strides = [inputs[i].stride() for i in copied]
        self._graph: Any = torch.cuda.CUDAGraph()
        state = torch.cuda.get_rng_state(pool.device)
        _Located(module).run(*inputs)  # what is made once, such as handles and plans, is made before
        torch.cuda.set_rng_state(state, pool.device)
        try:
            outputs = _recorded(self._graph, module, inputs, pool, torch.cuda.graph_pool_handle() if lent else None)
        except BaseException:
            pool.repair(state)
            raise
        self._lent = tuple(k for k in lent if outputs[k].device == pool.device)
        self._loan = Loan([outputs[k] for k in self._lent])
        pool.admit(self._loan, self._loan.addresses)
        self._kept = tuple(k for k in range(len(outputs)) if k not in self._lent)
        self._results = [outputs[k] for k in self._kept]
        self._copies = Packing(self._results).copies if together else copies

    @property
    def is_lent(self) -> bool:
        """Whether what it gave out may be read still, and it must not be replayed."""
        return self._loan.is_out

    def replay(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The results for these inputs, in memory of their own but for those that are lent."""
        given = [once(inputs[i], strides) for i, strides in zip(self._copied, self._strides, strict=True)]
        overwrite(self._buffers, given)
        self._graph.replay()
        if not self._lent:
            return self._copies(self._results)
        results = dict(zip(self._kept, self._copies(self._results), strict=True))
        results.update(zip(self._lent, self._loan.give(), strict=True))
        self._pool.lend(self, torch.cuda.current_stream(self._pool.device))
        return [results[k] for k in range(len(results))]


def room_for(shape: Sequence[int], strides: Sequence[int], like: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A buffer with these strides, expanded where they are zero; else a row-major one where elements share a place."""
    own = [1 if step == 0 else size for size, step in zip(shape, strides, strict=True)]
    if overlaps(own, strides):
        return torch.empty(tuple(shape), dtype=like.dtype, device=device)
    return torch.empty_strided(own, tuple(strides), dtype=like.dtype, device=device).expand(tuple(shape))


def once(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The tensor with one element for each place that these strides give, since what is expanded is the same."""
    for dim, step in enumerate(strides):
        if step == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _recorded(
    graph: Any, module: GraphModule, inputs: Sequence[Any], pool: Pool, own: Any | None
) -> Sequence[torch.Tensor]:
    handle = pool.handle if own is None else own
    torch.cuda.synchronize(pool.device)
    with _own_workspaces(), _no_collection():
        graph.capture_begin(pool=handle, capture_error_mode="thread_local")
        try:
            outputs: Sequence[torch.Tensor] = _Located(module).run(*inputs)
        except BaseException:
            with contextlib.suppress(RuntimeError):  # what it says of a recording that failed is known
                graph.capture_end()
            raise
        graph.capture_end()
    return outputs


@contextlib.contextmanager
def recording_on(stream: torch.cuda.Stream) -> Iterator[None]:
    """On the stream, after what is on the current one, which goes on after it; without gradients."""
    current = torch.cuda.current_stream(stream.device)
    stream.wait_stream(current)
    with torch.cuda.stream(stream), torch.no_grad():
        yield
    current.wait_stream(stream)


@contextlib.contextmanager
def _own_workspaces() -> Iterator[None]:
    """Workspaces of cuBLAS that are asked for within are the recording's, and are nobody else's afterwards."""
    forget = getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)
    forget()
    try:
        yield
    finally:
        forget()


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Within, Python frees nothing in cycles: what a tensor of another recording does then ends this one."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


class _Located(Interpreter):
    """Runs a module node by node; an error names the op and the line of the program that it stems from."""

    def run_node(self, n: torch.fx.Node) -> Any:
        try:
            return super().run_node(n)
        except RuntimeError as error:
            node = n.meta.get("node")
            if not isinstance(node, Node):
                raise
            said = f"{error}".strip().splitlines()[0]
            raise RuntimeError(
                f"{node.op} cannot be recorded, at {node.location or 'an unknown line'}: {said}"
            ) from error
