"""The options of the backend."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from fairlead.backend import Options
from fairlead.errors import OptionValueError

__all__ = ["OpenVINOOptions"]

_CHOOSING = frozenset({"AUTO", "MULTI", "HETERO", "BATCH"})
"""Names that stand for some of the devices, listed behind a colon; AUTO by itself for any."""


class OpenVINOOptions(Options, frozen=True, kw_only=True):
    """What a caller may set; the defaults are the fastest that are exact.

    ``device``: an OpenVINO device; tensors stay in the memory of the host. ``precision``: what f32 is computed in;
    ``bf16`` and ``f16`` are faster on processors that have them, with errors around 1e-3. ``threads``: 0 follows
    ``torch.get_num_threads()``. ``streams``: how many calls run at once. ``performance_hint``: what OpenVINO tunes for.
    ``cache_dir``: a folder in which it keeps compiled models, none where it is empty. ``config``: properties of
    OpenVINO, passed on as they are; they come last.

    Raises `fairlead.errors.OptionValueError` for a device that OpenVINO does not find on this machine.
    """

    device: str = "CPU"
    precision: Literal["f32", "bf16", "f16"] = "f32"
    threads: Annotated[int, msgspec.Meta(ge=0)] = 0
    streams: Annotated[int, msgspec.Meta(ge=1)] = 1
    performance_hint: Literal["latency", "throughput", "cumulative_throughput"] = "latency"
    cache_dir: str = ""
    config: dict[str, str | bool | int | float] = {}

    def __post_init__(self) -> None:
        if self.device not in ("CPU", "AUTO"):
            _check_device(self.device)


def _check_device(device: str) -> None:
    import openvino

    chooser, _, listed = device.partition(":")
    wanted = [re.sub(r"^-|\(.*\)$", "", name) for name in listed.split(",")] if chooser in _CHOOSING else [device]
    found = openvino.Core().available_devices
    known = {name for each in found for name in (each, each.partition(".")[0])}
    if missing := [name for name in wanted if name not in known]:
        raise OptionValueError(
            f"option 'device' is {device!r}, and OpenVINO finds no {missing[0]!r} on this machine",
            where=f"backend 'openvino', openvino {openvino.__version__}",
            next=f"pass one of {', '.join((*found, 'AUTO'))}, or install the driver of the device",
        )
