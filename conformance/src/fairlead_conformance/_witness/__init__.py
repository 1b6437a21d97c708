"""The witness: who computes while a backend runs.

A backend that quietly hands its work back to torch is right about every value. So ATen's kernels for the graph's ops
are poisoned while it runs (`_poison`), torch's compilers have tripwires (`_tripwires`), and other processes are heard
of (`_audit`). Inputs are new at every call, so that no result can be kept for later. Each part says what it cannot
see.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from fairlead.backend import Capabilities
from fairlead.ir import Graph
from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._status import Status
from fairlead_conformance._witness._audit import listen
from fairlead_conformance._witness._poison import kernels, poisoned
from fairlead_conformance._witness._relatives import relatives
from fairlead_conformance._witness._state import State, changed, state
from fairlead_conformance._witness._tripwires import TORCH_COMPILER, tripwires

__all__ = ["State", "Witness", "changed", "relatives", "state"]


class Witness:
    """Watches one executable for a graph, on a ``kind`` of device.

    ``thorough``: poison every kernel of ATen, not only the graph's.
    """

    def __init__(self, graph: Graph, capabilities: Capabilities, kind: str = "cpu", *, thorough: bool = False) -> None:
        self._graph = graph
        self._kind = kind
        self._wraps_torch = TORCH_COMPILER in capabilities.builds_on
        borrowed = {name for kernel in capabilities.extern_aten for name in (_name(kernel), *relatives(kernel))}
        every = kernels(graph, all_ops=thorough and "*" not in borrowed)
        self._lent = tuple(k for k in every if "*" in borrowed or _name(k) in borrowed)
        self._forbidden = tuple(k for k in every if k not in set(self._lent))
        self.kernels: list[str] = []
        self.compilers: list[str] = []
        self.processes: list[str] = []

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Around ``compile``: compilers are watched; processes and torch's kernels are allowed."""
        with tripwires(self.compilers):
            yield

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Around all calls; nothing but the backend may compute within."""
        with tripwires(self.compilers), poisoned(self._forbidden, self.kernels, self._kind):
            yield

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """Around a call with shapes that one was made with before, so that nothing is left to be compiled."""
        with listen(self.processes):
            yield

    def borrowed(self, call: Callable[[], object]) -> set[str]:
        """The kernels that the backend declares and does use: each is taken away until ``call`` asks for no more."""
        found: set[str] = set()
        while lent := [k for k in self._lent if _name(k) not in found]:
            hits: list[str] = []
            with (
                poisoned(lent, hits, self._kind),
                contextlib.suppress(Exception),
            ):
                call()
            if not hits:
                break
            found.update(map(_name, hits))
        return found

    def check(self) -> None:
        """Raise `Failed` where somebody else has computed."""
        compilers = [] if self._wraps_torch else self.compilers
        for check, what in (("kernels", self.kernels), ("compilers", compilers), ("processes", self.processes)):
            if what:
                names = ", ".join(sorted(set(what))[:5])
                raise Failed(Status.FAIL_FALLBACK, check, f"undeclared, while the backend ran: {names}")

    def note(self, seen: Observation, borrowed: set[str]) -> None:
        """Write down which ops the backend ran itself."""
        seen.extern.update(f"aten.{name}" for name in borrowed)
        own = {node.op for node in self._graph.walk()}
        seen.native.update(op for op in own if _name(op) not in borrowed)


def _name(kernel: str) -> str:
    """``mm`` of ``aten.mm.default``, ``aten::mm.out`` and ``mm_``."""
    rest = kernel.removeprefix("aten::").removeprefix("aten.")
    name = rest.partition(".")[0]
    return name.removesuffix("_") or name
