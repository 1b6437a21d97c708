"""What is judged, by what, and where: read from metadata and files, without importing a backend."""

from __future__ import annotations

import hashlib
import importlib.util
import platform
from importlib import metadata
from pathlib import Path

import msgspec

from fairlead.errors import FairleadError
from fairlead.registry import Wheel, registry
from fairlead_conformance._report import Judged, Machine, installed_suite
from fairlead_conformance._run._accelerator import described
from fairlead_conformance._run._log import Facts
from fairlead_conformance._run._settings import Settings

__all__ = ["facts", "judged", "machine"]


def facts(settings: Settings) -> Facts:
    """What results of one run have in common."""
    wheel = _wheel(settings.backend)
    here = machine(settings.device)
    return Facts(
        backend=settings.backend,
        wheel=f"{wheel.distribution} {wheel.version}".strip() if wheel else "",
        content=_content(wheel) if wheel else "",
        level=settings.level.name,
        device=settings.device,
        seed=settings.seed,
        bundle=settings.bundle,
        suite=installed_suite().sha256,
        versions={"fairlead": here.fairlead, "python": here.python, "torch": here.torch, **_of(here)},
    )


def judged(backend: str, versions: dict[str, str]) -> Judged:
    """The backend as its wheel describes it; ``versions`` are its SDKs'."""
    wheel = _wheel(backend)
    found = {info.name: info for info in registry.describe()}.get(backend)
    capabilities = msgspec.to_builtins(found.capabilities) if found and found.capabilities else {}
    return Judged(
        name=backend,
        wheel=wheel.distribution if wheel else "",
        version=wheel.version if wheel else "",
        capabilities=capabilities,
        versions=versions,
    )


def machine(device: str = "cpu") -> Machine:
    """Where it runs. A device that is not the CPU is asked for its name, for which torch is imported."""
    here = Machine(
        fairlead=metadata.version("fairlead"),
        python=platform.python_version(),
        torch=metadata.version("torch"),
        platform=platform.platform(),
    )
    return here if device == "cpu" else msgspec.structs.replace(here, **described(device))


def _of(here: Machine) -> dict[str, str]:
    return {"accelerator": here.accelerator, "driver": here.driver} if here.accelerator else {}


def _wheel(backend: str) -> Wheel | None:
    try:
        return registry.wheel(backend)
    except FairleadError:
        return None  # each case says so


def _content(wheel: Wheel) -> str:
    """A hash by which a changed backend is noticed where its version stays: of its files' names, sizes and times."""
    try:
        spec = importlib.util.find_spec(wheel.entry_point.partition(":")[0].partition(".")[0])
    except ValueError:
        return ""
    total = hashlib.sha256()
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                total.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
    return total.hexdigest()
