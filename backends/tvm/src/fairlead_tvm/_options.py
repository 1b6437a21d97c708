"""The options of the backend."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlead.backend import Options

__all__ = ["TVMOptions"]


class TVMOptions(Options, frozen=True, kw_only=True):
    """What a caller may set; the defaults compute what eager does.

    ``threads``: ``torch`` runs large loops on torch's threads where ``torch.get_num_threads()`` is more than one when
    the graph is compiled, ``one`` runs everything on the calling thread. ``tune``: seconds for each graph in which
    schedules of its products and convolutions are measured, 0 for none; what was found before is used either way.
    """

    threads: Literal["torch", "one"] = "torch"
    tune: Annotated[float, msgspec.Meta(ge=0)] = 0.0
