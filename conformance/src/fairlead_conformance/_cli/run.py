"""``fairlead-conformance run``, which is also ``fairlead conform``: the cases of a level against a backend."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from fairlead.errors import ArgumentError
from fairlead_conformance._case import Level
from fairlead_conformance._cli.progress import Display, table
from fairlead_conformance._report import Report
from fairlead_conformance._run import Isolation, Session, Settings, Shard, duration, fuzzed, pool_of, seed_of, size

_REPRO_SECONDS = 120

WHAT, HOW = "Which cases", "How they run"


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(run)


def run(
    name: Annotated[str, typer.Argument(help="The backend, by the name of its entry point.")],
    level: Annotated[str, typer.Option(help="L0 to L4; each has the cases of those below it.")] = "L1",
    family: Annotated[list[str], typer.Option(help="Only this family; may be repeated.", rich_help_panel=WHAT)] = [],  # noqa: B006 - typer's
    expression: Annotated[
        str, typer.Option("-k", help="Only ids that match, as pytest's -k.", rich_help_panel=WHAT)
    ] = "",
    case_id: Annotated[
        list[str], typer.Option("--id", help="Only this case; may be repeated.", rich_help_panel=WHAT)
    ] = [],  # noqa: B006
    shard: Annotated[
        str, typer.Option(help="k/n: the k-th of n parts that take equally long.", rich_help_panel=WHAT)
    ] = "1/1",
    device: Annotated[str, typer.Option(help="The device that it is judged on: cpu, cuda, cuda:1.")] = "cpu",
    seed: Annotated[int | None, typer.Option(help="Of all random inputs; drawn and recorded where not given.")] = None,
    report: Annotated[Path | None, typer.Option(help="A folder for the log and the report.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in that folder.")] = False,
    known_failures: Annotated[Path | None, typer.Option(help="Instead of known-failures.toml in the wheel.")] = None,
    workers: Annotated[int, typer.Option(help="Processes at once; 0 for one a core.", rich_help_panel=HOW)] = 0,
    bundle: Annotated[
        int, typer.Option(min=1, help="Try so many cases as one graph, for slow compilers.", rich_help_panel=HOW)
    ] = 1,
    isolate: Annotated[
        Isolation, typer.Option(help="Which cases share a process.", rich_help_panel=HOW)
    ] = Isolation.auto,
    timeout: Annotated[str, typer.Option(help="For each case, as 60s or 2m.", rich_help_panel=HOW)] = "60s",
    memory: Annotated[str, typer.Option(help="For each worker, as 4g.", rich_help_panel=HOW)] = "4g",
    losses: Annotated[
        int, typer.Option(help="So many cases in a row that end their process end the run.", rich_help_panel=HOW)
    ] = 50,
    fuzz: Annotated[str, typer.Option(help="Afterwards, so long, graphs drawn at random: 5m, 30s.")] = "0",
    repro: Annotated[Path | None, typer.Option(help="A folder for a script that shows each failure.")] = None,
    collect: Annotated[bool, typer.Option("--collect", help="List the cases, and run none.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report's figures as JSON.")] = False,
) -> None:
    """Run the cases of a level against a backend, each at no one's expense but its own.

    Exit status 0: nothing failed; 1: something did, or cases could not be run; 2: interrupted, or not to be run so.
    """
    if resume and report is None:
        raise ArgumentError(
            "--resume goes on with the run in a folder, and none is named", where="--resume", next="add --report FOLDER"
        )
    if bundle > 1 and isolate is not Isolation.auto:
        raise ArgumentError(
            f"--isolate {isolate} runs each case by itself, and --bundle several at once",
            where="--bundle",
            next="leave one of the two out",
        )
    if seed is None:
        seed = seed_of(report) if resume and report else None
    settings = Settings(
        backend=name,
        level=_level(level),
        seed=secrets.randbits(31) if seed is None else seed,
        device=device,
        families=tuple(family),
        expression=expression,
        ids=tuple(case_id),
        shard=Shard.parse(shard),
        bundle=bundle,
        workers=workers,
        isolate=isolate,
        timeout=duration(timeout),
        memory=size(memory),
        losses=losses,
    )
    session = Session(
        settings, folder=report, resume=resume, known=known_failures, command=(Path(sys.argv[0]).stem, *sys.argv[1:])
    )
    if collect:
        for case in session.selected:
            print(case.id)
        return
    interrupted = _run(session, duration(fuzz))
    made = session.report(["interrupted"] if interrupted else [])
    if as_json:
        print(msgspec.json.encode(_figures(made)).decode())
    else:
        Console().print(table(made))
    if repro is not None:
        _write_repros(made, repro)
    for fault in session.faults:
        print(fault, file=sys.stderr)
    if interrupted:
        print(f"interrupted; {_how_to_resume(session)}", file=sys.stderr)
    raise typer.Exit(2 if interrupted else 1 if session.red else 0)


def _run(session: Session, fuzz: float) -> bool:
    """Run what is open, and then what is drawn; whether Ctrl-C ended it."""
    try:
        with Display(session.settings.backend, len(session.open)) as display, pool_of(session.settings) as pool:
            pool.submit(session.open)
            for result in pool.results():
                display.show(session.note(result))
            session.ready = pool.ready
        if fuzz:
            _fuzz(session, fuzz)
    except KeyboardInterrupt:
        return True
    finally:
        session.close()
    return False


def _fuzz(session: Session, seconds: float) -> None:
    settings = session.settings
    with Display(f"{settings.backend} fuzz", None) as display:
        for result in fuzzed(settings, seconds):
            session.draw(result)
            display.show(result)
    print(f"fuzz: {session.drawn} graphs of seed {settings.seed}, {len(session.beyond)} failed", file=sys.stderr)


def _write_repros(report: Report, folder: Path) -> None:
    """A script for each failure, each written by a process of its own, which the failure may end."""
    for result in (*report.results, *report.beyond):
        if result.status.failed:
            what = [
                "repro",
                result.id,
                "--backend",
                report.backend.name,
                "--seed",
                str(report.run.seed),
                "--device",
                report.run.device,
                "-o",
                str(folder),
            ]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [sys.executable, "-m", "fairlead_conformance", *what], check=False, timeout=_REPRO_SECONDS
                )


def _how_to_resume(session: Session) -> str:
    if session.folder is None:
        return "with --report FOLDER it could be resumed"
    return f"{len(session.open)} cases are left; go on with the same command and --resume"


def _figures(report: Report) -> dict[str, object]:
    """What ``--json`` prints: the report without its rows."""
    rows = {"results", "beyond", "known"}
    return {name: value for name, value in msgspec.structs.asdict(report).items() if name not in rows}


def _level(text: str) -> Level:
    try:
        return Level[text.upper()]
    except KeyError:
        raise ArgumentError(f"{text!r} is no level", where="--level", next="one of L0, L1, L2, L3, L4") from None
