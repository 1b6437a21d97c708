"""Every call of TensorRT's SDK: parser, builder, refitter and runtime.

``tensorrt`` from 10.13 on, ``tensorrt`` 11 and ``tensorrt_rtx`` have one interface in Python. Where they differ:

- Networks are strongly typed. Version 11 knows no others, and takes the flag that 10 needs for it.
- `ComputeCapability` is ``tensorrt_rtx`` alone. It builds for devices that are not there; ``tensorrt`` times kernels on
  the one that is.
- ``tensorrt_rtx`` compiles kernels once more where it runs, and keeps those in a runtime cache; what ``tensorrt`` has
  timed while it built is kept in a timing cache.
- Without a driver ``tensorrt_rtx`` (1.4 to 1.7) builds nothing that can be refitted, and reads no engine back.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["FLAVOURS", "Built", "Loaded", "Range", "Sdk", "Settings", "TensorRTError", "installed", "sdk_of"]

FLAVOURS = ("tensorrt", "tensorrt_rtx")

_FORGETS_BIASES = ("11.3.",)
"""Releases whose refittable engines may leave out the bias of a product, by NVIDIA's own notes on 11.3.0."""


_INNER = re.compile(r"API Usage Error \(\w+: (.*?)\. In ")
"""What a layer refuses, within what the parser says about that."""


class TensorRTError(RuntimeError):
    """What TensorRT refused, in its own words."""


@dataclass(frozen=True, slots=True)
class Range:
    """The sizes of one input, or, where ``is_value``, its numbers: the smallest, those built for, and the largest."""

    smallest: tuple[int, ...]
    best: tuple[int, ...]
    largest: tuple[int, ...]
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """How an engine is built; ``timing`` is what earlier builds have measured."""

    tf32: bool = False
    refit: bool = False
    compute_capabilities: tuple[str, ...] = ()
    workspace: int = 0
    optimization: int | None = None
    timing: bytes = b""


@dataclass(frozen=True, slots=True)
class Built:
    """An engine as bytes, what the builder said while making it, and which weights it knows by name."""

    plan: bytes
    said: tuple[str, ...]
    named: frozenset[str]
    timing: bytes


def installed() -> tuple[str, ...]:
    """The flavours whose wheels are here, in order of preference."""
    return tuple(name for name in FLAVOURS if importlib.util.find_spec(name) is not None)


@functools.cache
def sdk_of(flavour: str) -> Sdk:
    """A flavour of the SDK, imported once; ``auto`` is the first that is installed.

    Raises `TensorRTError` where it is missing, and whatever a broken wheel raises.
    """
    names = installed() if flavour == "auto" else (flavour,)
    if not names or importlib.util.find_spec(names[0]) is None:
        raise TensorRTError("TensorRT is not installed: pip install tensorrt, or tensorrt_rtx for RTX devices")
    return Sdk(importlib.import_module(names[0]))


