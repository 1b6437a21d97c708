"""The signature text of ops that the opset does not have, from the schemas that their libraries registered."""

from __future__ import annotations

import re

import torch

from fairlead.ir import Graph, OpUse
from fairlead.ir.opset import spec

__all__ = ["registered_ops"]

_ALIAS = re.compile(r"(?<=[\w\]])\(\w+!?\)")
_DEFAULT = re.compile(r"""=("[^"]*"|'[^']*'|\[[^\]]*\]|[^,)]+)""")


def registered_ops(*graphs: Graph) -> dict[str, OpUse]:
    """Version 1 and the signature of each op in the graphs that torch knows and the opset does not.

    An operator that writes to its arguments has their new contents among its results, as its nodes do.
    """
    ops = sorted({n.op for g in graphs for n in g.walk() if spec(n.op) is None and not n.regions})
    found = {op: _signature(op) for op in ops}
    return {op: OpUse(1, text) for op, text in found.items() if text}


def _signature(op: str) -> str:
    namespace, _, rest = op.partition(".")
    name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    registered = getattr(packet, overload, None)
    if registered is None:
        return ""
    schema = registered._schema
    text = _DEFAULT.sub("", _ALIAS.sub("", str(schema)))
    parameters = text[text.index("(") + 1 : text.index(") -> ")].replace("*, ", "")
    own = text.partition(") -> ")[2].strip()
    written = [p for p in schema.arguments if p.alias_info is not None and p.alias_info.is_write]
    if not written:
        return f"{op}({parameters}) -> {own}"
    results = [r for r in own.strip("()").split(", ") if r] + [f"{_plain(p)} {p.name}_out" for p in written]
    return f"{op}({parameters}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


def _plain(parameter: torch._C.Argument) -> str:
    return "Tensor[]" if "List" in str(parameter.type) else "Tensor"
