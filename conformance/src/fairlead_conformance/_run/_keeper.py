"""Stands between a session and one worker, and leaves nothing behind. Run as a script; the standard library alone.

The worker's parent is this process, not the session: a backend that kills its parent ends its own case. On Linux it
adopts what the worker's processes abandon. It ends them all, and removes their temporary files, when the worker ends,
and when the session does: at the end of standard input, which comes even where the session is killed.

Arguments: the folder for temporary files, the descriptor for output, those for the worker alone (separated by
commas), the worker's command. It writes ``pid N`` and then ``exit STATUS``, as `subprocess.Popen.returncode`.
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

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def _main(folder: str, output: int, channel: list[int], command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.makedirs(folder, exist_ok=True)
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
    threading.Thread(target=_follow_the_session, args=(worker.pid,), daemon=True).start()
    status = worker.wait()
    _end_group(worker.pid)
    _end_orphans()
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(BrokenPipeError):  # the session is gone
        os.write(1, b"exit %d\n" % status)


def _follow_the_session(worker: int) -> None:
    while os.read(0, 4096):
        pass
    _end_group(worker)


def _end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
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
