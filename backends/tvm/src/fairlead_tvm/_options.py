"""The options of the backend."""

from __future__ import annotations

from typing import Literal

from fairlead.backend import Options

__all__ = ["TVMOptions"]


class TVMOptions(Options, frozen=True, kw_only=True):
    """What a caller may set; the defaults compute what eager does.

    ``threads``: ``torch`` runs large loops on TVM's threads where ``torch.get_num_threads()`` is more than one when
    the graph is compiled, ``one`` runs everything on the calling thread.
    """

    threads: Literal["torch", "one"] = "torch"
