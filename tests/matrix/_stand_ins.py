"""Stand-ins for CUDA's libraries: with them a CUDA build of torch imports and runs on a CPU, without the SDK.

Each missing library becomes one of a few kilobytes that exports what torch's own libraries import from it. Every
function answers "no device" (cudaErrorNoDevice, 100), but for those that run while torch is imported.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection

__all__ = ["write_stand_ins"]

_VENDOR = re.compile(r"lib(cu[a-z]+|nccl|nv[a-zA-Z]+|nvshmem_host)\.so", re.ASCII | re.IGNORECASE)
_SYMBOL = re.compile(r"(__cuda|cu[A-Z]|cu(blas|da|dnn|fft|pti|rand|solver|sparse|File)|nccl|nv)")

_BODIES = {
    "__cudaRegisterFatBinary": "static void *all[4]; void **__cudaRegisterFatBinary(void *binary) { return all; }",
    "cudaGetDeviceCount": "int cudaGetDeviceCount(int *count) { if (count) *count = 0; return 100; }",
    "cudaGetLastError": "int cudaGetLastError(void) { return 0; }",
    "cudaPeekAtLastError": "int cudaPeekAtLastError(void) { return 0; }",
    "cudaRuntimeGetVersion": "int cudaRuntimeGetVersion(int *version) { if (version) *version = 0; return 0; }",
    "cudaDriverGetVersion": "int cudaDriverGetVersion(int *version) { if (version) *version = 0; return 0; }",
    "cudnnGetVersion": "unsigned long cudnnGetVersion(void) { return 90000; }",
}
_TEXTS = (
    "cudaGetErrorString",
    "cudaGetErrorName",
    "cudnnGetErrorString",
    "cublasGetStatusString",
    "ncclGetErrorString",
)
_BODIES |= {name: f'const char *{name}(int code) {{ return "a stand-in for CUDA"; }}' for name in _TEXTS}


class _Symbol(NamedTuple):
    name: str
    version: str
    is_data: bool


class _Imports(NamedTuple):
    """What one library wants: the libraries, and for each of them (or none, where it does not say) the symbols."""

    needed: tuple[str, ...]
    symbols: dict[str, set[_Symbol]]


def write_stand_ins(site_packages: Path) -> list[Path]:
    """Write what torch's libraries in ``site_packages`` need and do not find; needs a C compiler."""
    folder = site_packages / "torch" / "lib"
    wanted: dict[str, set[_Symbol]] = defaultdict(set)
    present = {path.name for path in folder.iterdir()}
    for path in sorted(folder.glob("lib*.so*")):
        imports = _imports(path)
        missing = [name for name in imports.needed if _VENDOR.match(name) and name not in present]
        for name in missing:
            wanted[name] |= imports.symbols.get(name, set())
        if missing:
            # whoever looks such a symbol up searches all libraries, so that any of them may have it
            wanted[missing[0]] |= imports.symbols.get("", set())
    return [_compile(folder / name, symbols) for name, symbols in sorted(wanted.items())]


def _imports(path: Path) -> _Imports:
    with path.open("rb") as file:
        elf = ELFFile(file)
        needed: list[str] = []
        versions: dict[int, tuple[str, str]] = {}
        indices: list[int] = []
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                needed += [tag.needed for tag in section.iter_tags("DT_NEEDED")]
            elif isinstance(section, GNUVerNeedSection):
                for library, entries in section.iter_versions():
                    versions |= {e["vna_other"] & 0x7FFF: (library.name, e.name) for e in entries}
            elif isinstance(section, GNUVerSymSection):
                indices = [s["ndx"] & 0x7FFF if isinstance(s["ndx"], int) else 0 for s in section.iter_symbols()]
        symbols: dict[str, set[_Symbol]] = defaultdict(set)
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF" or not symbol.name:
                continue
            library, version = versions.get(indices[index] if indices else 0, ("", ""))
            if library or _SYMBOL.match(symbol.name):
                symbols[library].add(_Symbol(symbol.name, version, symbol["st_info"]["type"] == "STT_OBJECT"))
    return _Imports(tuple(needed), symbols)


def _compile(path: Path, symbols: set[_Symbol]) -> Path:
    names: dict[str, list[str]] = defaultdict(list)
    for symbol in sorted(symbols):
        names[symbol.version].append(symbol.name)
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder, "source.c"), Path(folder, "versions")
        source.write_text("".join(f"{_body(symbol)}\n" for symbol in sorted(symbols)))
        blocks = [f"{version} {{ global: {'; '.join(found)}; }};\n" for version, found in names.items() if version]
        script.write_text("".join(blocks))
        compiler = shutil.which("cc") or "gcc"
        command = [compiler, "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}", "-o", path, source]
        subprocess.run([*command, *([f"-Wl,--version-script={script}"] if blocks else [])], check=True)
    return path


def _body(symbol: _Symbol) -> str:
    if symbol.is_data:
        return f"char {symbol.name}[4096];"
    answer = 0 if symbol.name.startswith("__cuda") else 100
    return _BODIES.get(symbol.name, f"long {symbol.name}(void) {{ return {answer}; }}")
