"""The error tree as a whole: its codes, its documentation, and that errors travel between processes."""

from __future__ import annotations

import pickle
import re

import pytest

from fairlead import errors
from fairlead.errors import FairleadError

from .conftest import REPOSITORY

CLASSES = [getattr(errors, name) for name in errors.__all__]
CODED = [cls for cls in CLASSES if "code" in vars(cls) and cls is not FairleadError]


def test_every_error_that_is_raised_has_a_code_of_its_own() -> None:
    codes = [cls.code for cls in CODED]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"FL[1-9]\d\d", code) for code in codes)
    groups = {cls for cls in CLASSES if cls not in CODED}
    assert all(any(issubclass(other, cls) and other is not cls for other in CLASSES) for cls in groups)


@pytest.mark.parametrize("cls", CODED, ids=lambda cls: cls.__name__)
def test_an_error_is_in_the_tree_and_in_the_documentation(cls: type[FairleadError]) -> None:
    assert re.search(rf"\b{cls.__name__} +{cls.code} ", errors.__doc__ or "")
    page = (REPOSITORY / "docs/errors.md").read_text("utf-8")
    assert cls.code in page
    assert cls.__name__ in page


@pytest.mark.parametrize("cls", CODED, ids=lambda cls: cls.__name__)
def test_who_searches_for_a_code_finds_its_cause_and_a_message_with_what_to_do(cls: type[FairleadError]) -> None:
    page = (REPOSITORY / "docs/errors.md").read_text("utf-8")
    (section,) = re.findall(rf"^### {cls.code} {cls.__name__}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert re.search(rf"^```\n{cls.code}: .+\n  from: .+\n  next: .+\n```$", section, re.MULTILINE)
    cause = re.sub(r"^```\n.*?^```$", "", section, flags=re.MULTILINE | re.DOTALL).split()
    assert len(cause) >= 12


def test_the_documentation_names_no_error_that_does_not_exist() -> None:
    page = (REPOSITORY / "docs/errors.md").read_text("utf-8")
    assert set(re.findall(r"FL[1-9]\d\d", page)) == {cls.code for cls in CODED}


def test_every_page_that_a_message_names_exists() -> None:
    sources = [path for part in ("core/src", "backends") for path in (REPOSITORY / part).rglob("*.py")]
    named = {page for path in sources for page in re.findall(r"\bdocs/[\w/]+\.md\b", path.read_text("utf-8"))}
    assert "docs/backends.md" in named
    assert [page for page in sorted(named) if not (REPOSITORY / page).exists()] == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_survives_the_way_to_another_process(cls: type[FairleadError]) -> None:
    error = cls("what happened", where="here", next="do this")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert str(copy) == f"{cls.code}: what happened\n  from: here\n  next: do this"
