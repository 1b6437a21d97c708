"""Work on many names spread over processes that may crash or hang: that costs the name at which it happened."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

__all__ = ["spread"]

BATCH = 32
_ENV = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
"""Small tensors gain nothing from threads, and processes lose by them; some samples are in the order of a set."""

SECONDS = 300
"""What one name may take at most."""


def spread(command: Sequence[str], names: Sequence[str], processes: int) -> dict[str, str]:
    """Run the command over the names, some at a time, and say what went wrong, by name.

    The command prints each name before it starts on it.
    """
    waiting: SimpleQueue[Sequence[str]] = SimpleQueue()
    for start in range(0, len(names), BATCH):
        waiting.put(names[start : start + BATCH])
    lost: dict[str, str] = {}

    def work() -> None:
        while True:
            try:
                batch = waiting.get_nowait()
            except Empty:
                return
            while batch:
                batch = batch[_run([*command, *batch], batch, lost) :]

    with ThreadPoolExecutor(processes) as pool:
        for future in [pool.submit(work) for _ in range(processes)]:
            future.result()
    return lost


def _run(command: Sequence[str], names: Sequence[str], lost: dict[str, str]) -> int:
    """Run once over the names; how many of them are done with."""
    begun = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_ENV) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        errors = _Tail(child.stderr)
        watch = _watch(child)
        for text in child.stdout:
            if text.strip() in names:
                begun = names.index(text.strip())
                watch.cancel()
                watch = _watch(child)
        watch.cancel()
    if child.returncode == 0:
        return len(names)
    lost[names[begun]] = f"the process ended with status {child.returncode}: {errors.last()}"
    return begun + 1


class _Tail:
    """Reads a stream to its end in a thread, and keeps the last line."""

    def __init__(self, stream: object) -> None:
        self._line = ""
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def last(self) -> str:
        self._thread.join()
        return self._line

    def _read(self, stream: object) -> None:
        for line in stream:  # type: ignore[attr-defined]
            self._line = line.strip() or self._line


def _watch(child: subprocess.Popen[str]) -> threading.Timer:
    timer = threading.Timer(SECONDS, child.kill)
    timer.daemon = True
    timer.start()
    return timer