class Sdk:
    """One flavour of TensorRT. Builds wait for each other: the SDK keeps one journal for the whole process."""

    def __init__(self, module: Any) -> None:
        self.name: str = module.__name__
        self.version: str = module.__version__
        self.is_rtx = self.name == "tensorrt_rtx"
        self._trt = module
        self._journal = _journal(module)
        self._turn = threading.Lock()

    @property
    def refits_rightly(self) -> bool:
        """Whether a refittable engine of this release computes what another does."""
        return self.is_rtx or not self.version.startswith(_FORGETS_BIASES)

    def runs_on(self, major: int, minor: int) -> bool:
        """Whether engines run on a device of this compute capability.

        ``tensorrt_rtx`` builds for others (1.7 does for 9.0), and reads the engine back on those it names and on what
        comes after the newest alone. ``tensorrt`` says so for itself.
        """
        if not self.is_rtx:
            return True
        known = [_capability(name) for name in self._trt.ComputeCapability.__members__ if name.startswith("SM")]
        return (major, minor) in known or (major, minor) > max(known)

    def refusal(self, model: bytes) -> str | None:
        """Why the parser does not take an ONNX model, in its own words, or None where it does."""
        with self._turn:
            try:
                self._parsed(self._builder(), model, {})
            except TensorRTError as error:
                return str(error)
        return None

    def build(
        self, model: bytes, weights: Mapping[str, torch.Tensor], ranges: Mapping[str, Range], how: Settings
    ) -> Built:
        """An engine of an ONNX model whose initializers are contiguous tensors in host memory.

        ``ranges`` has each input of dynamic shape. Raises `TensorRTError`.
        """
        with self._turn:
            builder = self._builder()
            network, parser = self._parsed(builder, model, weights)
            named = frozenset(name for name in weights if network.mark_weights_refittable(name))
            for name in named:
                network.unmark_weights_refittable(name)
            config = self._config(builder, how)
            if ranges:
                config.add_optimization_profile(self._profile(builder, ranges))
            cache = None if self.is_rtx else config.create_timing_cache(how.timing)
            if cache is not None:  # one of another device is refused, and what it would save is timed again
                config.set_timing_cache(cache, ignore_mismatch=False)
            plan = builder.build_serialized_network(network, config)
            if plan is None:
                raise self._error("the builder made no engine")
            del parser  # until here it held the weights that the network refers to
            said = tuple(text for _, text in self._journal.lines)
            return Built(bytes(plan), said, named, b"" if cache is None else bytes(cache.serialize()))

    def load(self, plan: bytes, cache: bytes = b"") -> Loaded:
        """An engine on the current device. ``cache`` is what `Loaded.cache` gave. Raises `TensorRTError`."""
        with self._turn:
            self._journal.lines.clear()
            runtime = self._trt.Runtime(self._journal)
            engine = runtime.deserialize_cuda_engine(plan)
            if engine is None:
                raise self._error("the engine cannot be read back")
        return Loaded(self, runtime, engine, cache)

    def refit(self, engine: Any, weights: Mapping[str, torch.Tensor]) -> bool:
        """Give an engine these contiguous tensors of its device; False where one is unknown, refused or missing.

        What the builder has folded away has no name any more, and would silently stay what it was.
        """
        trt = self._trt
        with self._turn:
            refitter = trt.Refitter(engine, self._journal)
            if not set(weights) <= set(refitter.get_all_weights()):
                return False
            for name, tensor in weights.items():
                given = trt.Weights(refitter.get_weights_prototype(name).dtype, tensor.data_ptr(), tensor.numel())
                if not refitter.set_named_weights(name, given, trt.TensorLocation.DEVICE):
                    return False
            return not refitter.get_missing_weights() and bool(refitter.refit_cuda_engine())

    def runtime_config(self, engine: Any, cache: bytes) -> Any:
        """How contexts are made: those of ``tensorrt_rtx`` share a runtime cache; None for ``tensorrt``."""
        if not self.is_rtx:
            return None
        config = engine.create_runtime_config()
        kept = config.create_runtime_cache()
        if cache:
            kept.deserialize(cache)  # one of another device or driver is refused, and stays empty
        config.set_runtime_cache(kept)
        return config

    def without_weights(self, engine: Any) -> bytes:
        """A refittable engine as bytes, without its weights."""
        flags = self._trt.SerializationFlag
        config = engine.create_serialization_config()
        config.set_flag(flags.EXCLUDE_WEIGHTS)
        if (stays := getattr(flags, "INCLUDE_REFIT", None)) is not None:  # from 10.14 on; before, it stays by itself
            config.set_flag(stays)
        return bytes(engine.serialize_with_config(config))

    def in_host_memory(self, engine: Any, name: str) -> bool:
        """Whether an input or output of an engine is a number that the host reads."""
        return bool(engine.get_tensor_location(name) == self._trt.TensorLocation.HOST)

    def _builder(self) -> Any:
        self._journal.lines.clear()
        return self._made(self._trt.Builder(self._journal), "there is no builder")

    def _parsed(self, builder: Any, model: bytes, weights: Mapping[str, torch.Tensor]) -> tuple[Any, Any]:
        """The network of a model, and the parser, which holds its weights."""
        trt = self._trt
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        parser = trt.OnnxParser(network, self._journal)
        given = parser.load_model_proto(model) and all(
            parser.load_initializer(name, tensor.data_ptr(), tensor.nbytes) for name, tensor in weights.items()
        )
        if given and parser.parse_model_proto():
            return network, parser
        errors = [parser.get_error(i) for i in range(parser.num_errors)]
        if not errors:
            raise self._error("the parser refuses the model")
        raise TensorRTError("; ".join(dict.fromkeys(map(_refused, errors))))

    def _config(self, builder: Any, how: Settings) -> Any:
        trt = self._trt
        config = builder.create_builder_config()
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        if not how.tf32:
            config.clear_flag(trt.BuilderFlag.TF32)
        config.set_flag(trt.BuilderFlag.STRICT_NANS)
        if how.refit:
            config.set_flag(trt.BuilderFlag.REFIT)
        if how.workspace:
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, how.workspace << 20)
        if how.optimization is not None:
            config.builder_optimization_level = how.optimization
        if how.compute_capabilities:
            self._target(config, how.compute_capabilities)
        return config

    def _target(self, config: Any, capabilities: tuple[str, ...]) -> None:
        if not self.is_rtx:
            raise TensorRTError(
                "only tensorrt_rtx builds for compute capabilities; tensorrt builds for the device here"
            )
        known = self._trt.ComputeCapability.__members__
        config.num_compute_capabilities = len(capabilities)
        for place, capability in enumerate(capabilities):
            member = known.get(f"SM{capability.replace('.', '')}")
            if member is None:
                found = ", ".join("{}.{}".format(*_capability(n)) for n in known if n.startswith("SM"))
                raise TensorRTError(f"{self.name} {self.version} does not build for {capability}, but for {found}")
            config.set_compute_capability(member, place)

    def _profile(self, builder: Any, ranges: Mapping[str, Range]) -> Any:
        profile = builder.create_optimization_profile()
        for name, given in ranges.items():
            put = profile.set_shape_input if given.is_value else profile.set_shape
            put(name, given.smallest, given.best, given.largest)
        return profile

    def _made(self, made: Any, what: str) -> Any:
        if made is None:
            raise self._error(what)
        return made

    def _error(self, what: str) -> TensorRTError:
        worst = self._trt.ILogger.Severity.ERROR
        said = [_one_line(text) for severity, text in self._journal.lines if int(severity) <= int(worst)]
        return TensorRTError(f"{what}: {'; '.join(dict.fromkeys(said)) or 'it does not say why'}")


