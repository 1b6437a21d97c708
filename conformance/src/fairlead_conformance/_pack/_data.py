"""What a pack holds of each case: a line of its index, and the graphs with specifications of their inputs."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from fairlead.ir.random import Distribution
from fairlead_conformance._case import Case, Level

__all__ = ["Content", "Drawn", "Entry", "Kept", "Manifest", "Saved", "Specification"]


class Drawn(msgspec.Struct, frozen=True, array_like=True, tag="d"):
    """A tensor drawn anew in each run, salted with its seed.

    ``strides`` where they are not those of the graph input's type, and ``offset`` into the tensor's memory.
    """

    distribution: Distribution
    strides: tuple[int, ...] | None = None
    offset: int = 0


class Kept(msgspec.Struct, frozen=True, array_like=True, tag="k"):
    """A tensor with exactly these elements, row-major and little-endian: indices, boundaries, singular matrices."""

    data: bytes
    strides: tuple[int, ...] | None = None
    offset: int = 0


class Saved(msgspec.Struct, frozen=True, array_like=True, tag="s"):
    """What was kept for a backward graph: this input of the forward graph before it, or else this output."""

    index: int
    is_input: bool = False


Specification: TypeAlias = int | Drawn | Kept | Saved


class Content(msgspec.Struct, frozen=True, array_like=True):
    """A case's module, as `fairlead.ir.to_bytes` writes it, and for each of its graphs the inputs."""

    module: bytes
    inputs: tuple[tuple[Specification, ...], ...]


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A line of the index: a case, and the variants of it that make sense, each with its level.

    The members are those of `Case`; a variant differs from its case in nothing else.
    """

    family: str
    subject: str
    dtype: str
    number: int
    level: Level
    needs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    cost: float = 0.02
    mandatory: bool = False
    variants: tuple[tuple[str, Level], ...] = ()

    @property
    def id(self) -> str:
        return f"{self.family}/{self.subject}/{self.dtype}/s{self.number:03d}"

    def cases(self) -> list[Case]:
        """The case as it is, then its variants."""
        named = [("", self.level), *((f"~{name}", level) for name, level in self.variants)]
        start = self.id
        return [
            Case(
                id=start + suffix,
                level=level,
                needs=self.needs,
                dtypes=self.dtypes,
                ops=self.ops,
                cost=self.cost,
                mandatory=self.mandatory and not suffix,
            )
            for suffix, level in named
        ]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a pack says of itself. ``sha256`` is of its entries' names and contents, however they are compressed.

    ``counts``: by family and level, the cases, variants among them. ``producer``: what it was made with.
    """

    format: str
    version: str
    ir_version: tuple[int, int]
    opset: int
    counts: dict[str, dict[str, int]]
    producer: dict[str, str]
    sha256: str
