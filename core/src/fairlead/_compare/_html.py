"""A report as one HTML file that needs no other: the template, the plots and the numbers."""

from __future__ import annotations

import importlib.util
from importlib import resources

from fairlead._compare._data import Report
from fairlead._compare._format import CELLS, busy, cells, declines, problem, speedup, subtitle
from fairlead.errors import ExtraMissingError

__all__ = ["require_report", "to_html"]

NEEDED = ("jinja2", "matplotlib")


def require_report() -> None:
    """Raise `ExtraMissingError` where `to_html` would not work; to be known before hours of measuring."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ExtraMissingError(
            f"the HTML report needs {' and '.join(missing)}: not installed",
            where="fairlead's extra 'report'",
            next="pip install 'fairlead[report]'",
        )


def to_html(report: Report) -> str:
    """The whole page. It refers to nothing outside of itself."""
    require_report()
    import jinja2
    from markupsafe import Markup

    from fairlead._compare._plots import plots, speedup_plot

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(resources.files(__package__).joinpath("report.html.jinja").read_text("utf-8"))
    drawings = [{title: Markup(svg) for title, svg in plots(comparison).items()} for comparison in report.comparisons]
    return template.render(
        report=report,
        drawings=drawings,
        summary=Markup(speedup_plot(report)) if len(report.comparisons) > 1 else "",
        headings=CELLS,
        cells=cells,
        busy=busy,
        declines=declines,
        problem=problem,
        speedup=speedup,
        subtitle=subtitle,
    )
