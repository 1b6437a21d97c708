"""Options from what a user wrote, and the message for each way to write them wrongly; the environment variables too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest

from fairlead import _options, _settings
from fairlead.backend import Options
from fairlead.errors import ArgumentError, OptionValueError, UnknownOptionError


class AcmeOptions(Options, frozen=True, kw_only=True):
    threads: Annotated[int, msgspec.Meta(ge=0)] = 0
    precision: Literal["f32", "bf16"] = "f32"
    trap: bool = False
    ratio: float = 1.0
    cache: str | None = None
    limits: dict[str, int] = {}


class Acme:
    name = "acme"
    options_type = AcmeOptions


VALID = "threads: int, precision: 'f32' | 'bf16', trap: bool, ratio: float, cache: str | None, limits: dict[str, int]"
WHERE = f"  from: backend 'acme', {__name__}.AcmeOptions"


def parse(mapping: Any) -> Options:
    return _options.parse(Acme(), mapping)  # type: ignore[arg-type]  # no other member is looked at


@pytest.mark.parametrize("nothing", [None, {}])
def test_no_options_are_the_defaults(nothing: Mapping[str, object] | None) -> None:
    assert parse(nothing) == AcmeOptions()


def test_options_are_typed() -> None:
    given = {"threads": 4, "precision": "bf16", "trap": True, "ratio": 2, "cache": None, "limits": {"rank": 4}}
    expected = AcmeOptions(threads=4, precision="bf16", trap=True, ratio=2.0, limits={"rank": 4})
    assert parse(given) == expected
    assert type(parse(given).ratio) is float  # type: ignore[attr-defined]


def test_options_that_are_a_struct_already_are_kept() -> None:
    options = AcmeOptions(threads=2)
    assert parse(options) is options


@pytest.mark.parametrize(
    ("key", "advice"),
    [("thread", f"did you mean 'threads'? valid options: {VALID}"), ("zzz", f"valid options: {VALID}")],
)
def test_an_option_that_does_not_exist(key: str, advice: str) -> None:
    with pytest.raises(UnknownOptionError) as caught:
        parse({"threads": 1, key: 2})
    assert str(caught.value).splitlines() == [
        f"FL201: backend 'acme' has no option {key!r}",
        WHERE,
        f"  next: {advice}",
    ]


@pytest.mark.parametrize(
    ("key", "value", "got", "expected", "spelled"),
    [
        ("threads", "4", "'4' (str)", "int", "int"),
        ("threads", True, "True (bool)", "int", "int"),
        ("threads", -1, "-1 (int)", "int >= 0", "int"),
        ("precision", "f16", "'f16' (str)", "'f32' | 'bf16'", "'f32' | 'bf16'"),
        ("trap", 1, "1 (int)", "bool", "bool"),
        ("cache", 3, "3 (int)", "str | null", "str | None"),
        ("limits", {"rank": "4"}, "{'rank': '4'} (dict)", "dict[str, int]", "dict[str, int]"),
    ],
)
def test_a_value_of_the_wrong_type_or_out_of_range(
    key: str, value: object, got: str, expected: str, spelled: str
) -> None:
    with pytest.raises(OptionValueError) as caught:
        parse({key: value})
    assert str(caught.value).splitlines() == [
        f"FL202: option {key!r} is {got}, expected {expected}",
        WHERE,
        f"  next: pass {key}: {spelled}",
    ]


def test_options_that_are_no_mapping() -> None:
    with pytest.raises(OptionValueError) as caught:
        parse(["threads"])
    assert str(caught.value).splitlines() == [
        "FL202: options are a mapping from names to values, not list",
        WHERE,
        f"  next: valid options: {VALID}",
    ]


def test_options_that_do_not_fit_together() -> None:
    class Picky(Options, frozen=True, kw_only=True):
        fast: bool = False
        exact: bool = False

        def __post_init__(self) -> None:
            if self.fast and self.exact:
                raise ValueError("fast excludes exact")

    class Backend:
        name = "picky"
        options_type = Picky

    with pytest.raises(OptionValueError, match="the options do not fit together: fast excludes exact"):
        _options.parse(Backend(), {"fast": True, "exact": True})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "meaning"), [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("", False), ("off", False)]
)
def test_a_flag_of_the_environment_is_read_at_each_call(
    monkeypatch: pytest.MonkeyPatch, text: str, meaning: bool
) -> None:
    monkeypatch.setenv("FAIRLEAD_DISABLE", text)
    monkeypatch.setenv("FAIRLEAD_STRICT", text)
    assert (_settings.disabled(), _settings.strict()) == (meaning, meaning)
    monkeypatch.delenv("FAIRLEAD_DISABLE")
    assert not _settings.disabled()


def test_the_backend_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_BACKEND", " onnxrt ")
    assert _settings.backend() == "onnxrt"
    assert _settings.present()["FAIRLEAD_BACKEND"] == " onnxrt "
    monkeypatch.setenv("FAIRLEAD_BACKEND", "")
    assert _settings.backend() is None


def test_a_flag_that_is_neither_true_nor_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_STRICT", "maybe")
    with pytest.raises(ArgumentError) as caught:
        _settings.strict()
    assert str(caught.value).splitlines() == [
        "FL203: FAIRLEAD_STRICT is neither true nor false: 'maybe'",
        "  from: environment variable FAIRLEAD_STRICT",
        "  next: set FAIRLEAD_STRICT=1 or FAIRLEAD_STRICT=0, or unset it",
    ]
