"""Programs run over many names, in processes that may crash or hang: that costs the name it happened at."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from opset_capture import line

__all__ = ["sweep"]

SECONDS = 300
"""What one name may take at most."""

_Lines = SimpleQueue[dict[str, Any] | None]


def sweep(program: Path, arguments: Sequence[str], names: Sequence[str], processes: int) -> Iterator[dict[str, Any]]:
    """The lines that the program prints for each name, as they come, in ``processes`` shards.

    The program prints ``{"begin": name}`` before it starts on a name. Where it ends before its last name, that name
    has a line with an error, and a new process does the rest.
    """
    lines: _Lines = SimpleQueue()

    def shard(own: Sequence[str]) -> None:
        try:
            while own:
                own = own[_run([sys.executable, str(program), *arguments], own, lines) :]
        finally:
            lines.put(None)

    with ThreadPoolExecutor(processes) as pool:
        futures = [pool.submit(shard, names[index::processes]) for index in range(processes)]
        running = processes
        while running:
            found = lines.get()
            if found is None:
                running -= 1
            else:
                yield found
        for future in futures:
            future.result()


def _run(command: list[str], names: Sequence[str], lines: _Lines) -> int:
    """Run once over the names; how many of them are done with."""
    begun = 0
    with subprocess.Popen([*command, *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        assert child.stdout is not None
        watch = _watch(child)
        for text in child.stdout:
            found = json.loads(text)
            if "begin" in found:
                begun = names.index(found["begin"])
                watch.cancel()
                watch = _watch(child)
            else:
                lines.put(found)
        watch.cancel()
    if child.returncode == 0:
        return len(names)
    lines.put(line(names[begun], "", set(), error=f"the process ended with status {child.returncode}"))
    return begun + 1


def _watch(child: subprocess.Popen[str]) -> threading.Timer:
    timer = threading.Timer(SECONDS, child.kill)
    timer.daemon = True
    timer.start()
    return timer
