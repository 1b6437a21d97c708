"""What a call may not change: the state of the process that other code depends on."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Mapping
from typing import Any

import torch

from fairlead_conformance._observation import Failed
from fairlead_conformance._status import Status

__all__ = ["process_state", "same_state"]

_TORCHS = ("TORCH", "TRITON")
"""Variables in which torch itself notes where its caches are, when anything is compiled."""


def process_state() -> Mapping[str, Any]:
    """Everything watched, by what it is called in a report. The state of torch's generator is not among it."""
    return {
        "the default dtype": torch.get_default_dtype(),
        "the default device": str(torch.get_default_device()),
        "the number of threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "the grad mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "the precision of float32": torch.get_float32_matmul_precision(),
        "denormals": (torch.tensor(1e-310, dtype=torch.float64) / 2).item() != 0.0,
        "the random state of Python": hash(random.getstate()),
        "the environment": {name: value for name, value in os.environ.items() if not name.startswith(_TORCHS)},
        "the working directory": os.getcwd(),
        "the filters of warnings": len(warnings.filters),
    }


def same_state(before: Mapping[str, Any]) -> None:
    """Raise `Failed` where something is not as it was."""
    after = process_state()
    changed = [name for name, value in before.items() if after[name] != value]
    if changed:
        name = changed[0]
        detail = f"{', '.join(changed)} changed" + ("" if len(str(after[name])) > 80 else f" to {after[name]}")
        raise Failed(Status.FAIL_STATE, "process-state", detail)
