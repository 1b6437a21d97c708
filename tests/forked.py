"""Processes forked from one that has torch imported, and nothing else: they need not wait for it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import ModuleType

__all__ = ["run"]

PRELOADED = ["torch._inductor.compile_fx"]
"""With it comes what torch imports at the first compilation."""


def run(
    arguments: Sequence[str], environment: Mapping[str, str], *, folder: Path | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run`` of Python with ``-c SOURCE``, ``-m MODULE`` or a file, and arguments.

    What torch reads of the environment while it is imported is that of this process.
    """
    with tempfile.TemporaryDirectory() as kept:
        out, err = Path(kept, "out"), Path(kept, "err")
        given = (list(arguments), dict(environment), _paths(), str(folder or Path.cwd()), str(out), str(err))
        process = _server().Process(target=_main, args=given)
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(arguments), timeout, out.read_text(), err.read_text())
        return subprocess.CompletedProcess(list(arguments), process.exitcode, out.read_text(), err.read_text())


@functools.cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


@functools.cache
def _paths() -> list[str]:
    """Where a process looks for modules, beside its own folder and ``PYTHONPATH``."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.path[1:]))"]
    paths: list[str] = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    return paths


def _main(arguments: list[str], environment: dict[str, str], paths: list[str], folder: str, out: str, err: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, errors="backslashreplace")
    named = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [folder, *named, *paths]
    importlib.invalidate_caches()
    if threads := environment.get("OMP_NUM_THREADS"):
        import torch

        torch.set_num_threads(int(threads))
    try:
        _execute(arguments)
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
    finally:
        atexit._run_exitfuncs()
        with contextlib.suppress(ValueError):  # of a stream that is closed
            sys.stdout.flush()


def _execute(arguments: list[str]) -> None:
    kind, *rest = arguments
    match kind:
        case "-c":
            source, *rest = rest
            sys.argv[:] = ["-c", *rest]
            module = sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(source, "<string>", "exec"), vars(module))
        case "-m":
            name, *rest = rest
            sys.argv[:] = [name, *rest]
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        case _:
            sys.argv[:] = [kind, *rest]
            sys.path[0] = str(Path(kind).parent.resolve())
            runpy.run_path(kind, run_name="__main__")
