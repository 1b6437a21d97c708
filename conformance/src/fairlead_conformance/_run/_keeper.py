"""Stands between a session and one worker, and leaves nothing behind. Run as a script; the standard library alone.

The worker's parent is this process, not the session: a backend that kills its parent ends its own case. On Linux it
adopts what the worker's processes abandon. It ends them all when the worker ends, and when the session says so or ends
itself: at the end of standard input, which comes even where the session is killed. Then nobody else is left to remove
the temporary files, which all workers of a run share.

Arguments: the folder for temporary files, the descriptor for output, those for the worker alone (separated by
commas), the worker's command. It writes ``pid N`` and then ``exit STATUS``, as `subprocess.Popen.returncode`. From
the session it reads a byte, where the worker is to be ended and the session goes on.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

_GRACE = 0.5
"""Seconds between asking processes to end and ending them."""


def _main(folder: str, output: int, channel: list[int], command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment = {**os.environ, "TMPDIR": folder}
    worker = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=channel,
        env=environment,
        start_new_session=True,
    )
    for descriptor in (output, *channel):
        os.close(descriptor)
    os.write(1, b"pid %d\n" % worker.pid)
    heard: list[bytes] = []
    following = threading.Thread(target=_follow_the_session, args=(worker.pid, heard), daemon=True)
    following.start()
    status = worker.wait()
    _end_group(worker.pid)
    _end_orphans()
    with contextlib.suppress(BrokenPipeError):  # the session is gone
        os.write(1, b"exit %d\n" % status)
    following.join()
    if not heard:
        shutil.rmtree(folder, ignore_errors=True)


def _follow_the_session(worker: int, heard: list[bytes]) -> None:
    while said := os.read(0, 4096):
        heard.append(said)
    _end_group(worker)


def _end_group(leader: int) -> None:
    """Ask, then insist: a compiler that is asked takes away the file that it has half written, and that others read."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while time.monotonic() < end:
            os.killpg(leader, 0)  # raises where none is left
            time.sleep(0.01)
        os.killpg(leader, signal.SIGKILL)


def _end_orphans() -> None:
    """End whatever this process has adopted, and what that leaves behind in turn."""
    while children := _children():
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    own, found = str(os.getpid()).encode(), []
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                if stat.read().rpartition(b")")[2].split()[1] == own:
                    found.append(int(name))
    return found


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), [int(d) for d in sys.argv[3].split(",")], sys.argv[4:])
