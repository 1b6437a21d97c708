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
    """The innermost line of the user's program; torch's own files count only where there is nothing else."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    user = [f for f in frames if not f[0].startswith(_NOT_USER)]
    if not (user or frames):
        return None
    file, line, function = (user or frames)[-1]
    # a node of a backward graph knows the module that its forward was called in
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = list(stack.values())[-1][0] if stack else ""
    return Location(file, int(line), function, _module_path(str(path)))


def _module_path(text: str) -> str:
    return re.sub(r"^L\['(?:self|fn)'\]\.?", "", text).replace("_modules['", "").replace("']", "")
