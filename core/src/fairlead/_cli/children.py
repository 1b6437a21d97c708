"""Runs a probe in a child process and turns whatever becomes of that process into a finding or a reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


class ChildError(Exception):
    """The child gave no finding; the message says how it ended."""


def run_probe(what: list[str], finding: type[T], timeout: float) -> T:
    """The finding of ``python -m fairlead._cli.probe``; raises `ChildError` where it crashed, hung or left none."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        file, said = Path(folder, "finding"), Path(folder, "said")
        with said.open("wb") as output:
            child = subprocess.Popen(
                [sys.executable, "-m", "fairlead._cli.probe", *what, str(file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            end = _end(child, timeout)
        try:
            return msgspec.json.decode(file.read_bytes(), type=finding)
        except (OSError, msgspec.DecodeError):
            raise ChildError(end + _last_words(said)) from None


def _end(child: subprocess.Popen[bytes], timeout: float) -> str:
    try:
        status = child.wait(timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # with the processes that it started
        child.wait()
        return f"its probe gave no answer within {timeout:g} s"
    if status < 0:
        return f"its probe crashed the process ({signal.Signals(-status).name})"
    return f"its probe ended the process (exit status {status})"


def _last_words(said: Path) -> str:
    lines = [line.strip() for line in said.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""
