"""``make test-cloud``: the end-to-end tests on a Spanner that is there, in databases of their own.

``python -m cloud.run spanner://projects/P/instances/I/databases/D``: the instance is that of the
address; D is not touched. Each case has a database ``PREFIX-CASE``, which is dropped after it, also
where it fails. It says first what that takes, and asks. ``--clean`` drops what a killed run left.
Exits 0 if every case is right, 1 if one is not, 2 if it cannot be begun.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud.spanner_v1.instance import Instance

from benchmarks.model import Assumptions
from cloud.cases import CASES, PREFIX, Case
from spanner_schema.model.resource_ids import IdRules
from watcher.model.errors import ConfigurationError, WatcherError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import explain_error, open_client
from watcher.spanner.temporary_databases import (
    create_temporarily,
    drop_database,
    is_there,
    refuse_existing,
)

COMMAND = [sys.executable, "-c", "from watcher.cli import main; main()"]
UNITS_A_NODE = 1_000
ROW_BYTES = 1_000
"""Of a row with its index entries, its versions and its records, generously."""
END_SECONDS_MAX = 60.0
ERROR_LINES = 30


def choose_address(address: DatabaseAddress, prefix: str, case: Case) -> DatabaseAddress:
    """Where the database of a case is."""
    return replace(address, database=f"{prefix}-{case.name}")


def check_prefix(prefix: str) -> None:
    """Raises ConfigurationError for a prefix that no database can have."""
    for case in CASES:
        if problem := IdRules.DATABASE.explain(f"{prefix}-{case.name}"):
            raise ConfigurationError(f"invalid --prefix '{prefix}': {problem}")


def read_instance(address: DatabaseAddress) -> Instance:
    """The instance with its configuration and compute capacity. Raises WatcherError."""
    instance: Instance = open_client(address).instance(address.instance)
    try:
        instance.reload()
    except (GoogleAPICallError, RetryError) as error:
        raise explain_error(error, address) from error
    return instance


def list_left(address: DatabaseAddress, prefix: str, cases: Collection[Case]) -> list[str]:
    """The databases of cases that are there. Raises WatcherError."""
    instance = open_client(address).instance(address.instance)
    try:
        there = {database.name.rpartition("/")[2] for database in instance.list_databases()}
    except (GoogleAPICallError, RetryError) as error:
        raise explain_error(error, address) from error
    return sorted(there & {f"{prefix}-{case.name}" for case in cases})


def describe_estimate(
    instance: Instance, prefix: str, cases: Sequence[Case], dollars_an_hour: float
) -> Iterator[str]:
    """What the cases take, in lines."""
    minutes = sum(case.minutes for case in cases)
    writes = sum(case.writes for case in cases)
    units = instance.processing_units or UNITS_A_NODE * (instance.node_count or 0)
    dollars = minutes / 60 * units / UNITS_A_NODE * dollars_an_hour
    yield (
        f"{len(cases)} databases, one after another, in {instance.name}"
        f" ({instance.configuration_name.rpartition('/')[2]}, {units:,} processing units):"
    )
    yield from (f"  {prefix}-{case.name}" for case in cases)
    yield f"about {minutes:.0f} minutes, {writes:,} row writes; estimated, not measured on Spanner"
    yield (
        f"compute capacity for that time: ${dollars:.2f} at ${dollars_an_hour:.2f} a node-hour,"
        " which the instance costs whether or not this runs; nothing uses Data Boost"
    )
    yield (
        f"storage: at most {writes * ROW_BYTES / 1e6:.0f} MB for that time; beside that, network"
        " traffic out of Google's cloud, if this machine is outside"
    )


def confirm(question: str, *, yes: bool) -> None:
    """Asks. Raises ConfigurationError where nobody can answer, SystemExit for no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError("this asks in a terminal; add --yes elsewhere")
    if input(f"{question} [y/N] ").strip().lower() not in {"y", "yes"}:
        raise SystemExit(2)


