"""The suite under pytest: options, an item for each case, and the report at the end; alone or under pytest-xdist.

Without xdist the cases run in a pool of workers ahead of the items, which wait for their results. Under xdist each of
its workers has a pool of one, and the results come together in the controller, which alone has a log and a report.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.errors import FairleadError
from fairlead_conformance._case import Case, Level
from fairlead_conformance._report import Report
from fairlead_conformance._result import Result
from fairlead_conformance._run import Isolation, Session, Settings, Shard, duration, fuzzed, pool_of, seed_of, size
from fairlead_conformance._run._here import Here
from fairlead_conformance._run._messages import Ready
from fairlead_conformance._run._pool import Pool
from fairlead_conformance._run._settings import cores
from fairlead_conformance._run._summary import is_red, summary
from fairlead_conformance._status import Status

__all__ = ["Conformance", "add_options"]

CASES = Path(__file__).with_name("test_cases.py")

OPTIONS: dict[str, dict[str, Any]] = {
    "backend": {"metavar": "NAME", "help": "the backend to judge, by the name of its entry point"},
    "level": {"default": "L1", "choices": [level.name for level in Level], "help": "L0 to L4 (default: L1)"},
    "report": {"metavar": "DIR", "help": "a folder for the log and the report"},
    "device": {"default": "cpu", "help": "the device that it is judged on: cpu, cuda, cuda:1 (default: cpu)"},
    "resume": {"action": "store_true", "help": "go on with the run in that folder"},
    "shard": {"metavar": "K/N", "default": "1/1", "help": "the K-th of N parts that take equally long"},
    "seed": {"type": int, "help": "of all random inputs (default: drawn, and recorded)"},
    "isolate": {"default": "auto", "choices": list(Isolation), "help": "which cases share a process (default: auto)"},
    "workers": {"type": int, "default": 0, "help": "processes at once (default: one a core)"},
    "timeout": {"default": "60s", "help": "for each case, as 60s or 2m (default: 60s)"},
    "memory": {"default": "4g", "help": "for each worker (default: 4g)"},
    "losses": {"type": int, "default": 50, "help": "so many cases in a row that end their process end the run"},
    "fuzz": {"metavar": "TIME", "default": "0", "help": "afterwards, so long, graphs drawn at random: 5m, 30s"},
    "known-failures": {"metavar": "FILE", "help": "instead of known-failures.toml in the backend's wheel"},
}


def add_options(parser: pytest.Parser) -> None:
    """Each option as ``--fairlead-NAME``, and as ``--NAME`` where nobody else has taken that."""
    taken = {name for group in parser._groups for option in group.options for name in option.names()}
    group = parser.getgroup("fairlead_conformance", "conformance of a backend of Fairlead")
    for name, attributes in OPTIONS.items():
        names = [f"--fairlead-{name}", f"--{name}"]
        free = [name for name in names if name not in taken]
        group.addoption(*free, dest=f"fairlead_{name.replace('-', '_')}", **attributes)


class CaseFailed(Exception):
    """A case that did not go as it has to; pytest shows what `CaseItem.repr_failure` makes of it."""


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, conformance: Conformance, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.case = case
        self.result: Result | None = None
        self._conformance = conformance

    def runtest(self) -> None:
        self.result, judged = self._conformance.run(self.case)
        if is_red(judged):
            raise CaseFailed(judged)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, CaseFailed):
            return super().repr_failure(excinfo, style)
        result: Result = excinfo.value.args[0]
        check = f" ({result.check})" if result.check else ""
        printed = f"\nprinted last:\n{result.output}" if result.output else ""
        return f"{result.status}{check}: {result.detail}{printed}"

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.case.id


class CaseFile(pytest.File):
    """All cases of the run."""

    conformance: Conformance

    def collect(self) -> Iterator[CaseItem]:
        for case in self.conformance.session.open:
            yield CaseItem.from_parent(self, name=case.id, case=case, conformance=self.conformance)


class Conformance:
    """The hooks of one run of pytest."""

    session: Session
    _pool: Pool | Here | None = None
    _report: Report | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        self._config = config
        self._given: dict[str, Any] = getattr(config, "workerinput", {}).get("fairlead", {})
        try:
            self.session = self._session(config)
        except FairleadError as error:
            raise pytest.UsageError(str(error)) from error

    def _session(self, config: pytest.Config) -> Session:
        def option(name: str) -> Any:
            return config.getoption(f"fairlead_{name}")

        if not option("backend"):
            raise pytest.UsageError("--backend=NAME (or --fairlead-backend=NAME) says which backend is to be judged")
        folder = Path(option("report")) if option("report") and not self._is_xdist_worker else None
        seed = self._given.get("seed", option("seed"))
        if seed is None and folder and option("resume"):
            seed = seed_of(folder)
        settings = Settings(
            backend=option("backend"),
            level=Level[option("level")],
            seed=secrets.randbits(31) if seed is None else seed,
            device=option("device"),
            shard=Shard.parse(option("shard")),
            workers=1 if self._is_xdist_worker else option("workers"),
            threads=max(cores() // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]), 1) if self._is_xdist_worker else 0,
            isolate=Isolation(option("isolate")),
            timeout=duration(option("timeout")),
            memory=size(option("memory")),
            losses=option("losses"),
        )
        known = option("known_failures")
        return Session(
            settings,
            folder=folder,
            resume=option("resume"),
            known=Path(known) if known else None,
            command=("pytest", *config.invocation_params.args),
        )

    @property
    def _is_xdist_worker(self) -> bool:
        return hasattr(self._config, "workerinput")

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Of this package, no other file is for pytest, whatever names the user's settings call tests."""
        return True if collection_path.is_relative_to(CASES.parent) and _is_other(collection_path) else None

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> CaseFile | None:
        if file_path != CASES:
            return None
        file: CaseFile = CaseFile.from_parent(parent, path=file_path)
        file.conformance = self
        return file

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        done = set(self._given.get("done", ()))
        items[:] = [item for item in items if not (isinstance(item, CaseItem) and item.case.id in done)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start on all cases, now that it is known which were deselected."""
        cases = [item.case for item in session.items if isinstance(item, CaseItem)]
        if cases and not session.config.option.collectonly:
            self._pool = pool_of(self.session.settings)
            self._pool.submit([] if self._is_xdist_worker else cases)

    def run(self, case: Case) -> tuple[Result, Result]:
        """The result of a case, as it came and as the known failures make it."""
        assert self._pool is not None
        if self._is_xdist_worker:
            self._pool.submit([case])
        result = self._pool.result(case.id)
        return result, self.session.known.judge(result)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report = yield
        if isinstance(item, CaseItem) and report.when == "call" and item.result:
            report.fairlead = msgspec.json.encode(item.result).decode()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self._is_xdist_worker and (data := getattr(report, "fairlead", None)):
            self.session.note(msgspec.json.decode(data, type=Result))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
        data = getattr(report, "fairlead", None)
        if not data:
            return None
        status = self.session.known.judge(msgspec.json.decode(data, type=Result)).status
        match status:
            case Status.PASS_NATIVE | Status.PASS_EXTERN:
                return "passed", ".", status
            case Status.DECLINED:
                return "declined", "d", status
            case Status.KNOWN_FAIL:
                return "known to fail", "k", status
        return "failed", "F", status

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist's controller tells a worker what it cannot know itself."""
        node.workerinput["fairlead"] = {"seed": self.session.settings.seed, "done": list(self.session.results)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        versions = getattr(node, "workeroutput", {}).get("fairlead")
        self.session.ready = Ready(versions) if versions else self.session.ready

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._pool:
            self.session.ready = self._pool.ready
            self._pool.close()
        self._fuzz(session, exitstatus)
        self.session.close()
        if self._is_xdist_worker:
            output: dict[str, Any] = vars(self._config)["workeroutput"]  # xdist's
            output["fairlead"] = self.session.ready.versions
        elif not session.config.option.collectonly:
            self._report = self.session.report(self._reasons(exitstatus))
            if (self.session.faults or self.session.beyond) and exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _fuzz(self, session: pytest.Session, exitstatus: int) -> None:
        """What is drawn has no items: nobody knows how many there will be."""
        seconds = duration(self._config.getoption("fairlead_fuzz"))
        ended = exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
        if not seconds or ended or self._is_xdist_worker or session.config.option.collectonly:
            return
        with contextlib.suppress(KeyboardInterrupt):  # enough of it
            for result in fuzzed(self.session.settings, seconds):
                self.session.draw(result)

    def _reasons(self, exitstatus: int) -> Iterator[str]:
        """What pytest was told, or did, that leaves cases out."""
        narrowing = {"-k": "keyword", "-m": "markexpr", "--deselect": "deselect", "--lf": "lf", "-x": "maxfail"}
        left_out = len(self.session.selected) - len(self.session.results)
        for option, name in narrowing.items():
            if left_out and (value := self._config.getoption(name, None)):
                yield f"not all cases were selected: {option} {value}"
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            yield "interrupted"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        report = self._report
        if report is None:
            return
        terminalreporter.section(f"conformance of {report.backend.name} at {report.run.level.name}")
        for line in summary(report):
            terminalreporter.line(line)
        for fault in self.session.faults:
            terminalreporter.line(fault, red=True)
        for result in self.session.beyond:
            terminalreporter.line(f"{result.status} {result.id}: {result.detail}", red=True)
        if self.session.drawn:
            failed = len(self.session.beyond)
            terminalreporter.line(f"fuzz: {self.session.drawn} graphs of seed {report.run.seed}, {failed} failed")
        if self.session.folder and self.session.open:
            terminalreporter.line("go on with the rest: the same command with --resume")


def _is_other(path: Path) -> bool:
    return path.is_file() and path not in (CASES, CASES.with_name("__init__.py"))
