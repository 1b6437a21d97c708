"""Sphinx's settings for the site; ``make docs`` builds it from the pages that ``docs/stage.py`` stages."""

from sphinx.application import Sphinx

project = "Fairlead"
project_copyright = "the Fairlead authors, Apache-2.0"
extensions = ["myst_parser"]
myst_heading_anchors = 6  # links to headings are checked, at every depth
html_theme = "furo"
html_title = "Fairlead"
html_show_sphinx = False
html_copy_source = False
html_use_index = False
smartquotes = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
suppress_warnings = ["misc.highlighting_failure"]  # the grammar of the IR, which is coloured all the same
highlight_language = "none"
"""Blocks that name no language are output of commands."""
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def setup(app: Sphinx) -> None:
    """The pages of ops are reached through their index; each of them in every page's contents would be megabytes."""
    app.connect("source-read", _out_of_the_contents)


def _out_of_the_contents(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("ops/") and page != "ops/index":
        source[0] = "---\norphan: true\n---\n" + source[0]
