"""The device of a run, before it begins: whether it is there, whether the backend takes it, and what it is called."""

from __future__ import annotations

import re
import subprocess

from fairlead.errors import ArgumentError
from fairlead.registry import registry
from fairlead_conformance._device_names import KEYS, kind_of

__all__ = ["described", "require"]


def require(device: str, backend: str) -> None:
    """Raise `fairlead.errors.ArgumentError` where the device, or the backend on it, cannot be judged here."""
    if not re.fullmatch(r"[a-z]+(:\d+)?", device) or kind_of(device) not in KEYS:
        raise ArgumentError(
            f"the suite does not run on {device!r}", where="--device", next=f"one of: {', '.join(KEYS)}; or cuda:1"
        )
    info = next((i for i in registry.describe() if i.name == backend), None)
    taken = info.capabilities.devices if info and info.capabilities else ("*",)
    if kind_of(device) not in taken and "*" not in taken:
        raise ArgumentError(
            f"backend {backend!r} does not run on {kind_of(device)}: its capabilities list {', '.join(taken)}",
            where=str(registry.wheel(backend)),
            next=f"judge it on one of these: --device={taken[0]}",
        )
    if kind_of(device) == "cuda" and (lacking := _lacking(device)):
        raise ArgumentError(
            f"there is no device {device!r} here: {lacking}",
            where="torch.cuda",
            next="run it on a machine that has one, or leave --device out: the CPU is judged",
        )


def described(device: str) -> dict[str, str]:
    """What a report says of the device: its name, and the versions of driver and CUDA; nothing for one without them."""
    import torch

    if kind_of(device) != "cuda":
        return {}
    name = torch.cuda.get_device_name(device)
    return {"accelerator": name, "driver": _driver(), "cuda": torch.version.cuda or ""}


def _lacking(device: str) -> str:
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    count, index = torch.cuda.device_count(), int(device.partition(":")[2] or 0)
    return "" if index < count else f"torch finds {count or 'no'} CUDA device{'' if count == 1 else 's'}"


def _driver() -> str:
    """The version of the driver, which torch does not tell; empty where nobody does."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return (said.splitlines() or [""])[0].strip()
