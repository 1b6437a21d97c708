"""The worker's side of a `Process`: requests in, replies out, one JSON object a line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

from fairlead._compare._messages import Failed
from fairlead.errors import FairleadError

__all__ = ["serve"]


def serve(request: Any, answer: Callable[[Any], Any]) -> None:
    """Answer requests of the type ``request`` until the standard input ends; what ``answer`` raises is a `Failed`."""
    replies = _channel()
    for line in sys.stdin:
        try:
            reply = answer(msgspec.json.decode(line, type=request))
        except FairleadError as error:
            reply = Failed(error.code, error.what, error.where, error.next)
        except Exception as error:  # A compiler's, or the user's own code: whatever it raises is the answer.
            reply = Failed("", f"{type(error).__name__}: {_one_line(str(error))}")
        replies.write(msgspec.json.encode(reply).decode() + "\n")
        replies.flush()


def _one_line(text: str) -> str:
    """Without line breaks, and without the colours that some compilers' messages carry."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


def _channel() -> TextIO:
    """The standard output for replies alone: what SDKs print goes to standard error from here on."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return replies
