"""A module of this folder in several processes, and what each of them says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]


def torchrun(module: str, *args: str, processes: int = 2) -> subprocess.CompletedProcess[str]:
    """The module of this folder, run to its end."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.run(
        [*command, "-m", f"tests.distributed.{module}", *args],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def say(found: dict[str, Any]) -> None:
    """Tell the test something, from one of the processes."""
    sys.stdout.write(f"result {json.dumps(found)}\n")  # at once: ranks share it, unbuffered


def said(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What the processes have told, where all succeeded."""
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [json.loads(line.removeprefix("result ")) for line in lines if line.startswith("result ")]
