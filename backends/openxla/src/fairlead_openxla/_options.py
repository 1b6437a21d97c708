"""The options of the backend."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from fairlead.backend import Options

__all__ = ["CompilerOption", "OpenXLAOptions"]

CompilerOption: TypeAlias = bool | int | float | str


class OpenXLAOptions(Options, frozen=True, kw_only=True):
    """What a caller may set; the defaults compute what eager does.

    ``executables``: for how many sets of sizes one graph is compiled, since XLA knows no symbols; a call with one set
    more is an error that says so. ``threads``: ``torch`` follows ``torch.get_num_threads()`` where that is one, ``one``
    runs each op on the calling thread, ``all`` on as many as the machine has. ``precision``: ``tf32`` has products and
    convolutions of float32 on CUDA round their operands to 10 bits of fraction. ``winograd``: convolutions by 3 by 3 on
    a CPU may be computed in tiles, in which a NaN or an infinity reaches its neighbours. ``compiler_options``: entries
    of XLA's debug options, by name, passed on as they are.
    """

    executables: Annotated[int, msgspec.Meta(ge=1)] = 32
    threads: Literal["torch", "one", "all"] = "torch"
    precision: Literal["f32", "tf32"] = "f32"
    winograd: bool = False
    compiler_options: dict[str, CompilerOption] = {}
