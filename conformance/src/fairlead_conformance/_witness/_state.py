"""What of a process a backend must leave as it found it."""

from __future__ import annotations

import gc
import hashlib
import locale
import os
import pickle
import random
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy
import torch

__all__ = ["State", "changed", "state"]

State: TypeAlias = Mapping[str, Any]


def state(*, random_numbers: bool = True) -> State:
    """The state by name, in values that can be compared. ``random_numbers``: with the state of every generator."""
    taken = {name: read() for name, read in _READERS.items()}
    if random_numbers:
        taken.update((name, read()) for name, read in _GENERATORS.items())
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        taken.update((name, read()) for name, read in _OF_CUDA.items())
        if random_numbers:
            taken["CUDA's random states"] = _digest([s.numpy().tobytes() for s in torch.cuda.get_rng_state_all()])
    return taken


def changed(before: State, after: State, *, imported: bool = False) -> str:
    """The names of what differs, as a text; empty where nothing does.

    ``imported``: modules were loaded in between, some of which set variables and filters for themselves.
    """
    return ", ".join(
        _told(name, before[name], after[name])
        for name in before
        if before[name] != after[name] and not (imported and name in _SET_BY_IMPORTS)
    )


def _told(name: str, before: Any, after: Any) -> str:
    if isinstance(before, dict):
        return f"{name} ({', '.join(sorted(k for k in {*before, *after} if before.get(k) != after.get(k)))})"
    return f"{name} ({before} became {after})"


def _flushes_denormals() -> bool:
    """Whether this thread takes numbers that are nearly zero for zero."""
    return sys.float_info.min / 2 == 0.0


def _digest(value: object) -> str:
    return hashlib.blake2b(pickle.dumps(value), digest_size=8).hexdigest()


_SET_BY_IMPORTS = frozenset(("environment", "warnings", "signals", "recursion limit"))

_READERS: Mapping[str, Callable[[], Any]] = {
    "default dtype": torch.get_default_dtype,
    "default device": torch.get_default_device,
    "grad mode": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "autocast": lambda: torch.is_autocast_enabled("cpu"),
    "threads": torch.get_num_threads,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "deterministic warnings": torch.is_deterministic_algorithms_warn_only_enabled,
    "float32 precision": torch.get_float32_matmul_precision,
    "oneDNN": lambda: torch.backends.mkldnn.enabled,
    "cuDNN benchmark": lambda: torch.backends.cudnn.benchmark,
    "denormals": _flushes_denormals,
    # A name that begins with an underscore is a note of a library to itself.
    "environment": lambda: {k: v for k, v in os.environ.items() if not k.startswith("_")},
    "working folder": os.getcwd,
    "locale": lambda: locale.setlocale(locale.LC_ALL),
    "warnings": lambda: _digest([str(f) for f in warnings.filters]),
    "NumPy errors": lambda: str(numpy.geterr()),
    "signals": lambda: {s.name: id(signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM)},
    "recursion limit": sys.getrecursionlimit,
    "garbage collection": gc.isenabled,
    "streams": lambda: (id(sys.stdout), id(sys.stderr)),
    "excepthook": lambda: id(sys.excepthook),
}

_OF_CUDA: Mapping[str, Callable[[], Any]] = {
    "autocast on CUDA": lambda: torch.is_autocast_enabled("cuda"),
    "current device": torch.cuda.current_device,
    "current stream": lambda: torch.cuda.current_stream().stream_id,
    "TF32 of convolutions": lambda: torch.backends.cudnn.allow_tf32,
    "cuDNN": lambda: torch.backends.cudnn.enabled,
}
"""Asked where CUDA is in use: asking would start it."""

_GENERATORS: Mapping[str, Callable[[], Any]] = {
    "Python's random state": lambda: _digest(random.getstate()),
    "NumPy's random state": lambda: _digest(numpy.random.get_state()),
    "torch's random state": lambda: _digest(torch.get_rng_state().numpy().tobytes()),
}