class Loaded:
    """An engine on a device."""

    def __init__(self, sdk: Sdk, runtime: Any, engine: Any, cache: bytes) -> None:
        self.engine = engine
        self.is_refittable: bool = engine.refittable
        self._sdk = sdk
        self._runtime = runtime  # the engine needs it as long as it lives
        self._config = sdk.runtime_config(engine, cache)

    def context(self) -> Any:
        """A new execution context, for one call at a time. Raises `TensorRTError` where there is no memory for it."""
        given = () if self._config is None else (self._config,)
        context = self.engine.create_execution_context(*given)
        if context is None:
            raise TensorRTError("no execution context could be made: is there memory left on the device?")
        return context

    def refit(self, weights: Mapping[str, torch.Tensor]) -> bool:
        """Take these weights, by name; False where that fails, and the engine is of no use any more."""
        return self._sdk.refit(self.engine, weights)

    def in_host_memory(self, name: str) -> bool:
        """Whether an input or an output is a number that the host reads."""
        return self._sdk.in_host_memory(self.engine, name)

    def without_weights(self) -> bytes:
        """The engine as bytes, to be loaded and refitted."""
        return self._sdk.without_weights(self.engine)

    def cache(self) -> bytes:
        """What ``tensorrt_rtx`` has compiled for this device while it ran; nothing for ``tensorrt``."""
        return b"" if self._config is None else bytes(self._config.get_runtime_cache().serialize())


def _capability(name: str) -> tuple[int, int]:
    """The numbers of a member such as ``SM120``."""
    return int(name[2:-1]), int(name[-1])


def _journal(trt: Any) -> Any:
    class Journal(trt.ILogger):  # type: ignore[misc]
        """Keeps what the SDK says: for an error's text, and for the account of what was built."""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.lines: deque[tuple[Any, str]] = deque(maxlen=16384)

        def log(self, severity: Any, msg: str) -> None:
            self.lines.append((severity, msg))

    return Journal()


def _refused(error: Any) -> str:
    """What the parser says of a node; of an op that it does not know at all it says "false"."""
    said, op = _one_line(error.desc()), error.node_operator()
    if said == "false":
        return f"no {op}"
    inner = _INNER.search(said)
    said = said if inner is None else inner[1]
    return f"{op}: {said}" if op else said


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
