"""The options of the backend."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlead.backend import Options

__all__ = ["OpenVINOOptions"]


class OpenVINOOptions(Options, frozen=True, kw_only=True):
    """What a caller may set; the defaults are the fastest that are exact.

    ``device``: an OpenVINO device; tensors stay in the memory of the host. ``precision``: what f32 is computed in;
    ``bf16`` and ``f16`` are faster on processors that have them, with errors around 1e-3. ``threads``: 0 follows
    ``torch.get_num_threads()``. ``streams``: how many calls run at once. ``config``: properties of OpenVINO, passed
    on as they are.
    """

    device: str = "CPU"
    precision: Literal["f32", "bf16", "f16"] = "f32"
    threads: Annotated[int, msgspec.Meta(ge=0)] = 0
    streams: Annotated[int, msgspec.Meta(ge=1)] = 1
    config: dict[str, str] = {}
