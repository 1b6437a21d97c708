"""Groups of items by module path, none with more members than an eye takes in."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

__all__ = ["LARGEST", "Group", "tree"]

LARGEST = 48
"""A group with more members than this is cut into runs of its members, in order: also a flat graph is then legible."""


class Group(msgspec.Struct, frozen=True):
    """A box that folds: its name, the group that it is in (-1 for the graph itself), and how many items are inside."""

    label: str
    parent: int
    items: int


class _Folder:
    """A group in the making: its members in order of appearance, folders and items."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.members: list[_Folder | int] = []
        self.folders: dict[str, _Folder] = {}
        self.ends: tuple[str, str] | None = None

    def folder(self, label: str) -> _Folder:
        if label not in self.folders:
            self.folders[label] = _Folder(label)
            self.members.append(self.folders[label])
        return self.folders[label]

    def count(self) -> int:
        return sum(1 if isinstance(m, int) else m.count() for m in self.members)


def tree(paths: Sequence[tuple[str, ...]]) -> tuple[tuple[Group, ...], list[int]]:
    """Groups, the whole first and each before what is in it, and the group of each item, given the items' paths."""
    root = _Folder("")
    for index, path in enumerate(paths):
        folder = root
        for step in path:
            folder = folder.folder(step)
        folder.members.append(index)
    groups: list[Group] = []
    of = [0] * len(paths)
    waiting: list[tuple[_Folder, int]] = [(root, -1)]
    while waiting:
        folder, parent = waiting.pop()
        folder = _cut(_merged(folder) if parent >= 0 else folder)
        number = len(groups)
        groups.append(Group(folder.label, parent, folder.count()))
        for member in folder.members:
            if isinstance(member, int):
                of[member] = number
            else:
                waiting.append((member, number))
    return tuple(groups), of


def _merged(folder: _Folder) -> _Folder:
    """A folder with nothing in it but one folder is one with that."""
    while len(folder.members) == 1 and isinstance(folder.members[0], _Folder):
        inner = folder.members[0]
        inner.label = f"{folder.label}.{inner.label}"
        folder = inner
    return folder


def _cut(folder: _Folder) -> _Folder:
    members = folder.members
    while len(members) > LARGEST:
        size = max(LARGEST // 2, -(-len(members) // LARGEST))
        runs = [members[start : start + size] for start in range(0, len(members), size)]
        members = [_run(run) for run in runs]
    folder.members = members
    return folder


def _run(members: list[_Folder | int]) -> _Folder:
    run = _Folder(f"{_end(members[0], 0)} … {_end(members[-1], -1)}")
    run.members, run.ends = members, (_end(members[0], 0), _end(members[-1], -1))
    return run


def _end(member: _Folder | int, which: int) -> str:
    """What a run that begins or ends with a member is called on this side."""
    if isinstance(member, int):
        return str(member)
    return member.ends[which] if member.ends else member.label
