"""What a stored program saves of a first call: ``python benchmarks/first_call.py MODEL BACKEND...`` prints a table.

For each backend two processes, each with caches of its own that are empty: the first compiles, and stores what it has
compiled; the second loads that. Seconds of the call by the clock, and of the processor, those of compilers included.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import fairlead
from fairlead import artifacts
from fairlead._models._load import load
from fairlead.hooks import CompileJob, hookimpl, plugin_manager

SECRET = bytes(range(32))
"""Nobody else sees the folder."""


class Folder:
    """A folder of artifacts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @hookimpl
    def fairlead_compile(self, job: CompileJob) -> Any:
        file = self.path / artifacts.identify(job).digest
        return artifacts.unpack(file.read_bytes(), job, SECRET) if file.exists() else None

    @hookimpl
    def fairlead_compiled(self, job: CompileJob, executable: Any, seconds: float) -> None:
        file = self.path / artifacts.identify(job).digest
        if not file.exists():
            file.write_bytes(artifacts.pack(job, executable, SECRET))


def main() -> None:
    name, *backends = sys.argv[1:]
    print("| backend | compiled, s | processor, s | loaded, s | processor, s | stored, KB |\n|---|---|---|---|---|---|")
    for backend in backends:
        with tempfile.TemporaryDirectory() as folder:
            compiled, loaded = (_in_a_process(name, backend, folder) for _ in range(2))
            stored = sum(f.stat().st_size for f in Path(folder).iterdir())
        print(f"| {backend} | {compiled} | {loaded} | {stored / 1000:.0f} |", flush=True)


def _in_a_process(name: str, backend: str, folder: str) -> str:
    with tempfile.TemporaryDirectory() as caches:
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": caches, "XDG_CACHE_HOME": caches}
        command = [sys.executable, __file__, "--call", name, backend, folder]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


def _call(name: str, backend: str, folder: str) -> None:
    model = load(name)
    plugin_manager().register(Folder(Path(folder)))
    start, before = time.perf_counter(), os.times()
    with torch.no_grad():
        fairlead.compile(model.module, backend=backend, benchmark=False)(*model.args, **model.kwargs)
    seconds, after = time.perf_counter() - start, os.times()
    spent = sum(after[:4]) - sum(before[:4])
    print(f"{seconds:.1f} | {spent:.1f}")


if __name__ == "__main__":
    if sys.argv[1] == "--call":
        _call(*sys.argv[2:])
    else:
        main()
