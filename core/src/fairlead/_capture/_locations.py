"""Which line of the user's program an FX node stems from."""

from __future__ import annotations

import os
import re

import torch
from torch.fx import Node as FxNode

from fairlead.ir import Location

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_NOT_USER = (os.path.dirname(torch.__file__) + os.sep, "<eval_with_key>")


def location_of(node: FxNode) -> Location | None:
    """The innermost line of the user's program; torch's own files count only where there is nothing else.

    A module of torch's that is compiled by itself has no line of anybody's: nodes then point at the ``forward`` that
    they stem from.
    """
    # a node of a backward graph knows the module that its forward was called in
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path, kind = list(stack.values())[-1] if stack else ("", None)
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    user = [f for f in frames if not f[0].startswith(_NOT_USER)]
    found = (user or frames)[-1] if user or frames else _beginning(kind)
    if found is None:
        return None
    file, line, function = found
    return Location(file, int(line), function, _module_path(str(path)))


def _beginning(kind: object) -> tuple[str, int, str] | None:
    """Where the ``forward`` of a class of modules begins, as a frame; None where it is not of a file."""
    code = getattr(getattr(kind, "forward", None), "__code__", None)
    if code is None or code.co_filename.startswith("<"):
        return None
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _module_path(text: str) -> str:
    return re.sub(r"^L\['(?:self|fn)'\]\.?", "", text).replace("_modules['", "").replace("']", "")
