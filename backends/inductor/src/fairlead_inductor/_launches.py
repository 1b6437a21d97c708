"""Kernels of Triton launched without what Inductor looks at before each launch until it knows which of them to launch.

From 2.13 on torch does this itself; before, a step of training waits for it hundreds of times.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from torch.autograd import profiler

__all__ = ["shorten_launches"]

_OBSERVING = ("triton_interpret", "dump_launch_params", "dump_launch_tensors")
"""What has a kernel's launches looked at, or done otherwise."""


def shorten_launches(function: Any) -> int:
    """Have the kernels that generated code has launched be launched at once from now on; how many that are.

    ``function``: the one that the code defines, after a call. What tells of launches, a profiler or torch's debug mode,
    has them all as before.
    """
    code = getattr(function, "__func__", function)
    kernels = [k for k in getattr(code, "__globals__", {}).values() if _is_settled(k)]
    for kernel in kernels:
        kernel.run = _launching(kernel.run, kernel.launchers[0])
    return len(kernels)


def _is_settled(kernel: Any) -> bool:
    """Whether it is a kernel with one way to launch it, which this release of torch does not remember."""
    if not (hasattr(kernel, "launchers") and hasattr(kernel, "run")) or "_cached_launcher" in vars(kernel):
        return False
    tunes = getattr(kernel, "inductor_meta", {}).get("coordinate_descent_tuning", False)
    observed = any(getattr(kernel, name, False) for name in _OBSERVING)
    return len(kernel.launchers) == 1 and not (tunes or observed or kernel.launchers[0].store_cubin)


def _launching(run: Callable[..., Any], launcher: Callable[..., Any]) -> Callable[..., Any]:
    def launch(*args: Any, stream: Any, **others: Any) -> Any:
        if others or profiler._is_profiler_enabled or _debug_mode():
            return run(*args, stream=stream, **others)
        return launcher(*args, stream=stream)

    return launch


def _no_mode() -> None:
    """What older releases, which have no such mode, have on."""


def _active_debug_mode() -> Callable[[], Any]:
    try:
        found: Callable[[], Any] = importlib.import_module("torch.utils._debug_mode").get_active_debug_mode
    except (ImportError, AttributeError):
        return _no_mode
    return found


_debug_mode = _active_debug_mode()
