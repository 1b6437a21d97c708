"""A report as one HTML page that needs no other file: figures, bars, a map of ops and dtypes, failures, all cases."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from fairlead_conformance._case import Level
from fairlead_conformance._report._data import Report
from fairlead_conformance._report._summary import KINDS, WORDS, bars, groups, heat, kind, level_name
from fairlead_conformance._status import Status

__all__ = ["MEANINGS", "render", "to_html"]

MEANINGS = {
    Level.L0: "the backend loads",
    Level.L1: "core inference",
    Level.L2: "inference in full",
    Level.L3: "training",
    Level.L4: "hardened",
}


def to_html(report: Report) -> str:
    """The page of one report."""
    families = bars(report.results)
    return render(
        "_report/report.html.jinja",
        report=report,
        bars=families,
        total={name: sum(bar.counts[name] for bar in families) for name in KINDS},
        groups=groups(report.results),
        beyond=groups(report.beyond),
        heat=heat(report.results),
        facts=_facts(report),
        data=embedded(_cases(report)),
        script=Markup(_text("_report/report.js")),
    )


def render(template: str, **values: Any) -> str:
    """A template of this wheel, with what all of them use."""
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(_text("_report/style.css")),
            levels=tuple(Level),
            meanings=MEANINGS,
            kinds=KINDS,
            words=WORDS,
            level_name=level_name,
            **values,
        )
    )


def embedded(data: object) -> Markup:
    """JSON for a script element: nothing in it can end the element."""
    return Markup(msgspec.json.encode(data).decode().replace("<", "\\u003c"))


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _text(name: str) -> str:
    return resources.files("fairlead_conformance").joinpath(name).read_text("utf-8")


def _facts(report: Report) -> list[tuple[str, str]]:
    run, machine, backend = report.run, report.machine, report.backend
    pack = f"{report.pack.version}, {report.pack.sha256}" if report.pack else "none"
    facts = {
        "Started": f"{run.started:%Y-%m-%d %H:%M} UTC",
        "Took": f"{run.seconds:,.0f} s",
        "Level run": f"{run.level.name}, {MEANINGS[run.level]}",
        "Device": f"{run.device} ({machine.device})" if machine.device else run.device,
        "Seed": str(run.seed),
        "Shards": ", ".join(map(str, run.shards)),
        "Fairlead": machine.fairlead,
        "torch": machine.torch,
        "Python": machine.python,
        "Platform": machine.platform,
        "Looser numbers": ", ".join(backend.numerics) or "none",
        "Borrowed kernels": _listed(backend.capabilities, "extern_aten"),
        "Builds on": _listed(backend.capabilities, "builds_on"),
        "Dtypes": _listed(backend.capabilities, "dtypes"),
        "Case pack": pack,
        "Suite": f"{report.suite.version}, {report.suite.sha256}",
        "Command": " ".join(run.command),
        "Digest": report.digest,
    }
    return list(facts.items())


def _listed(capabilities: Mapping[str, Any], name: str) -> str:
    return ", ".join(capabilities.get(name, ())) or "none"


def _cases(report: Report) -> dict[str, object]:
    """The results with every message once: many are the same."""
    statuses = list(Status)
    details: dict[str, int] = {}
    cases = [
        (r.id, statuses.index(r.status), details.setdefault(r.detail, len(details)), round(r.seconds, 4))
        for r in (*report.results, *report.beyond)
    ]
    return {"details": list(details), "statuses": [(s, kind(s)) for s in statuses], "cases": cases}
