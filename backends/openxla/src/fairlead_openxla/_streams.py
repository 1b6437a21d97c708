"""The order of torch's streams and XLA's on one CUDA device, by events: nobody waits on the host."""

from __future__ import annotations

import threading
from typing import Any

import torch

__all__ = ["Order"]


class Order:
    """What XLA computes waits for torch, and what torch does next waits for that.

    XLA has streams for this, of which an array over torch's memory names one: a program that reads the array begins
    when that stream has come as far as it was when the array was made. Results are waited for by the stream that is
    current in torch (`fairlead_openxla._cuda`), which then also orders whatever takes the inputs' memory next.

    A result's memory is XLA's again as soon as its tensor is gone, though torch's kernels that read it may not have
    run. So a program waits for every stream on which results were ever given out, not only for the current one.
    """

    def __init__(self, device: Any, index: int) -> None:
        self.handle: int = device.get_stream_for_external_ready_events()
        self._index = index
        self._stream = torch.cuda.ExternalStream(self.handle, device=index)  # type: ignore[no-untyped-call]
        self._readers: dict[int, tuple[torch.cuda.Stream, torch.cuda.Event]] = {}
        self._lock = threading.Lock()

    def current(self) -> tuple[int, bool]:
        """Have XLA's stream wait for torch's, where those have anything left to do, and say whether they have.

        The first result is the stream that is current, for whatever results are given to it.
        """
        handle = _handle(self._index)
        waits = False
        with self._lock:
            if handle not in self._readers:
                stream = torch.cuda.current_stream(self._index)
                self._readers[handle] = stream, torch.cuda.Event()  # type: ignore[no-untyped-call]
            for other, (reader, event) in self._readers.items():
                if (other == handle or not _is_recorded(reader)) and not reader.query():
                    event.record(reader)
                    event.wait(self._stream)
                    waits = True
        return handle or _DEFAULT, waits


_DEFAULT = 1
"""How DLPack names the default stream of CUDA, whose handle is 0."""


_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
"""What generated code of torch's own calls; the public way makes two objects first, which takes microseconds."""


def _handle(index: int) -> int:
    """The handle of the stream that is current on the device of this index."""
    found: int = torch.cuda.current_stream(index).cuda_stream if _raw_stream is None else _raw_stream(index)
    return found


def _is_recorded(stream: torch.cuda.Stream) -> bool:
    """Whether a CUDA graph is being made of what is put on a stream: then nothing runs that could be waited for."""
    with torch.cuda.stream(stream):
        return torch.cuda.is_current_stream_capturing()
