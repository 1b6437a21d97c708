"""The arguments of ``compile``, checked and put together with the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead import _defaults
from fairlead._compile import Request, Rng
from fairlead._registry import registry
from fairlead._verified import Verify
from fairlead.backend import Precision
from fairlead.errors import ArgumentError

_DEFAULT_FALLBACK = ("inductor", "eager")


def request_of(
    backend: str | None,
    mode: str | None,
    options: Mapping[str, Any],
    fallback: Sequence[str] | str | bool | None = _DEFAULT_FALLBACK,
    max_fallback: int | float | None = None,
    verify: Verify | None = None,
    rng: Rng | None = None,
    precision: Precision | None = None,
    share_weights: bool = False,
    benchmark: bool | None = None,
) -> Request:
    """The request that the arguments make; all but ``mode`` may also be in ``options``.

    A ``precision`` there is the backend's own option where it is none of ours.

    Raises `ArgumentError` for what does not fit; options of the backend are checked when it is loaded.
    """
    rest = dict(options)
    given = rest.pop("backend", None) or backend
    named = given or _defaults.default()
    if not isinstance(named, str):
        raise _argument(f"backend is {named!r}, not a name", "pass a name that `fairlead backends` lists")
    fallback = _fallback(rest.pop("fallback", fallback))
    budget = _budget(rest.pop("max_fallback", max_fallback))
    verified = _verify(rest.pop("verify", verify))
    drawn = _rng(rest.pop("rng", rng))
    if rest.get("precision") in ("highest", "high", "medium"):
        precision = rest.pop("precision")
    shared = _flag(
        "share_weights",
        rest.pop("share_weights", share_weights),
        "pass True where no backend may hold weights of its own, or False",
    )
    tried = _benchmark(rest.pop("benchmark", benchmark), fallback, budget)
    by_device = {} if given else _defaults.by_device()
    return Request(
        named,
        _with_mode(named, mode, rest),
        fallback,
        budget,
        by_device,
        verified,
        drawn,
        _precision(precision),
        shared,
        tried,
    )


def _fallback(value: object) -> tuple[str, ...]:
    if value is None or value is False:
        return ()
    if value is True:
        return _DEFAULT_FALLBACK
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise _argument(f"fallback is {value!r}", 'pass backend names, as in fallback=("inductor", "eager"), or ()')
    for name in names:
        if name not in _DEFAULT_FALLBACK:
            registry.get(name)
    return tuple(names)


def _budget(value: object) -> int | float | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    if isinstance(value, float) and 0.0 <= value <= 1.0:
        return value
    raise _argument(
        f"max_fallback is {value!r}", "pass a number of nodes (int, from 0) or a share of them (float, 0.0 to 1.0)"
    )


def _verify(value: object) -> Verify | None:
    match value:
        case None | "first" | "always":
            return value
        case float() if 0.0 <= value <= 1.0:
            return value or None
    raise _argument(f"verify is {value!r}", 'pass "first", "always" or a share of the calls (float, 0.0 to 1.0)')


def _rng(value: object) -> Rng | None:
    match value:
        case None | "eager":
            return value
    raise _argument(f"rng is {value!r}", 'pass "eager" for the random numbers of eager mode, or leave it out')


def _precision(value: object) -> Precision | None:
    match value:
        case None | "highest" | "high" | "medium":
            return value
    raise _argument(f"precision is {value!r}", 'pass "highest", "high" or "medium", or leave it out')


def _flag(name: str, value: object, advice: str) -> bool:
    if isinstance(value, bool):
        return value
    raise _argument(f"{name} is {value!r}", advice)


def _benchmark(value: object, fallback: tuple[str, ...], budget: int | float | None) -> bool | None:
    if value is None:
        return None
    tries = _flag("benchmark", value, "pass True to run each graph on the quickest backend, or False")
    if tries and not fallback:
        raise _argument("benchmark has no other backend to compare with", 'name some: fallback=("inductor", "eager")')
    if tries and budget is not None:
        raise _argument(
            f"benchmark may leave a whole graph to another backend, and max_fallback is {budget!r}", "pass one of them"
        )
    return tries


def _with_mode(name: str, mode: str | None, options: dict[str, Any]) -> dict[str, Any]:
    if mode is None or mode == "default":
        return options
    if "mode" not in registry.get(name).options_type.__struct_fields__:
        raise _argument(
            f"backend {name!r} has no modes; mode is {mode!r}", "leave mode out, or name a backend that has"
        )
    if "mode" in options:
        raise _argument("mode is given twice, as an argument and as an option", "pass it once")
    return {**options, "mode": mode}


def _argument(what: str, advice: str) -> ArgumentError:
    return ArgumentError(what, where="fairlead.compile", next=advice)
