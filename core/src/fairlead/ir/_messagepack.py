"""MessagePack from an untrusted source: looked over before a decoder allocates what its headers announce."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeVar

import msgspec

from fairlead.errors import IRFormatError

T = TypeVar("T")

_DEEPEST = 64
# Bytes that each fixed-size form takes, its first one included; extension types with their type byte.
_FIXED = {0xC0: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9}
_FIXED |= dict(zip(range(0xCC, 0xD4), (2, 3, 5, 9, 2, 3, 5, 9), strict=True))
_FIXED_EXTENSION = dict(zip(range(0xD4, 0xD9), (1, 2, 4, 8, 16), strict=True))
# Width of the length that follows the first byte.
_STRING = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSION = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_ARRAY = {0xDC: 2, 0xDD: 4}


def decode(
    data: bytes | memoryview,
    type_: type[T],
    extension: Callable[[int, memoryview], object] | None,
    extensions: Container[int],
    where: str,
) -> T:
    """``data`` as ``type_``, with ``extension`` for the types in ``extensions``. `IRFormatError` for anything else.

    The decoder allocates lists of the length that an array announces, before it sees whether there is as much. So it
    goes over the data once without building anything: afterwards every length is known to be that of what is there.
    """
    try:
        msgspec.msgpack.decode(data, type=msgspec.Raw)
        return msgspec.msgpack.decode(data, type=type_, ext_hook=extension)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        _check(bytes(data), extensions, where)
        raise malformed(f"not what belongs here: {error}", where) from error


def malformed(what: str, where: str) -> IRFormatError:
    """The error for bytes that are not what a writer of this format writes."""
    return IRFormatError(
        what, where=where, next="write the file again with fairlead.ir.write; it is damaged or foreign"
    )


def _check(data: bytes, extensions: Container[int], where: str) -> None:
    """Find the byte at which ``data`` stops being one item of arrays, numbers, strings and these extension types."""
    position = 0
    missing = [1]
    while missing:
        if not missing[-1]:
            missing.pop()
            continue
        missing[-1] -= 1
        items, position = _item(data, position, extensions, where)
        if items > len(data) - position:
            raise _malformed(f"an array of {items} items in {len(data) - position} bytes", where, position)
        if items:
            missing.append(items)
        if len(missing) > _DEEPEST:
            raise _malformed(f"arrays nested more than {_DEEPEST} deep", where, position)
    if position != len(data):
        raise _malformed(f"{len(data) - position} bytes after the end", where, position)


def _item(data: bytes, start: int, extensions: Container[int], where: str) -> tuple[int, int]:
    """How many items the array that starts here has (0 for anything else), and where they, or the next item, start."""
    first = data[start] if start < len(data) else 0xC1
    items = 0
    if first < 0x80 or first >= 0xE0:
        end = start + 1
    elif first in _FIXED:
        end = start + _FIXED[first]
    elif 0x90 <= first < 0xA0:
        items, end = first & 0x0F, start + 1
    elif 0xA0 <= first < 0xC0:
        end = start + 1 + (first & 0x1F)
    elif first in _ARRAY:
        items, end = _length(data, start, _ARRAY[first])
    elif first in _STRING:
        length, body = _length(data, start, _STRING[first])
        end = body + length
    else:
        end = _extension_end(data, start, first, extensions, where)
    if end > len(data):
        raise _malformed("it ends within an item", where, start)
    return items, end


def _extension_end(data: bytes, start: int, first: int, extensions: Container[int], where: str) -> int:
    if first in _FIXED_EXTENSION:
        length, code = _FIXED_EXTENSION[first], start + 1
    elif first in _EXTENSION:
        length, code = _length(data, start, _EXTENSION[first])
    else:
        raise _malformed(
            f"an item that starts with {first:#04x}" if start < len(data) else "it ends early", where, start
        )
    if code < len(data) and data[code] not in extensions:
        raise _malformed(f"an unknown extension type {data[code]}", where, code)
    return code + 1 + length


def _length(data: bytes, start: int, width: int) -> tuple[int, int]:
    end = start + 1 + width
    return int.from_bytes(data[start + 1 : end], "big"), end


def _malformed(what: str, where: str, position: int) -> IRFormatError:
    return IRFormatError(
        f"malformed MessagePack: {what}",
        where=f"{where}, byte {position}",
        next="write the file again with fairlead.ir.write; it is damaged or foreign",
    )
