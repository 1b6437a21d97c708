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
    ``varies``: those that take it on some processors only: the pattern on this one, or None where it works here.
    ``device``: the only type of device that it is about, or none.
    """

    section: str
    text: str
    check: Check
    declined: Mapping[str, str] = {}
    varies: Mapping[str, str | None] = {}
    device: str = ""

    @property
    def name(self) -> str:
        return self.check.__name__

    def reason(self, backend: str) -> str | None:
        """The pattern that the reasons of a backend match here; None where it takes all of it."""
        return self.declined.get(backend) or self.varies.get(backend)


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
        varies: Mapping[str, str | None] | None = None,
        device: str = "",
    ) -> Callable[[Check], Check]:
        def add(check: Check) -> Check:
            self.promises.append(Promise(self.title, text, check, declined or {}, varies or {}, device))
            return check

        return add
