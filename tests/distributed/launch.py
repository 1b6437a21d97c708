"""A module of this folder in several processes, and what each of them says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests import forked

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


def ranks(module: str, *args: str, processes: int) -> list[subprocess.CompletedProcess[str]]:
    """As `torchrun`, on the CPU, from a process that has torch imported; one rank that fails ends no other."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    shared = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}

    def run(rank: int) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        command = ["-m", f"tests.distributed.{module}", *args]
        return forked.run(command, environment, folder=_ROOT, timeout=240)

    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(run, range(processes)))


def told(module: str, what: str, *backends: str, processes: int, device: str) -> list[dict[str, Any]]:
    """What the ranks tell that run the module of ``what`` through backends, each with a CUDA device or on the CPU."""
    if device == "cuda":
        return said(torchrun(module, what, "--cuda", *backends, processes=processes))
    return said(*ranks(module, what, *backends, processes=processes))


def say(found: dict[str, Any]) -> None:
    """Tell the test something, from one of the processes."""
    sys.stdout.write(f"result {json.dumps(found)}\n")  # at once: ranks share it, unbuffered


def said(*ended: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What the processes have told, where all succeeded."""
    for done in ended:
        assert done.returncode == 0, done.stderr
    lines = [line for done in ended for line in done.stdout.splitlines()]
    return [json.loads(line.removeprefix("result ")) for line in lines if line.startswith("result ")]
