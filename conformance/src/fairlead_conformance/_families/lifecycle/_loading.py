"""Finding, importing, probing and asking, all without a device."""

from __future__ import annotations

import sys

import msgspec

from fairlead.backend import Options, Probe, Support
from fairlead.ir import Builder, DType, Node, TensorType, Value
from fairlead.registry import registry
from fairlead_conformance._case import Level
from fairlead_conformance._families.lifecycle._question import asked, fresh, question, wheel_of
from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

_IMPORTED = """
import importlib, json, os, sys, threading, warnings
def state():
    import locale, signal
    return {"the environment": dict(os.environ), "the working folder": os.getcwd(), "sys.path": list(sys.path),
            "the threads": threading.active_count(), "the locale": locale.setlocale(locale.LC_ALL),
            "signals": str([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]),
            "the recursion limit": sys.getrecursionlimit(), "the excepthook": id(sys.excepthook)}
import fairlead.backend, fairlead.registry
before, modules = state(), set(sys.modules)
importlib.import_module(sys.argv[1])
after = state()
print(json.dumps({"changed": [k for k in before if before[k] != after[k]],
                  "loaded": sorted({m.split(".")[0] for m in set(sys.modules) - modules})}))
"""

_DESCRIBED = """
import json, sys
import fairlead
(found,) = [b for b in fairlead.list_backends() if b.name == sys.argv[1]]
print(json.dumps({"reason": found.reason, "dtypes": found.capabilities and list(found.capabilities.dtypes),
                  "imported": sys.argv[2] in sys.modules, "torch": "torch" in sys.modules}))
"""

_PROBED = """
import json, sys
from fairlead.registry import registry
backend = registry.get(sys.argv[1])
if sys.argv[2] == "bare":
    kept = {"fairlead", "msgspec", sys.argv[3], *sys.stdlib_module_names}
    class Bare:
        def __init__(self, finder): self.finder = finder
        def __getattr__(self, name): return getattr(self.finder, name)
        def find_spec(self, name, *rest):
            return self.finder.find_spec(name, *rest) if name.split(".")[0] in kept else None
    sys.meta_path[:] = [Bare(finder) for finder in sys.meta_path]
probes = [backend.probe() for _ in range(2)]
print(json.dumps([{"type": type(p).__name__, "ok": p.ok, "reason": p.reason} for p in probes]))
"""


@question(Level.L0)
def its_name_is_found(subject: Subject, seen: Observation) -> None:
    found = registry.get(subject.name)  # raises where no entry point has the name
    asked(found.name == subject.name, seen, Status.FAIL_IMPORT, "name", f"it calls itself {found.name!r}")


@question(Level.L0)
def its_version_of_the_contract_is_accepted(subject: Subject, seen: Observation) -> None:
    registry.get(subject.name)  # raises for a version that core does not accept
    seen.compared += 1


@question(Level.L0, cost=1)
def importing_it_loads_no_sdk(subject: Subject, seen: Observation) -> None:
    _, module = wheel_of(subject)
    told = fresh(_IMPORTED, module)
    allowed = {*sys.stdlib_module_names, "fairlead", "msgspec", "typing_extensions", module.partition(".")[0]}
    foreign = [name for name in told["loaded"] if name not in allowed and not name.startswith(("fairlead_", "_"))]
    asked(not foreign, seen, Status.FAIL_IMPORT, "import-loads", f"importing {module} loads {', '.join(foreign)}")


@question(Level.L0, cost=1)
def importing_it_changes_nothing(subject: Subject, seen: Observation) -> None:
    _, module = wheel_of(subject)
    changed = fresh(_IMPORTED, module)["changed"]
    asked(not changed, seen, Status.FAIL_STATE, "import-changes", f"importing it changed {', '.join(changed)}")


@question(Level.L0, cost=1)
def its_capabilities_are_read_without_importing_it(subject: Subject, seen: Observation) -> None:
    _, module = wheel_of(subject)
    told = fresh(_DESCRIBED, subject.name, module)
    asked(told["dtypes"] is not None, seen, Status.FAIL_IMPORT, "capabilities", told["reason"])
    loaded = [name for name in ("imported", "torch") if told[name]]
    asked(not loaded, seen, Status.FAIL_IMPORT, "capabilities", "listing backends imports it, or torch")
    declared = list(registry.get(subject.name).capabilities.dtypes)
    asked(told["dtypes"] == declared, seen, Status.FAIL_IMPORT, "capabilities", "the file and the object differ")


