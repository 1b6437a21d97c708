"""The files of a wheel, from the templates that ship beside this module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead_conformance._scaffold._names import Names

__all__ = ["ADOPTION", "WHEEL", "rendered"]

ADOPTION: Mapping[str, str] = {
    "src/{package}/capabilities.toml": "capabilities.toml.jinja",
    "src/{package}/known-failures.toml": "known-failures.toml.jinja",
    "tests/test_conformance.py": "adoption.py.jinja",
    ".github/workflows/conformance.yml": "conformance.yml.jinja",
}
"""What a wheel adds to adopt the suite: each path in it, and the template."""

WHEEL: Mapping[str, str] = {
    "pyproject.toml": "pyproject.toml.jinja",
    "README.md": "README.md.jinja",
    "src/{package}/__init__.py": "backend.py.jinja",
    "src/{package}/py.typed": "py.typed.jinja",
    **ADOPTION,
}
"""A whole wheel."""


def rendered(files: Mapping[str, str], names: Names) -> dict[str, str]:
    """The text of each file by its path."""
    import jinja2  # the command line lists this module's commands, and need not wait for it

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fairlead_conformance._scaffold"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # text, TOML, YAML and Python; names are checked
        variable_start_string="<<",  # braces are GitHub's
        variable_end_string=">>",
    )
    words = {field: getattr(names, field) for field in _fields()}
    return {
        path.format(package=names.package): environment.get_template(template).render(words)
        for path, template in files.items()
    }


def _fields() -> Iterable[str]:
    return *Names.__struct_fields__, "class_name"
