"""Fetch anew the files of others that are in this wheel, with npm, and check that they are those that were reviewed.

``python core/vendor.py`` (``make vendor``) does it; another release is a change of `PACKAGE` and of the hashes below.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "@dagrejs/dagre@3.1.3"

TARGET = Path(__file__).parent / "src/fairlead/_page"

FILES = {
    "package/dist/dagre.min.js": ("dagre.min.js", "54a503e346f93ca0bb10abe7999587e037262935687aca45eb4e4b0f64bbb578"),
    "package/LICENSE": ("dagre.LICENSE", "6a349742a6cb219d5a2fc8d0844f6d89a6efc62e20c664450d884fc7ff2d6015"),
}
"""Of the package's files those that are taken: what they are called here, and their SHA-256."""


def main() -> None:
    """Replace the files, all or none."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, PACKAGE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as tar:
            fetched = {member: _content(tar, member) for member in FILES}
    for member, (_, expected) in FILES.items():
        if (found := hashlib.sha256(fetched[member]).hexdigest()) != expected:
            sys.exit(f"{PACKAGE} has another {member}: sha256 {found}")
    for member, (name, _) in FILES.items():
        (TARGET / name).write_bytes(fetched[member])


def _content(tar: tarfile.TarFile, member: str) -> bytes:
    file = tar.extractfile(member)
    assert file is not None, f"{member} is no plain file"
    return file.read()


if __name__ == "__main__":
    main()
