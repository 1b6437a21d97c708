"""What ``FAIRLEAD_DEBUG`` has written of each program: graphs, where they ran, and what backends made of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fairlead.ir as ir
from fairlead._messages import cause
from fairlead.backend import Executable, Readable, Refittable
from fairlead.ir import Graph
from fairlead.partition import Part
from fairlead.placement import GraphPlacement, NodePlacement

if TYPE_CHECKING:
    import torch

_log = logging.getLogger("fairlead.debug")


def folder() -> Path | None:
    """The folder that ``FAIRLEAD_DEBUG`` names, or None."""
    named = os.environ.get("FAIRLEAD_DEBUG", "").strip()
    return Path(named) if named else None


def write_graph(captured: Graph, prepared: Graph, parts: tuple[Part, ...], placement: GraphPlacement) -> None:
    """The graph as captured and after the passes, each Part, and the placement, in a folder of their own."""
    if folder() is None:
        return
    files = {f"{part.graph.name}.fir.txt": ir.to_text(part.graph) for part in parts}
    files |= {"captured.fir.txt": ir.to_text(captured), "prepared.fir.txt": ir.to_text(prepared)}
    files["placement.txt"] = "".join(map(_line, placement.nodes))
    _write(_home(captured), files)


def shown(captured: Graph, part: Part, executable: Executable) -> Executable:
    """The executable; where it is `Readable` and somebody wants to see it, one that writes what it was made into."""
    if folder() is None or not isinstance(executable, Readable):
        return executable
    kind = _RefittableShown if isinstance(executable, Refittable) else _Shown
    return kind(_home(captured), part, executable)


class _Shown:
    """An executable that is written after its first call, as some compile then. All else is the executable's own."""

    def __init__(self, home: str, part: Part, executable: Executable) -> None:
        self._executable = executable
        self._home = home
        self._part = part
        self._written = False

    @property
    def baked(self) -> frozenset[int]:
        return self._executable.baked

    @property
    def fresh_outputs(self) -> bool:
        return self._executable.fresh_outputs

    def __getattr__(self, name: str) -> Any:
        """What an executable may say beside what it has to, such as ``takes_parameters``."""
        return getattr(self._executable, name)

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        results = self._executable(inputs)
        if not self._written:
            self._written = True
            self._write()
        return results

    def _write(self) -> None:
        assert isinstance(self._executable, Readable)
        name, backend = self._part.graph.name, self._part.backend
        try:
            files = self._executable.readable()
        except Exception as error:  # the SDK's: what was to help must not break the program
            _log.warning("%s shows nothing of %s: %s", backend, name, cause(error))
            return
        _write(self._home, {f"{name}.{file}": text for file, text in files.items()})


class _RefittableShown(_Shown):
    """Has in its class the method by which `isinstance` knows a `Refittable`."""

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        assert isinstance(self._executable, Refittable)
        self._executable.refit(constants)


def _line(node: NodePlacement) -> str:
    reason, location = f": {node.reason}" if node.reason else "", f"  at {node.location}" if node.location else ""
    return f"{node.backend:<12} {node.op}  ({node.why}{reason}){location}\n"


def _home(graph: Graph) -> str:
    """Programs in one process, and others, have graphs of one name."""
    return f"{graph.name}-{ir.fingerprint(graph)[:12]}"


def _write(home: str, files: Mapping[str, str]) -> None:
    root = folder()
    if root is None:  # it was unset meanwhile
        return
    try:
        (root / home).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (root / home / name).write_text(text, "utf-8")
    except OSError as error:
        _log.warning("could not write %s: %s", root / home, error)
