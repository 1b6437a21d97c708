"""What docs/memory.md says of weights that are held twice and of what is freed, each measured in its own process."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import pytest

from fairlead._arguments import request_of
from fairlead._compare._format import CELLS
from fairlead.errors import ArgumentError

from .conftest import REPOSITORY, Run

PACKING = ("onnxrt", "openvino", "openxla", "ipex", "tvm")
"""Backends that hold a copy of the weights of products, which docs/memory.md says of them."""

SCRIPT = """
import json, sys
import torch
import fairlead
from fairlead._compare._usage import MemoryMark

def layers(width, count):
    return torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(count))).eval()

torch.set_num_threads(1)
name, model, x = sys.argv[1], layers(4096, 3), torch.randn(4, 4096)
weights = sum(p.nbytes for p in model.parameters()) / 2**20
found = {"weights": weights}
with torch.no_grad():
    expected = model(x)  # every page of the weights is resident
    fairlead.compile(layers(64, 1), backend=name, dynamic=False)(torch.randn(2, 64))  # the SDK is loaded
    for shared in (False,) if name == "inductor" else (True, False):
        asked = {"fallback": "eager", "dynamic": False, "benchmark": False}  # whichever is the quicker
        compiled = fairlead.compile(model, backend=name, share_weights=shared, **asked)
        mark = MemoryMark()
        torch.testing.assert_close(compiled(x), expected)
        memory = mark.since()
        found["shared" if shared else "held"] = memory.held / weights
        found["native"] = compiled.fairlead.placement.native_share
        del compiled
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's high-water mark is read from /proc")
@pytest.mark.parametrize("name", ["inductor", *PACKING])
def test_weights_are_held_as_the_page_says(run: Run, name: str) -> None:
    """In units of the weights, 192 MiB: what a backend holds beyond the model, and with `share_weights`."""
    done = run("-c", SCRIPT, name)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["weights"] > 190
    assert found["native"] == 1.0
    if name in PACKING:
        assert 0.8 < found["held"] < 1.5, found
        assert found["shared"] < 0.5, found
    else:
        assert found["held"] < 0.5, found
    page = Path(REPOSITORY, "docs/memory.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    assert ("| a copy |" in row) is (name in PACKING)


CALLS = """
import ctypes, resource, sys
import torch
import fairlead

class Info(ctypes.Structure):
    _fields_ = [("before", ctypes.c_int * 3), ("hblks", ctypes.c_int), ("after", ctypes.c_int * 6)]

def mapped():  # mallinfo(3): how many blocks are mapped by themselves
    of_heap = ctypes.CDLL(None).mallinfo
    of_heap.restype = Info
    return of_heap().hblks

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        [torch.ones(2**20) for _ in range(8)]  # 4 MiB each
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if "compile" in sys.argv:
    assert fairlead.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).sum() == 4
before = mapped()
block = torch.empty(31 * 2**20, dtype=torch.uint8)
found = mapped() - before
del block
faults()
print(faults(), found)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries do not adapt to what is freed")
def test_what_is_freed_is_kept_for_the_next_call_unless_the_process_says_otherwise(run: Run) -> None:
    """Calls that free 32 MiB fault no page in, and 31 MiB are on the heap; as glibc is told, neither."""

    def numbers(*arguments: str, **environment: str) -> list[int]:
        done = run("-c", CALLS, *arguments, **environment)
        assert done.returncode == 0, done.stderr
        return [int(n) for n in done.stdout.split()]

    faults, mapped = numbers("compile")
    assert (faults < 100, mapped) == (True, 0)
    faults, mapped = numbers("compile", MALLOC_TRIM_THRESHOLD_="131072")
    assert (faults > 1000, mapped) == (True, 1)
    assert numbers()[1] == 1


STEPS = """
import ctypes, resource, sys
import torch
import fairlead

run = fairlead.compile(lambda x: x.sin(), backend="eager")
with torch.set_grad_enabled("train" in sys.argv):
    run(torch.ones(4, requires_grad=True))

libc, size = ctypes.CDLL(None), 30 * 2**20
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [libc.malloc(size) for _ in range(4)]  # more than 64 MiB together
    for block in blocks:
        ctypes.memset(block, 1, size)
    for block in reversed(blocks):
        libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are not told")
@pytest.mark.parametrize(
    ("arguments", "environment", "is_kept"),
    [
        (["train"], {}, True),
        ([], {}, False),
        (["train"], {"MALLOC_TRIM_THRESHOLD_": "1048576"}, False),
        (["train"], {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1048576"}, False),
    ],
    ids=["trains", "does not train", "is told", "is told by a tunable"],
)
def test_a_process_that_trains_keeps_what_a_step_frees(
    run: Run, arguments: list[str], environment: dict[str, str], is_kept: bool
) -> None:
    done = run("-c", STEPS, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    faults = int(done.stdout)
    assert (faults < 10_000) is is_kept, faults


def test_compare_shows_what_is_held_beside_the_peak() -> None:
    assert CELLS[-2:] == ("peak, MiB", "held, MiB")


def test_sharing_is_asked_for_in_options_too_and_is_true_or_false() -> None:
    assert request_of("eager", None, {"share_weights": True}).share_weights
    with pytest.raises(ArgumentError) as caught:
        request_of("eager", None, {"share_weights": "yes"})
    assert caught.value.what == "share_weights is 'yes'"
