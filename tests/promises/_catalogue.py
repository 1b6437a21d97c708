"""The promises: functions that do what a user does, and check it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ._through import Through

__all__ = ["BACKENDS", "Promise", "Section"]

BACKENDS = ("eager", "inductor", "onnxrt", "openvino", "openxla", "tvm", "ipex", "cudagraphs", "tensorrt")

Check = Callable[[Through], None]


class Promise(msgspec.Struct, frozen=True):
    """A promise in words, and the function that a `Through` is given to.

    ``declined``: the backends that do not take all of it on the CPU, each with a pattern that its reasons match.
    ``on_cuda``: the same of others on a CUDA device.
    ``device``: the only type of device that it is about, or none.
    """

    section: str
    text: str
    check: Check
    declined: Mapping[str, str] = {}
    on_cuda: Mapping[str, str] = {}
    device: str = ""

    @property
    def name(self) -> str:
        return self.check.__name__


class Section:
    """Promises that belong together. An instance decorates the functions that check them."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.promises: list[Promise] = []

    def __call__(
        self,
        text: str,
        *,
        declined: Mapping[str, str] | None = None,
        on_cuda: Mapping[str, str] | None = None,
        device: str = "",
    ) -> Callable[[Check], Check]:
        def add(check: Check) -> Check:
            self.promises.append(Promise(self.title, text, check, declined or {}, on_cuda or {}, device))
            return check

        return add
