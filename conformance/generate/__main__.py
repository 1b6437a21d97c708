"""Makes a case pack, and says what is in it.

    python -m conformance.generate [--processes 2] [--parts DIR] [-o FILE] [--summary FILE] [NAME ...]

``--parts``: a folder that keeps what is done; entries that are in it are not made again. ``NAME``: entries of
PyTorch's database; all of them if none is given.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import msgspec
import torch
from torch.testing._internal import common_methods_invocations as invocations

from conformance.generate._freeze import Frozen, freeze
from conformance.generate._levels import levelled
from conformance.generate._processes import spread
from conformance.generate._summary import summary
from fairlead_conformance._pack import write

VERSION = "1.0"
PACK = Path(__file__).parents[1] / f"src/fairlead_conformance/_pack/cases-{VERSION}.zip"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--parts", type=Path, default=Path("build/pack"))
    parser.add_argument("--one-process", action="store_true", help="make the parts of these entries here")
    parser.add_argument("-o", "--output", type=Path, default=PACK)
    parser.add_argument("--summary", type=Path, default=Path("docs/results/pack.md"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    entries = {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in invocations.op_db}
    names = options.names or sorted(entries)
    options.parts.mkdir(parents=True, exist_ok=True)
    if options.one_process:
        invocations.wrapper_set_seed = _unseeded  # no seed inside a graph
        for name in names:
            print(name, flush=True)
            _part(options.parts, name).write_bytes(msgspec.msgpack.encode(freeze(name, entries[name])))
        return 0
    start = time.monotonic()
    missing = [name for name in names if not _part(options.parts, name).exists()]
    command = [sys.executable, "-m", "conformance.generate", "--one-process", "--parts", str(options.parts)]
    lost = spread(command, missing, options.processes)
    parts = {
        n: msgspec.msgpack.decode(p.read_bytes(), type=Frozen) for n in names if (p := _part(options.parts, n)).exists()
    }
    cases = levelled([case for part in parts.values() for case in part.cases])
    with open(options.output, "wb") as file:
        manifest = write(file, VERSION, cases, {"torch": torch.__version__.partition("+")[0]})
    options.summary.write_text(summary(manifest, options.output, parts, lost), "utf-8")
    print(
        f"{options.output}: {options.output.stat().st_size} bytes, {manifest.counts}, {time.monotonic() - start:.0f} s"
    )
    return 0


def _part(folder: Path, name: str) -> Path:
    return folder / f"{name}.msgpack"


def _unseeded(op: object, *args: object, **kwargs: object) -> object:
    return op(*args, **kwargs)  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
