"""What ``fairlead new-backend`` and ``fairlead-conformance init`` write, and what they refuse to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fairlead.errors import ArgumentError
from fairlead.registry import registry
from fairlead_conformance._scaffold._names import names
from fairlead_conformance._scaffold._render import ADOPTION, WHEEL, rendered
from fairlead_conformance._scaffold.commands import init, new_backend

REPOSITORY = Path(__file__).parents[2]

LONG = "the-longest-name-for-a-compiler1"


CACHES = {"__pycache__", ".ruff_cache", ".mypy_cache", ".pytest_cache"}


def contents(folder: Path) -> dict[str, str]:
    files = [p for p in folder.rglob("*") if p.is_file() and CACHES.isdisjoint(p.relative_to(folder).parts)]
    return {str(p.relative_to(folder)): p.read_text("utf-8") for p in files}


def refusal(error: pytest.ExceptionInfo[ArgumentError]) -> list[str]:
    return str(error.value).splitlines()


def test_the_example_in_the_repository_is_what_is_written() -> None:
    """After a change of a template: fairlead new-backend acme --folder tests/wheels/acme, into an empty folder."""
    assert rendered(WHEEL, names("acme")) == contents(REPOSITORY / "tests/wheels/acme")


@pytest.mark.parametrize("word", ["acme", "My.Chip_2", LONG])
def test_what_is_written_passes_the_linter_whatever_the_name(tmp_path: Path, word: str) -> None:
    """The strict type checker runs on the example in the repository, in ``make lint``."""
    new_backend(word, tmp_path / "wheel")
    for arguments in ["check"], ["format", "--check"]:
        command = [sys.executable, "-m", "ruff", *arguments, "wheel"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr


def test_all_names_follow_from_one_word() -> None:
    found = names("My.Chip_2")
    assert (found.name, found.distribution, found.package) == ("my_chip_2", "fairlead-my-chip-2", "fairlead_my_chip_2")
    assert found.class_name == "MyChip2"


@pytest.mark.parametrize(
    "word", ["", "2chip", "-chip", "chip-", "my chip", "../chip", "chíp", "class", f"{LONG}x", "a\n"]
)
def test_a_word_that_cannot_name_a_wheel_and_a_module_is_refused(word: str) -> None:
    with pytest.raises(ArgumentError) as error:
        names(word)
    assert refusal(error)[0] == f"FL203: {word!r} cannot name a backend"
    assert "such as 'my-chip'" in refusal(error)[2]


@pytest.mark.parametrize(
    ("word", "owner"),
    [
        ("Onnx", "fairlead-onnx, of the Fairlead project"),
        ("conformance", "fairlead-conformance, of the Fairlead project"),
        ("capture", "fairlead.torch.capture, where torch would look for the backend"),
    ],
)
def test_a_name_that_is_taken_is_refused(word: str, owner: str) -> None:
    with pytest.raises(ArgumentError) as error:
        names(word)
    assert refusal(error)[:2] == [f"FL203: the name {word.lower()!r} is taken", f"  from: {owner}"]


def test_the_name_of_another_installed_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "rival-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlead.backends]\nchip = rival:backend\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry.refresh()
    try:
        with pytest.raises(ArgumentError) as error:
            names("chip")
    finally:
        monkeypatch.undo()
        registry.refresh()
    assert refusal(error)[1] == "  from: rival 1.0 (rival:backend)"


def test_a_folder_with_files_is_refused_and_force_keeps_them(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    with pytest.raises(ArgumentError) as error:
        new_backend("chip", tmp_path)
    assert refusal(error)[0] == f"FL203: {tmp_path} has files in it"
    assert set(contents(tmp_path)) == {"README.md", "notes.txt"}
    new_backend("chip", tmp_path, force=True)
    assert (readme.read_text(), (tmp_path / "notes.txt").read_text()) == ("mine", "mine too")
    assert {**rendered(WHEEL, names("chip")), "README.md": "mine", "notes.txt": "mine too"} == contents(tmp_path)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wheel").write_text("mine")
    with pytest.raises(ArgumentError) as error:
        new_backend("chip", tmp_path / "wheel")
    assert refusal(error)[0].endswith("wheel is a file")


def test_the_workflow_builds_installs_runs_verifies_and_keeps_the_report() -> None:
    workflow = yaml.safe_load(rendered(ADOPTION, names("chip"))[".github/workflows/conformance.yml"])
    steps = workflow["jobs"]["conformance"]["steps"]
    named = {step["name"]: step for step in steps if "name" in step}
    assert list(named) == ["Build", "Install", "Run", "Verify", "Show", "Keep the report"]
    assert "--backend=chip --level=L1 --report=report" in named["Run"]["run"]
    assert named["Keep the report"]["with"]["path"] == "report"
    assert all(named[name]["if"] == "always()" for name in ("Verify", "Show", "Keep the report"))


PROJECT = """
[project]
name = "chip-tools"

[project.entry-points."fairlead.backends"]
chip = "chip_tools.compiler:backend"
"""


def test_an_existing_wheel_adopts_the_suite_and_keeps_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "chip_tools").mkdir()
    (tmp_path / "chip_tools/capabilities.toml").write_text("mine")
    init(tmp_path)
    added = {"chip_tools/known-failures.toml", "tests/test_conformance.py", ".github/workflows/conformance.yml"}
    assert set(contents(tmp_path)) == {"pyproject.toml", "chip_tools/capabilities.toml", *added}
    assert (tmp_path / "chip_tools/capabilities.toml").read_text() == "mine"
    assert '--backend=chip"' in (tmp_path / "tests/test_conformance.py").read_text()
    assert f"kept  {tmp_path}/chip_tools/capabilities.toml" in capsys.readouterr().out.splitlines()
    before = contents(tmp_path)
    init(tmp_path)
    assert contents(tmp_path) == before


def test_capabilities_go_beside_the_package_under_src(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "src").mkdir()
    init(tmp_path)
    assert (tmp_path / "src/chip_tools/capabilities.toml").read_text().startswith("# What the backend says of itself")


def test_one_of_several_backends_has_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT + 'other = "chip_tools.other:backend"\n')
    with pytest.raises(ArgumentError) as error:
        init(tmp_path)
    assert refusal(error)[::2] == ["FL203: the project has 2 backends", "  next: pass --backend, one of: chip, other"]
    with pytest.raises(ArgumentError, match="the project has no backend 'chop'"):
        init(tmp_path, "chop")
    init(tmp_path, "other")
    assert '--backend=other"' in (tmp_path / "tests/test_conformance.py").read_text()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "no project in "),
        ("[project", "no project in "),
        ("[project]\nname = 'x'", "the project has no entry point of the group 'fairlead.backends'"),
    ],
)
def test_a_folder_without_a_backend_s_project_is_refused(tmp_path: Path, text: str | None, what: str) -> None:
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ArgumentError) as error:
        init(tmp_path)
    assert refusal(error)[0].startswith(f"FL203: {what}")
