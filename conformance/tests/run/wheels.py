"""A backend that does what its graph is called, and a family of cases that ask for it."""

from __future__ import annotations

from pathlib import Path

BACKEND = """
import ctypes, os, signal, subprocess, sys, tempfile, threading, time

from fairlead.backend import Capabilities, NoOptions, Probe, Support


def segfault():
    ctypes.string_at(0)

def segfault_deep_down(depth=60):
    if depth:
        segfault_deep_down(depth - 1)
    ctypes.string_at(0)

def segfault_beside_threads():
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    ctypes.string_at(0)

def abort_in_a_native_thread():
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.abort, ctypes.c_void_p), None)
    time.sleep(1000)

def hang():
    time.sleep(1000)

def exit_at_once():
    print("last words", flush=True)
    os._exit(3)

def allocate():
    held = []
    while True:
        held.append(bytearray(b"x" * 2**24))

def hoard():
    globals().setdefault("hoarded", []).append(bytearray(b"x" * (3 * 2**27)))

def flood():
    for _ in range(100):
        os.write(1, b"y" * 2**20)

def leave():
    sys.exit(0)

def interrupt():
    raise KeyboardInterrupt

def close_descriptors():
    os.closerange(0, 1000)

def kill_the_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)

def kill_the_group():
    os.kill(0, signal.SIGKILL)

def leave_children():
    subprocess.Popen(["sleep", os.environ["LEFT_BEHIND"]])
    subprocess.Popen(["sleep", os.environ["LEFT_BEHIND"]], start_new_session=True)

def abandon_a_grandchild():
    if os.fork() == 0:
        os.setsid()
        subprocess.Popen(["sleep", os.environ["LEFT_BEHIND"]])
        os._exit(0)
    os.wait()
    ctypes.string_at(0)

def return_twice():
    os.fork()

def scribble():
    for descriptor in range(3, 30):
        try:
            os.write(descriptor, b"no JSON\\n")
        except OSError:
            pass

def leave_files():
    tempfile.mkdtemp()

def fill_a_cache():
    open(os.path.join(tempfile.gettempdir(), "cache"), "x").close()

def find_the_cache():
    open(os.path.join(tempfile.gettempdir(), "cache")).close()

def hang_over_half_a_file():
    half = os.path.join(tempfile.gettempdir(), "half")
    tidy = "trap 'rm -f $0; exit' TERM; touch $0; while :; do sleep 0.1; done"
    subprocess.Popen(["sh", "-c", tidy, half])
    time.sleep(1000)

def find_no_half_file():
    if os.path.exists(os.path.join(tempfile.gettempdir(), "half")):
        raise RuntimeError("half a file is left")

def wait():
    time.sleep(float(os.environ.get("WAIT", "0")))

costly_wait = wait

def behave():
    pass

def together():
    open("tried", "x").close()
    os._exit(3)

def be_first():
    if "been" in globals():
        raise RuntimeError("another case was in this process before")
    globals()["been"] = True


class Backend:
    name = "hostile"
    api_version = 1
    capabilities = Capabilities(devices=("cpu",), dtypes=("f32",))
    options_type = NoOptions

    def probe(self):
        return Probe(ok=True, devices=("cpu",), versions={"sdk": "1.2"})

    def supports(self, node):
        return Support.yes()

    def compile(self, graph, options, constants):
        globals().get(graph.name, behave)()


backend = Backend()
"""

FAMILY = """
from fairlead.ir import Builder
from fairlead_conformance import Case, Declined, Failed, Level, Status

NAMES = {names!r}


def cases():
    return [
        Case(
            id=f"acts/{{name}}/f32/s{{n:03}}",
            level=Level.L1,
            dtypes=("f32",),
            cost=5.0 if name.startswith("costly") else 0.05,
        )
        for n, name in enumerate(NAMES)
    ]


def example(case, subject):
    if not case.subject.startswith("beside"):
        raise Declined({{}})
    import torch  # here alone: every process of a run would wait for it

    builder = Builder()
    builder.output(builder.op("aten.neg.default", builder.input("f32[2]", "x")))
    return builder.graph(), [torch.ones(2)]


def run(case, subject, seen):
    if case.subject == "decline":
        raise Declined({{"aten.sin.default": "no rule"}})
    if case.subject == "mismatch":
        raise Failed(Status.FAIL_MISMATCH, "values", "output 0 is wrong")
    builder = Builder(case.subject)
    builder.output(builder.input("f32[2]", "x"))
    subject.backend.compile(builder.graph(), subject.options, {{}})
    seen.compared += 1
"""


FUZZ = """
import itertools, os

from fairlead_conformance import Case, Failed, Level, Status


def cases():
    return []


def endless(seed):
    for number in itertools.count(seed * 1000):
        yield Case(id=f"fuzz/base/any/s{number:09}", level=Level.L4)


def run(case, subject, seen):
    number = int(case.id.rpartition("/s")[2])
    if number == subject.seed * 1000 + 3:
        raise Failed(Status.FAIL_MISMATCH, "values", "output 0 is wrong")
    if number == subject.seed * 1000 + 4:
        os._exit(3)
    seen.compared += 1
"""


def install(folder: Path, names: tuple[str, ...], source: str = BACKEND) -> None:
    """A wheel ``vendor-hostile`` 2.0, and two families: ``acts``, of one case for each name, and ``fuzz``."""
    package = folder / "vendor_hostile"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source)
    (package / "capabilities.toml").write_text('devices = ["cpu"]\ndtypes = ["f32"]\n')
    info = folder / "vendor_hostile-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-hostile\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[fairlead.backends]\nhostile = vendor_hostile:backend\n")
    (folder / "acts.py").write_text(FAMILY.format(names=names))
    (folder / "fuzz.py").write_text(FUZZ)
