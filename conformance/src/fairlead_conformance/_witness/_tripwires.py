"""Whether another compiler was asked: torch's own, by its front doors, and by the counters that it keeps.

A backend may have taken a reference to a function before it was replaced, and a counter can be set back; both at once
takes intent. What this cannot see: compilers that are not torch's.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["TORCH_COMPILER", "tripwires"]

TORCH_COMPILER = "torch-inductor"
"""What a backend that wraps torch's compiler declares in ``builds_on``."""

_DOORS = (
    ("torch", "compile"),
    ("torch._inductor.compile_fx", "compile_fx"),
    ("torch._inductor.compile_fx", "compile_fx_inner"),
    ("torch._inductor", "compile"),
    ("torch._inductor", "standalone_compile"),
    ("torch._dynamo", "optimize"),
)


@contextlib.contextmanager
def tripwires(tripped: list[str]) -> Iterator[None]:
    """Within, a call of torch's compiler from anywhere is added to ``tripped``, and goes on."""
    replaced = [
        (sys.modules[module], name, getattr(sys.modules[module], name))
        for module, name in _DOORS
        if module in sys.modules and hasattr(sys.modules[module], name)
    ]
    before = _counts()
    try:
        for module, name, function in replaced:
            setattr(module, name, _wired(f"{module.__name__}.{name}", function, tripped))
        yield
    finally:
        for module, name, function in replaced:
            setattr(module, name, function)
        tripped += [name for name, count in _counts().items() if count > before[name]]


def _wired(name: str, function: Callable[..., Any], tripped: list[str]) -> Callable[..., Any]:
    def wired(*args: Any, **kwargs: Any) -> Any:
        tripped.append(name)
        return function(*args, **kwargs)

    return wired


def _counts() -> dict[str, int]:
    """What torch's compilers count for their own statistics; 0 where they are not loaded."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    metrics = sys.modules.get("torch._inductor.metrics")
    frames = sum(dynamo.counters["frames"].values()) if dynamo is not None else 0
    return {
        "Dynamo": int(frames),
        "Inductor": int(getattr(metrics, "generated_kernel_count", 0)),
    }
