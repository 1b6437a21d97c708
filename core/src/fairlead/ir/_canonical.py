"""The canonical form of a graph, which leaves out what does not change its meaning, and its hash."""

from __future__ import annotations

import hashlib

import msgspec

from fairlead.ir._model import IR_VERSION, Graph, Module
from fairlead.ir._wire import pack_graph


def fingerprint(content: Graph | Module) -> str:
    """SHA-256, in hexadecimal, of a verified graph's or module's canonical form: the base of cache keys.

    Names (of graphs, inputs and symbols), the numbers of values, the ordinals of devices, source lines and the producer
    do not enter it; every op, argument, type, role, edge, range, alias and region does, and of a module the version of
    each op. Equal across processes, machines and versions of Python for one `IR_VERSION`.
    """
    kind, form = ("module", _module(content)) if isinstance(content, Module) else ("graph", canonical(content))
    digest = hashlib.sha256("fairlead {} {}.{}\0".format(kind, *IR_VERSION).encode())
    digest.update(form)
    return digest.hexdigest()


def canonical(graph: Graph) -> bytes:
    """The canonical form of a graph, as MessagePack."""
    return msgspec.msgpack.encode(pack_graph(graph, canonical=True))


def _module(module: Module) -> bytes:
    ops = sorted((op, use.version) for op, use in module.ops.items())
    return msgspec.msgpack.encode([ops, [pack_graph(g, canonical=True) for g in module.graphs]])
