"""What the measuring process and its workers say to each other: one JSON object a line."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from fairlead._compare._data import Accuracy, FirstCall, Memory, PlacementSummary, Status
from fairlead.ir import DType

__all__ = [
    "Failed",
    "First",
    "Load",
    "Loaded",
    "Measured",
    "Refer",
    "Referred",
    "Reply",
    "Request",
    "Subject",
    "Timed",
    "Turn",
    "Verified",
    "Verify",
]


class Subject(msgspec.Struct, frozen=True):
    """What a worker measures: ``via`` is ``eager``, ``torch`` (`torch.compile`), ``fairlead`` or ``path``.

    For ``path``, ``name`` is ``module:function`` of a function that takes a `Model` and returns the callable to
    measure.
    """

    name: str
    via: str


class Load(msgspec.Struct, frozen=True, tag=True):
    """Load the model. The first worker writes its weights and inputs to ``folder``; the others take them from there."""

    subject: Subject
    spec: str
    folder: str
    training: bool
    dynamic: bool
    fallback: bool
    threads: int | None
    share_weights: bool = False
    dtype: DType | None = None


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The model is in memory: MiB of its weights, and its inputs as text."""

    weights: float
    inputs: dict[str, str]


class First(msgspec.Struct, frozen=True, tag=True):
    """Compile and call once."""


class Measured(msgspec.Struct, frozen=True, tag=True):
    """What the first call took."""

    first: FirstCall
    memory: Memory | None


class Refer(msgspec.Struct, frozen=True, tag=True):
    """Write what eager and float64 give for each case to the folder."""


class Referred(msgspec.Struct, frozen=True, tag=True):
    """The cases that were written."""

    cases: tuple[str, ...]


class Verify(msgspec.Struct, frozen=True, tag=True):
    """Run every one of these cases and compare."""

    cases: tuple[str, ...]


class Verified(msgspec.Struct, frozen=True, tag=True):
    """The verdict, and where the nodes went."""

    status: Status
    reason: str
    accuracy: Accuracy | None
    placement: PlacementSummary


class Turn(msgspec.Struct, frozen=True, tag=True):
    """Time calls for ``seconds``, at least ``calls`` of them."""

    seconds: float
    calls: int


class Timed(msgspec.Struct, frozen=True, tag=True):
    """Seconds of each call, and processor seconds of all."""

    seconds: tuple[float, ...]
    cpu: float


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The request raised.

    ``code`` is that of a `fairlead.FairleadError`, or empty for anything else; then ``what`` has the text.
    """

    code: str
    what: str
    where: str = ""
    next: str = ""


Request: TypeAlias = Load | First | Refer | Verify | Turn
Reply: TypeAlias = Loaded | Measured | Referred | Verified | Timed | Failed
