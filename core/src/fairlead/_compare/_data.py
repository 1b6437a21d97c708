"""What ``fairlead compare`` finds out: the schema of ``--json``, and what the table and the HTML report show.

Units are part of each field's description: seconds, MiB, or a plain ratio.
"""

from __future__ import annotations

import enum
import statistics
from collections.abc import Sequence

import msgspec

from fairlead.ir import DType
from fairlead.placement import Decline

__all__ = [
    "Accuracy",
    "Comparison",
    "FirstCall",
    "Kind",
    "Machine",
    "Memory",
    "PlacementSummary",
    "Report",
    "Row",
    "Settings",
    "Status",
    "Times",
]

SCHEMA = 1
"""The version of the JSON form. It grows by fields with defaults; a removed or changed field makes it 2."""


class Kind(enum.StrEnum):
    """What a row measures: plain PyTorch, a backend of `torch.compile`, one of Fairlead's, or something else."""

    eager = "eager"
    baseline = "baseline"
    backend = "backend"
    other = "other"


class Status(enum.StrEnum):
    """How a row ended. Only ``ok`` has been verified against eager."""

    ok = "ok"
    wrong = "wrong"
    failed = "failed"
    crashed = "crashed"
    timeout = "timeout"
    not_ready = "not ready"


class FirstCall(msgspec.Struct, frozen=True):
    """From handing the module over to the first result, caches empty, the SDK's import included.

    ``wall``: seconds on the clock. ``cpu``: processor seconds of the process and its children.
    """

    wall: float
    cpu: float


class Memory(msgspec.Struct, frozen=True):
    """Resident MiB of the backend's process beyond what it held with the model loaded and not yet called.

    ``peak``: the most during compilation and the first call. ``held``: after it. Compilers that run as child processes
    are not in it.
    """

    peak: float
    held: float


class Times(msgspec.Struct, frozen=True):
    """Steady-state seconds a call: the median and quartiles of all calls, taken in turns with the other rows.

    ``turns`` has the median of each turn, so that ratios can be taken turn by turn. ``cpu`` is processor seconds a
    call.
    """

    median: float
    lower: float
    upper: float
    calls: int
    cpu: float
    turns: tuple[float, ...]

    @classmethod
    def of(cls, turns: Sequence[Sequence[float]], cpu: float) -> Times:
        """From the seconds of each call of each turn, and the processor seconds of all of them."""
        seconds = sorted(second for turn in turns for second in turn)
        lower, median, upper = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else (seconds[0],) * 3
        return cls(median, lower, upper, len(seconds), cpu / len(seconds), tuple(map(statistics.median, turns)))

    def speedup_over(self, other: Times) -> float:
        """How many times faster than ``other``: the median of the ratios within each turn.

        A ratio within a turn does not see the machine drift.

        >>> slow, fast = Times.of([[2.0], [4.0]], 6.0), Times.of([[1.0], [2.0]], 3.0)
        >>> fast.speedup_over(slow)
        2.0
        """
        return statistics.median(theirs / ours for ours, theirs in zip(self.turns, other.turns, strict=True))


class Accuracy(msgspec.Struct, frozen=True):
    """The worst error of any tensor beside eager's own, both against the model in float64.

    An error is the largest absolute difference divided by the largest absolute value of the tensor; a gradient's
    divisor is at least a hundredth of the largest gradient. ``exact`` is False where the model does not run in
    float64: then the reference is eager itself. ``worst`` names the tensor. ``tensors`` and ``cases`` count what was
    compared.
    """

    error: float
    eager: float
    worst: str
    tensors: int
    cases: tuple[str, ...]
    exact: bool = True


class PlacementSummary(msgspec.Struct, frozen=True):
    """Where the nodes of all captured graphs run: ``native`` of ``total`` here, the others as ``declines`` says.

    ``native`` and ``total`` are None for a row that does not tell. ``recompiled`` counts graphs compiled after the
    first call.
    """

    graphs: int = 0
    breaks: int = 0
    recompiled: int = 0
    native: int | None = None
    total: int | None = None
    declines: tuple[Decline, ...] = ()

    @property
    def share(self) -> float | None:
        """The share of nodes that run natively; 1.0 where there are none."""
        if self.native is None or self.total is None:
            return None
        return self.native / self.total if self.total else 1.0


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One backend on one model. ``reason`` is empty where the status is ``ok``; what was not reached is None."""

    name: str
    kind: Kind
    status: Status
    reason: str = ""
    first: FirstCall | None = None
    memory: Memory | None = None
    accuracy: Accuracy | None = None
    placement: PlacementSummary | None = None
    times: Times | None = None
    speedup: float | None = None

    @property
    def key(self) -> str:
        """The label of the row; a Fairlead backend and the compiler that it builds on may share a name."""
        match self.kind:
            case Kind.eager:
                return "PyTorch eager"
            case Kind.baseline:
                return f"torch {self.name}"
        return self.name


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Every row of one model. ``weights``: MiB of parameters and buffers. ``inputs``: their types and shapes."""

    model: str
    weights: float
    inputs: dict[str, str]
    rows: tuple[Row, ...]

    @property
    def verified(self) -> bool:
        """Whether every row that could run was verified."""
        return all(row.status in (Status.ok, Status.not_ready) for row in self.rows)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked.

    ``seconds`` and ``repeat``: each row is timed for so long and at least so often, in ``turns`` turns. ``dtype``: the
    floating-point type of weights and inputs, or none for the model's own.
    """

    backends: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    training: bool = False
    dynamic: bool = False
    fallback: bool = True
    share_weights: bool = False
    threads: int | None = None
    dtype: DType | None = None
    seconds: float = 2.0
    repeat: int = 20
    turns: int = 10
    timeout: float = 600.0


class Machine(msgspec.Struct, frozen=True):
    """Where the numbers come from: they compare with nothing measured elsewhere.

    ``memory``: MiB. ``load``: how many processes wanted a core in the minute before, on average; 0 where unknown.
    """

    processor: str
    cores: int
    memory: float
    system: str
    versions: dict[str, str]
    load: float = 0.0

    @property
    def busy(self) -> bool:
        """Whether others took so much of it that times mean little."""
        return self.load > self.cores / 2


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result. ``date`` is UTC, ISO 8601."""

    schema: int = SCHEMA
    date: str
    machine: Machine
    settings: Settings
    comparisons: tuple[Comparison, ...]

    @property
    def verified(self) -> bool:
        """Whether every row of every model was verified."""
        return all(comparison.verified for comparison in self.comparisons)

    @property
    def all_ready(self) -> bool:
        """Whether every row could be tried."""
        return not any(row.status is Status.not_ready for comparison in self.comparisons for row in comparison.rows)

    def speedups(self) -> list[tuple[str, tuple[float | None, ...], float | None]]:
        """For each row its speed-up on each model, and their geometric mean where it has all of them."""
        names = dict.fromkeys(row.key for comparison in self.comparisons for row in comparison.rows)
        return [(name, values, _geomean(values)) for name in names if (values := self._speedups_of(name))]

    def _speedups_of(self, key: str) -> tuple[float | None, ...]:
        rows = [{row.key: row for row in comparison.rows} for comparison in self.comparisons]
        return tuple(by_key[key].speedup if key in by_key else None for by_key in rows)


def _geomean(values: Sequence[float | None]) -> float | None:
    """Of ratios, the mean is the geometric one; with a gap there is none, because rows would not compare."""
    present = [value for value in values if value is not None]
    return statistics.geometric_mean(present) if present and len(present) == len(values) else None
