"""What a case is: its stable name, the level that it first counts for, and what it needs of a backend."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Case", "Level"]


class Level(enum.IntEnum):
    """How much of the suite a claim covers; each level has the cases of those below it.

    ``L0`` the backend loads, ``L1`` core inference, ``L2`` inference in full, ``L3`` training, ``L4`` hardened.
    """

    L0 = 0
    L1 = 1
    L2 = 2
    L3 = 3
    L4 = 4


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One case. ``id`` is ``family/subject/dtype/sNNN~variant``, stable for as long as the suite exists.

    ``level``: the first level that has it. ``needs``: capabilities without which the backend declines it, by the names
    of `fairlead.backend.Capabilities`' flags, and ``dtypes`` of the IR likewise. ``ops``: ops of the IR that it is
    about. ``cost``: expected seconds, by which shards are balanced and timeouts lengthened. ``mandatory``: a backend
    that claims the level may not decline it, nor list it as a known failure.

    >>> Case(id="graph/passthrough/f32/s000", level=Level.L1).family
    'graph'
    """

    id: str
    level: Level
    needs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    cost: float = 0.05
    mandatory: bool = False

    @property
    def family(self) -> str:
        return self.id.partition("/")[0]

    @property
    def subject(self) -> str:
        """The op, program or property that it is about."""
        return self.id.split("/")[1]

    @property
    def variant(self) -> str:
        """What was done to the sample, such as ``transposed``; empty for the sample as it is."""
        return self.id.partition("~")[2]
