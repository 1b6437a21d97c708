"""The contract of a backend: what a vendor implements, once, against the IR.

A backend is an object behind an entry point of the group ``fairlead.backends``. Importing its module must not import
the SDK. Its wheel ships ``capabilities.toml`` beside the module, which is read without importing anything. This
module is a contract between wheels that are released apart: a member is added here only with a default, and none is
removed while `API_VERSION` stands.
"""

from __future__ import annotations

import enum
import importlib.util
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from fairlead.errors import BackendContractError
from fairlead.ir import Graph, Node

if TYPE_CHECKING:
    import torch

__all__ = [
    "ACCEPTED_API_VERSIONS",
    "API_VERSION",
    "Backend",
    "Capabilities",
    "Executable",
    "Level",
    "NoOptions",
    "Options",
    "Precision",
    "Probe",
    "Readable",
    "Refittable",
    "Relaxable",
    "Selective",
    "Serializable",
    "Support",
    "Tensors",
]

API_VERSION = 1
"""The version of this contract. A core accepts backends of this version and of the one before."""

ACCEPTED_API_VERSIONS = (API_VERSION, API_VERSION - 1) if API_VERSION > 1 else (API_VERSION,)

Precision: TypeAlias = "Literal['highest', 'high', 'medium']"
"""The least precision that a caller accepts of what is computed of float32, as ``torch.set_float32_matmul_precision``.

``highest``: float32. ``high``: products may round their operands to the 10 bits of fraction that TF32 has, or split
each into parts that have more. ``medium``: results may be those of bfloat16. Sums within a product are float32 in each.
"""

Tensors: TypeAlias = "Sequence[torch.Tensor]"


class Level(enum.StrEnum):
    """How much of a node a backend can run: all of it, some of it (the reason says what), not yet, or never."""

    FULL = "full"
    PARTIAL = "partial"
    PLANNED = "planned"
    IMPOSSIBLE = "impossible"


class Support(msgspec.Struct, frozen=True):
    """A backend's verdict on one node. Only ``FULL`` places the node; everything else declines it, for ``reason``.

    >>> Support.no("complex numbers").accepted
    False
    """

    level: Level
    reason: str = ""

    @property
    def accepted(self) -> bool:
        return self.level is Level.FULL

    @classmethod
    def yes(cls) -> Support:
        """The node runs here, natively and correctly."""
        return _YES

    @classmethod
    def no(cls, reason: str, level: Level = Level.IMPOSSIBLE) -> Support:
        """The node does not run here, for a reason that a user can read."""
        return cls(level, reason)


_YES = Support(Level.FULL)


class Probe(msgspec.Struct, frozen=True):
    """Whether the backend is usable on this machine.

    ``devices``: the torch device types that it found, such as ``cpu``. ``versions`` (of SDKs and drivers) enter every
    cache key.
    """

    ok: bool
    reason: str = ""
    devices: tuple[str, ...] = ()
    versions: dict[str, str] = {}


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a backend says of itself, statically.

    Core decomposes, hoists and offers weights by it; conformance checks it.

    ``devices``: torch device types it runs on. ``dtypes``: the element types of the IR it takes. ``keeps``: composite
    ops that it lowers whole (``"*"`` for all); core decomposes the others. ``bakes_constants``: it gains from knowing
    the weights when it compiles, so core hoists what only they determine and watches them. ``rng``: it draws random
    numbers itself. ``extern_aten``: torch kernels that it borrows. ``builds_on``: other compilers that it wraps;
    ``torch-inductor`` is torch's own. ``ops``: what it promises to run, as op and dtypes (none for all that it takes);
    conformance holds it to that. ``numerics``: where its numbers are less than the dtype promises: ``tf32`` (products
    of float32 in 19 bits), ``ftz`` (numbers of f32 and bf16 below 2**-126 taken for zero, read or written).
    ``saves_views``: a result that is a view of another is no copy; core then leaves it the views of what it computes,
    where what a forward saves, or a single output, shows that memory. ``training_steps``: it takes forward, backward
    and the optimizer's update as one graph, for `fairlead.compile_step`. ``recomputes``: it fuses what is cheap to
    compute with what reads it, so a backward better computes such values anew than has them saved. ``own_threads``: on
    a CPU it computes on threads of its own, which torch's are in the way of where the two take turns; core leaves
    the whole graph to others where torch has much of it. ``recurrences``: what `fairlead.passes.unroll_recurrences`
    does for it beyond steps in order: ``in_blocks``, ``long_rows``.
    """

    devices: tuple[str, ...]
    dtypes: tuple[str, ...]
    training: bool = False
    dynamic_shapes: bool = False
    bakes_constants: bool = False
    rng: bool = False
    keeps: tuple[str, ...] = ("*",)
    extern_aten: tuple[str, ...] = ()
    builds_on: tuple[str, ...] = ()
    ops: dict[str, tuple[str, ...]] = {}
    numerics: tuple[str, ...] = ()
    saves_views: bool = False
    training_steps: bool = False
    recomputes: bool = False
    own_threads: bool = False
    recurrences: tuple[Literal["in_blocks", "long_rows"], ...] = ()

    @classmethod
    def of_package(cls, package: str) -> Capabilities:
        """Read ``capabilities.toml`` of a top-level package, without importing it.

        Raises `BackendContractError` where the file is missing or says something that this class does not know.
        """
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise _bad_capabilities(package, "the package is not installed")
        path = Path(next(iter(spec.submodule_search_locations))) / "capabilities.toml"
        try:
            return msgspec.convert(tomllib.loads(path.read_text("utf-8")), cls)
        except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise _bad_capabilities(str(path), str(error)) from error


def _bad_capabilities(where: str, why: str) -> BackendContractError:
    return BackendContractError(
        f"no valid capabilities.toml: {why}",
        where=where,
        next="ship capabilities.toml beside the backend's __init__.py; see docs/backends.md",
    )


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a backend: subclass it with typed fields that all have defaults."""


