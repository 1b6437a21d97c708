"""What Dynamo says where it cannot capture. Checked on torch 2.8 and 2.13."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import torch
import torch._dynamo.exc

__all__ = ["DynamoError", "Told", "told"]

DynamoError = torch._dynamo.exc.TorchDynamoException
"""What Dynamo raises where it cannot capture."""


class Told(NamedTuple):
    """What an error of Dynamo's says: its reason, the user's line that it names, and its first hint."""

    reason: str
    where: str
    hint: str


def told(error: Exception) -> Told:
    r"""An error of Dynamo's in parts.

    >>> told(RuntimeError('Bad call\n  Hint: Do not.\n\nfrom user code:\n File "a.py", line 3, in f\n'))
    Told(reason='Bad call', where='a.py:3 in f', hint='Do not.')
    """
    text = str(error)
    lines = [f"{path}:{line} in {name}" for path, line, name in _USER_LINE.findall(text) if _IN_TORCH not in path]
    hint = _HINT.search(text)
    reason = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return Told(reason, lines[-1] if lines else "torch.compile", hint[1].strip() if hint else "")


_USER_LINE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_HINT = re.compile(r"^\s*Hint: (.+)$", re.MULTILINE)
_IN_TORCH = str(Path(torch.__file__).parent)