@contextmanager
def run_child(command: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own, which ends with the block."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
        if process.stdout is not None:
            process.stdout.close()


def run_case(case: Case, address: DatabaseAddress, folder: Path, *, short: bool) -> dict[str, Any]:
    """The report of a case. Its database is dropped, whatever happens. Raises ConfigurationError
    for one that somebody has made meanwhile, which stays."""
    if is_there(address):
        raise refuse_existing(address)
    made = create_temporarily(address, (), case.dialect) if case.made else nullcontext()
    log = folder / f"{case.name}.log"
    began = time.monotonic()
    command = [*COMMAND, *case.list_arguments(str(address), short=short)]
    try:
        with made, run_child(command, log) as process:
            output, _ = process.communicate()
    finally:
        drop_database(address)
    (folder / f"{case.name}.json").write_text(output)
    errors = log.read_text(errors="replace").splitlines()
    return {
        "case": case.name,
        "code": process.returncode,
        "seconds": round(time.monotonic() - began, 1),
        "output": parse_json(output),
        "errors": errors[-ERROR_LINES:] if process.returncode else [],
    }


def parse_json(text: str) -> Any:
    """A JSON text; the text itself where it is none, as that of a command that failed."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def run_all(
    address: DatabaseAddress, prefix: str, cases: Sequence[Case], folder: Path, *, short: bool
) -> list[dict[str, Any]]:
    """Every case, one after another: one that fails does not end the others."""
    reports = []
    for case in cases:
        report = run_case(case, choose_address(address, prefix, case), folder, short=short)
        reports.append(report)
        outcome = "right" if report["code"] == 0 else f"exit code {report['code']}"
        print(f"{case.name}: {outcome}, {report['seconds']:.0f} s", flush=True)
        for line in report["errors"]:
            print(f"  {line}", flush=True)
    return reports


def clean(address: DatabaseAddress, prefix: str, *, yes: bool) -> None:
    """Drops what a killed run has left."""
    left = list_left(address, prefix, CASES)
    if left:
        confirm(f"Drop {', '.join(left)} of {address.instance}?", yes=yes)
    for name in left:
        drop_database(replace(address, database=name))
    print(f"dropped: {', '.join(left) or 'nothing was left'}")


def run(options: argparse.Namespace) -> int:
    """What the options say; the exit code. Raises WatcherError."""
    address = DatabaseAddress.parse_for_writes(options.database)
    check_prefix(options.prefix)
    cases = [case for case in CASES if not options.only or case.name in options.only]
    if options.clean:
        clean(address, options.prefix, yes=options.yes)
        return 0
    instance = read_instance(address)
    if there := list_left(address, options.prefix, cases):
        raise ConfigurationError(
            f"{', '.join(there)} exist already: run it with --clean if a killed run has left them,"
            " or choose another --prefix"
        )
    for line in describe_estimate(instance, options.prefix, cases, options.dollars_an_hour):
        print(line, flush=True)
    confirm("Begin?", yes=options.yes)
    folder = options.out or Path(tempfile.mkdtemp(prefix="test-cloud-"))
    folder.mkdir(parents=True, exist_ok=True)
    reports = run_all(address, options.prefix, cases, folder, short=options.short)
    left = list_left(address, options.prefix, cases)
    report = {
        "configuration": instance.configuration_name.rpartition("/")[2],
        "processing_units": instance.processing_units,
        "left": left,
        "cases": reports,
    }
    (folder / "report.json").write_text(json.dumps(report, indent=1))
    wrong = [each["case"] for each in reports if each["code"]]
    print(f"wrong: {', '.join(wrong) or 'nothing'}; left: {', '.join(left) or 'nothing'}")
    print(f"report: {folder / 'report.json'}")
    return 1 if wrong or left else 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="make test-cloud",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", help="an address, which names the instance")
    parser.add_argument("--prefix", default=PREFIX, help="how the names of databases begin")
    parser.add_argument(
        "--only", action="append", choices=[case.name for case in CASES], help="a case; repeatable"
    )
    parser.add_argument("--short", action="store_true", help="each case in little")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--clean", action="store_true", help="only drop what a killed run left")
    parser.add_argument("--out", type=Path, help="where logs and report.json go")
    parser.add_argument(
        "--dollars-an-hour",
        type=float,
        default=Assumptions().dollars_an_hour,
        help="what a node (1,000 processing units) costs",
    )
    return parser.parse_args(arguments)


def interrupt(number: int, _frame: object) -> None:
    """SIGTERM ends it as Ctrl-C does: what is there is dropped."""
    raise KeyboardInterrupt(number)


def main() -> int:
    """Reads the command line; the exit code."""
    options = parse_options()
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return run(options)
    except WatcherError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: what was created is dropped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
