"""The names of a new wheel: its backend, distribution, package and classes, all from one word."""

from __future__ import annotations

import importlib
import keyword
import re

import msgspec

from fairlead.errors import ArgumentError, BackendNotFoundError, RegistryError
from fairlead.registry import RESERVED, registry

__all__ = ["Names", "names"]

_LONGEST = 32


class Names(msgspec.Struct, frozen=True):
    """What one backend is called where.

    >>> names("My-Chip")
    Names(name='my_chip', slug='my-chip', distribution='fairlead-my-chip', package='fairlead_my_chip')
    """

    name: str
    """The entry point, and what users pass as ``backend=``."""
    slug: str
    """As distributions are written, with hyphens."""
    distribution: str
    package: str

    @property
    def class_name(self) -> str:
        """What the names of its classes begin with."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def names(word: str) -> Names:
    """Everything that follows from ``word``, in whichever of Python's and the packages' spellings it comes.

    Raises `ArgumentError` for what cannot name a distribution (PEP 508), an attribute and a module at once, and for
    names that are taken: by this project, by another installed wheel, or by an attribute of ``fairlead.torch``.
    """
    slug = re.sub(r"[-_.]+", "-", word).lower()
    name = slug.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", slug) or len(slug) > _LONGEST or keyword.iskeyword(name):
        raise ArgumentError(
            f"{word!r} cannot name a backend",
            where="a wheel, a module and an attribute are called like it",
            next=f"take a letter and up to {_LONGEST - 1} letters, digits and single hyphens, such as 'my-chip'",
        )
    found = Names(name, slug, f"fairlead-{slug}", f"fairlead_{name}")
    if owner := _owner(found):
        raise ArgumentError(
            f"the name {name!r} is taken",
            where=owner,
            next="take another; 'fairlead backends' lists the installed ones",
        )
    return found


def _owner(found: Names) -> str:
    """Who has the name already; nobody where it is this very wheel."""
    if found.name in RESERVED:
        return f"{found.distribution}, of the Fairlead project"
    try:
        wheel = registry.wheel(found.name)
    except BackendNotFoundError:
        wheel = None
    except RegistryError as error:
        return error.where
    if wheel is not None and wheel.distribution != found.distribution:
        return str(wheel)
    if found.name in vars(importlib.import_module("fairlead.torch")):
        return f"fairlead.torch.{found.name}, where torch would look for the backend"
    return ""
