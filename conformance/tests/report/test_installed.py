"""The suite knows its own files: by one hash, and by what its wheel's RECORD says of each."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from fairlead_conformance._report import installed_suite
from fairlead_conformance._report._digest import modified

FILES = {"__init__.py": b"", "_case.py": b"x = 1\n", "_pack/pack.bin": b"\x00\x01"}


def installed(folder: Path) -> Path:
    """A package as a wheel installs it, with the RECORD of its files."""
    package, info = folder / "fairlead_conformance", folder / "fairlead_conformance-0.1.0.dist-info"
    info.mkdir()
    rows = ["fairlead_conformance-0.1.0.dist-info/RECORD,,"]
    for name, content in FILES.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        kept = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"fairlead_conformance/{name},sha256={kept},{len(content)}")
    (info / "RECORD").write_text("\n".join(rows))
    (package / "__pycache__").mkdir()
    (package / "__pycache__/_case.pyc").write_bytes(b"compiled")
    return package


def test_a_wheel_that_nobody_touched_is_not_modified(tmp_path: Path) -> None:
    assert modified(installed(tmp_path)) == ()


def test_files_that_were_changed_added_or_removed_are_named(tmp_path: Path) -> None:
    package = installed(tmp_path)
    (package / "_case.py").write_bytes(b"x = 2\n")
    (package / "_cheat.py").write_bytes(b"")
    (package / "_pack/pack.bin").unlink()
    names = ("_case.py", "_cheat.py", "_pack/pack.bin")
    assert modified(package) == tuple(f"fairlead_conformance/{name}" for name in names)


def test_files_without_a_record_have_nothing_to_be_compared_with(tmp_path: Path) -> None:
    package = installed(tmp_path)
    (package.parent / "fairlead_conformance-0.1.0.dist-info/RECORD").write_text("_editable.pth,,")
    (package / "_case.py").write_bytes(b"x = 2\n")
    assert modified(package) == ()


@pytest.mark.parametrize("name", ["_case.py", "_pack/pack.bin", "new.py"])
def test_the_hash_of_the_suite_is_of_every_file(tmp_path: Path, name: str) -> None:
    package = installed(tmp_path)
    before = installed_suite(package)
    installed_suite.cache_clear()
    (package / "__pycache__/more.pyc").write_bytes(b"compiled")
    assert installed_suite(package) == before
    installed_suite.cache_clear()
    (package / name).write_bytes(b"else")
    assert installed_suite(package).sha256 != before.sha256