class NoOptions(Options, frozen=True):
    """The options of a backend that has none."""


class Executable(Protocol):
    """What ``compile`` returns: the graph, ready to run.

    ``baked``: indices of graph inputs whose constants the executable holds; they are not passed to it.
    ``fresh_outputs``: whether each call returns memory that no later call writes; where it is False, core copies.
    An executable may also say ``takes_parameters = True``: then inputs come as the caller has them, and may require
    gradients; core detaches each of them at each call otherwise. And ``writes = True``: then it may write an output
    with the role `mutation` to the input that it belongs to, and return that input for it. What such a call raises is
    shown to the caller, since nothing else could run the Part anew, unless it is a `CompileError`, which says that
    nothing was written. And ``steady_strides = True``: then its results have the same strides in each call with inputs
    of the same sizes, and core looks at them once.
    """

    @property
    def baked(self) -> frozenset[int]: ...

    @property
    def fresh_outputs(self) -> bool: ...

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        """Run once. Must be safe to call from several threads.

        ``inputs`` has one entry for each graph input that is not baked, in order: a `torch.Tensor` of the declared
        dtype (detached, any strides, on the declared device), or an ``int`` for a scalar input. Core passes a list that
        is the executable's own: emptied as it goes, it lets go of tensors that nobody else holds, such as those that a
        forward saved, once they are read. What is raised after that is shown to the caller, as nothing else could run
        the Part, but in an executable's first call, in which core holds them too. It returns one tensor
        for each graph output, row-major contiguous or not, as torch tensors or anything with ``__dlpack__``. Inputs
        are never written to, but as ``writes`` says.
        """
        ...


@runtime_checkable
class Refittable(Protocol):
    """An executable that takes new values for its baked constants without being compiled again."""

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Use these values, by graph input, from the next call on."""
        ...


@runtime_checkable
class Readable(Protocol):
    """An executable that shows what it was made into, for ``FAIRLEAD_DEBUG``."""

    def readable(self) -> Mapping[str, str]:
        """By file name, as text: the vendor's model, code or layers. Asked after the first call; may be slow."""
        ...


O_contra = TypeVar("O_contra", bound=Options, contravariant=True)


class Backend(Protocol[O_contra]):
    """A compiler or runtime behind a name."""

    @property
    def name(self) -> str:
        """The name of the entry point."""
        ...

    @property
    def api_version(self) -> int:
        """The `API_VERSION` that it was written for."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def options_type(self) -> type[Options]: ...

    def probe(self) -> Probe:
        """Whether it is usable here. Cheap, and never raises: a missing SDK is a ``Probe(ok=False, reason=...)``."""
        ...

    def supports(self, node: Node, /) -> Support:
        """Whether it runs this node. A pure function of the node."""
        ...

    def compile(self, graph: Graph, options: O_contra, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """Make the graph runnable.

        Every node of ``graph`` was accepted by `supports`; its outputs are distinct values that nodes compute.
        ``constants`` has the tensors, by input index, that stay the same until core says otherwise (by
        `Refittable.refit`, or by compiling again); an executable that wants them baked in names them in ``baked`` and
        keeps them by reference. Called outside of fake-tensor mode, with gradients off.
        """
        ...


@runtime_checkable
class Selective(Protocol):
    """A backend that leaves graphs to others which it could run, because they are faster there."""

    def declines_graph(self, graph: Graph, /) -> str | None:
        """Why others should run the whole graph, such as "slower than eager here"; None where they should not.

        A pure function of the graph, asked before `Backend.supports` where the caller allows a fallback.
        """
        ...


@runtime_checkable
class Relaxable(Protocol):
    """A backend that computes float32 in fewer bits where the caller accepts that. One that is not stays exact."""

    def options_for_precision(self, options: Any, precision: Precision, /) -> Any:
        """The options with which nothing has less precision than this, and what may have less is fast.

        ``options`` are those of the caller. Core raises where the answer changes one that the caller has given.
        """
        ...


@runtime_checkable
class Serializable(Protocol):
    """A backend whose executables can be stored."""

    def dump(self, executable: Executable, /) -> bytes:
        """The executable as bytes, without its weights."""
        ...

    def load(self, data: bytes, graph: Graph, options: Any, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """The executable that `dump` stored; raises where another SDK version or machine wrote it."""
        ...
