"""``fairlead.Dim``: a size that varies, declared once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlead.errors import ArgumentError


class Dim(msgspec.Struct, frozen=True):
    """A dimension of arguments whose size varies between calls, from ``min`` to ``max``, both included.

    Without ``buckets``, one program serves the whole range, on backends that have dynamic shapes. With them, there is
    a program for each of these sizes, on every backend: an argument of a size between is padded with zeros to the
    next bucket, and what follows the dimension in the results is cut back. That is for models that compute each row
    by itself, or mask what is padded; whether padding changes results is tried out, and an error where it does. The
    largest bucket has to be ``max``. Raises `fairlead.errors.ArgumentError` for what does not fit together.

    >>> batch = Dim("batch", min=1, max=64, buckets=[1, 8, 64])
    >>> batch.bucket(5), batch.bucket(8), batch.bucket(65)
    (8, 8, 65)
    """

    name: str
    min: int = 1
    max: int = 2**31 - 1
    buckets: Sequence[int] = ()

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "buckets", tuple(self.buckets))
        if self.min < 0 or self.max < self.min:
            raise self._wrong(f"reaches from {self.min} to {self.max}", "pass 0 <= min <= max")
        if any(a >= b for a, b in zip(self.buckets, self.buckets[1:], strict=False)):
            raise self._wrong(f"has the buckets {list(self.buckets)}", "list them from small to large, each once")
        if self.buckets and (self.buckets[0] < self.min or self.buckets[-1] != self.max):
            raise self._wrong(
                f"has buckets from {self.buckets[0]} to {self.buckets[-1]} for a range from {self.min} to {self.max}",
                "begin at min or above, and end with max",
            )

    def bucket(self, size: int) -> int:
        """The size that a program is called with for ``size``: the next bucket, itself where there is none."""
        return next((b for b in self.buckets if b >= size), size)

    def programs(self) -> tuple[int, ...]:
        """A size for each program that is needed: the buckets; or 0 and 1, which torch sets apart, and one other."""
        if self.buckets:
            return tuple(self.buckets)
        apart = tuple(n for n in (0, 1) if self.min <= n <= self.max)
        return (*apart, max(self.min, 2)) if self.max >= 2 else apart

    def between(self) -> int | None:
        """The largest size that is padded; None where none is."""
        sizes = (b - 1 for b in reversed(self.buckets) if b - 1 >= self.min and b - 1 not in self.buckets)
        return next((size for size in sizes if size > 0), None)

    def _wrong(self, what: str, advice: str) -> ArgumentError:
        return ArgumentError(f"dimension {self.name!r} {what}", where="fairlead.Dim", next=advice)