@question(Level.L0)
def its_capabilities_make_sense(subject: Subject, seen: Observation) -> None:
    capabilities = registry.get(subject.name).capabilities
    asked(bool(capabilities.devices), seen, Status.FAIL_IMPORT, "devices", "it runs on no device")
    unknown = set(capabilities.dtypes) - set(DType)
    asked(bool(capabilities.dtypes) and not unknown, seen, Status.FAIL_IMPORT, "dtypes", f"unknown: {unknown or 'all'}")


@question(Level.L0, cost=2)
def probing_never_raises(subject: Subject, seen: Observation) -> None:
    first, second = (subject.backend.probe() for _ in range(2))
    asked(isinstance(first, Probe), seen, Status.FAIL_IMPORT, "probe", f"probe() returned {type(first).__name__}")
    asked(first == second, seen, Status.FAIL_IMPORT, "probe", "two probes differ")
    _, module = wheel_of(subject)
    for probe in fresh(_PROBED, subject.name, "whole", module.partition(".")[0]):
        asked(probe["ok"] == first.ok, seen, Status.FAIL_IMPORT, "probe", "another answer in a fresh process")


@question(Level.L0, cost=1)
def probing_without_its_sdk_says_so(subject: Subject, seen: Observation) -> None:
    _, module = wheel_of(subject)
    for probe in fresh(_PROBED, subject.name, "bare", module.partition(".")[0]):
        told = probe["type"] == "Probe" and (probe["ok"] or probe["reason"])
        asked(bool(told), seen, Status.FAIL_IMPORT, "probe", "where nothing is installed, its probe gives no reason")


@question(Level.L0)
def its_options_have_defaults(subject: Subject, seen: Observation) -> None:
    kind = registry.get(subject.name).options_type
    asked(issubclass(kind, Options), seen, Status.FAIL_IMPORT, "options", f"{kind.__name__} is no Options")
    try:
        options = kind()
    except TypeError as error:
        raise Failed(Status.FAIL_IMPORT, "options", str(error)) from error
    again = msgspec.convert(msgspec.to_builtins(options), kind)
    asked(again == options, seen, Status.FAIL_IMPORT, "options", "its defaults do not survive being written down")
    try:
        msgspec.convert({"no_such_option": 1}, kind)
    except msgspec.ValidationError:
        return
    raise Failed(Status.FAIL_ERRORS, "options", "an option that does not exist is accepted")


def _nodes() -> list[Node]:
    b = Builder()
    for dtype in ("f32", "f16", "i64", "bool", "c64"):
        for shape in ("3, 4", "n, 4", "0", ""):
            x = b.input(f"{dtype}[{shape}]")
            b.output(b.op("aten.clone.default", x))
            if dtype in ("f32", "f16"):
                b.output(b.op("aten.relu.default", x))
    unknown = Value(9_000, TensorType(DType.f32, (2,)))
    return [*b.graph().nodes, Node("acme_never.heard_of.default", (unknown,), (Value(9_001, unknown.type),))]


@question(Level.L0)
def asking_changes_no_answer(subject: Subject, seen: Observation) -> None:
    backend, nodes = subject.backend, _nodes()

    def answers(order: list[Node]) -> dict[int, Support]:
        try:
            return {id(node): backend.supports(node) for node in order}
        except Exception as error:
            detail = f"supports() raised {type(error).__name__}: {error}"
            raise Failed(Status.FAIL_COMPILE, "supports-never-raises", detail) from error

    first, second = answers(nodes), answers(nodes[::-1])
    differing = [node.op for node in nodes if first[id(node)] != second[id(node)]]
    asked(not differing, seen, Status.FAIL_NONDETERMINISM, "supports-is-pure", f"another answer for {differing[:1]}")
    mute = [n.op for n in nodes if not first[id(n)].accepted and not first[id(n)].reason]
    asked(not mute, seen, Status.FAIL_ERRORS, "reasons", f"it declines {', '.join(mute[:3])} without a reason")
