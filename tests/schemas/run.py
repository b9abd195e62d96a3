"""Takes real schemas the whole way: ``make schemas`` (``SCHEMAS_ARGS="--jobs 2 customer"``).

Each schema has a process of its own, a fork of this one, with a server of its own. Exits 1 where a
schema has a problem: everything must hold, or be refused before anything is changed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from fixtures.server import connect
from golden.folder import FOLDER, VARIABLE
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
from google.cloud.spanner_v1.transaction import Transaction

from emulator.server import start
from schemas.cases import KEPT, SchemaCase, Statement, choose_names, list_names, read_case
from schemas.facts import read_facts
from schemas.outcomes import Problem, SchemaOutcome, format_table
from schemas.way import DDL_SECONDS_MAX, ENGINES, Choice, Engine, Subject, Way
from spanner_schema.model.schema import Dialect

SECONDS_MAX = 1800.0
NUMBERS = itertools.count()
FORKS = get_context("fork")


def judge(
    case: SchemaCase, instance: Instance, seed: int, engines: Sequence[Engine]
) -> SchemaOutcome:
    """What comes of a schema in a new database, which is dropped."""
    outcome = SchemaOutcome(case.name, case.dialect.value)
    postgres = case.dialect is Dialect.POSTGRESQL
    database = instance.database(
        f"schema-{os.getpid()}-{next(NUMBERS)}",
        database_dialect=DatabaseDialect.POSTGRESQL
        if postgres
        else DatabaseDialect.GOOGLE_STANDARD_SQL,
    )
    database.create().result(DDL_SECONDS_MAX)
    try:
        with outcome.stage("create"):
            create(database, case.statements, outcome)
        with TemporaryDirectory() as folder:
            facts = read_facts(database, case.dialect)
            seeded = f"{seed}/{case.name}"
            choice = Choice(engines)
            subject = Subject(database, case.dialect, facts, seeded, Path(folder), choice)
            Way(subject, outcome).run()
    finally:
        database.drop()
    return outcome


def create(database: Database, statements: Sequence[Statement], outcome: SchemaOutcome) -> None:
    """Runs the statements of a schema, DDL between DML in batches."""
    batch: list[Statement] = []
    for statement in statements:
        if statement.kind == "ddl" and statement.descriptors is None:
            batch.append(statement)
            continue
        run_ddl(database, batch, outcome)
        batch = []
        if statement.kind == "ddl":
            run_ddl(database, [statement], outcome)
        elif statement.kind == "dml":
            run_dml(database, statement.sql)
    run_ddl(database, batch, outcome)


def run_ddl(database: Database, batch: Sequence[Statement], outcome: SchemaOutcome) -> None:
    """Runs a batch; where a statement is refused, goes on after it."""
    while batch:
        try:
            operation = database.update_ddl(
                [each.sql for each in batch], proto_descriptors=batch[0].descriptors
            )
        except GoogleAPICallError as error:
            # The syntax of all of them is looked at before any of them runs.
            if len(batch) == 1:
                outcome.unsupported.append(f"{batch[0].sql[:300]}: {error.message}")
                return
            for statement in batch:
                run_ddl(database, [statement], outcome)
            return
        try:
            operation.result(DDL_SECONDS_MAX)
            done = len(batch)
        except GoogleAPICallError as error:
            done = len(operation.metadata.commit_timestamps)
            outcome.unsupported.append(f"{batch[done].sql[:300]}: {error.message}")
            batch = [*batch[:done], *batch[done + 1 :]]
        outcome.counts["statements"] += done
        batch = batch[done:]


def run_dml(database: Database, sql: str) -> None:
    """Runs a statement of data."""

    def work(transaction: Transaction) -> None:
        transaction.execute_update(sql)

    database.run_in_transaction(work)


# Processes.


@contextmanager
def serve() -> Iterator[Instance]:
    """A server in this process."""
    with start() as server:
        yield connect(server.address)


def run_child(name: str, seed: int, engines: Sequence[Engine], answer: Connection) -> None:
    """Judges a schema in this process, and sends the outcome. The process then ends at once:
    threads of clients would keep it."""
    # What a watcher logs of its errors is in the outcome.
    logging.getLogger("watcher").addHandler(logging.NullHandler())
    case = read_case(name, FOLDER, KEPT)
    with serve() as instance:
        outcome = SchemaOutcome(name, case.dialect.value)
        with outcome.stage("judge"):
            outcome = judge(case, instance, seed, engines)
        answer.send(outcome)
    answer.close()
    os._exit(0)


def run_in_fork(name: str, seed: int, engines: Sequence[Engine]) -> SchemaOutcome:
    """The outcome of a schema, in a process of its own."""
    here, there = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=run_child, args=(name, seed, engines, there))
    process.start()
    there.close()
    reason = f"it was not finished after {SECONDS_MAX:g} s"
    try:
        if here.poll(SECONDS_MAX):
            outcome: SchemaOutcome = here.recv()
            return outcome
    except EOFError:
        process.join()
        reason = f"its process ended with {process.exitcode}"
    finally:
        process.kill()
        process.join()
    return SchemaOutcome(name, "", [Problem("process", reason)])


def show(outcome: SchemaOutcome) -> str:
    """A line for a schema, and one for each of its first problems."""
    lines = [f"{outcome.name}: {outcome.verdict}, {sum(outcome.seconds.values()):.1f} s"]
    lines += [f"    {each.stage}: {each.text}" for each in outcome.problems[:3]]
    return "\n".join(lines)


def main() -> int:
    """Reads the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="make schemas", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of schemas; all without")
    parser.add_argument("--seed", type=int, default=1, help="of the rows")
    parser.add_argument("--jobs", type=int, default=2, help="schemas side by side")
    parser.add_argument("--json", type=Path, help="a file for the results, a line a schema")
    options = parser.parse_args()
    if not FOLDER.is_dir():
        print(f"no case files in {FOLDER}: {VARIABLE} says where they are", file=sys.stderr)
        return 2
    try:
        names = choose_names(list_names(FOLDER, KEPT), options.names)
    except KeyError as error:
        parser.error(f"no schema's name contains {error}")
    outcomes: list[SchemaOutcome] = []
    run: Callable[[str], SchemaOutcome] = lambda name: run_in_fork(name, options.seed, ENGINES)  # noqa: E731
    with ThreadPoolExecutor(options.jobs) as threads:
        for outcome in threads.map(run, names):
            outcomes.append(outcome)
            print(show(outcome), flush=True)
            if options.json is not None:
                with options.json.open("a") as file:
                    file.write(json.dumps(outcome.to_json()) + "\n")
    print(format_table(outcomes))
    print(f"seed {options.seed}: SCHEMAS_ARGS='--seed {options.seed} NAME' runs one again")
    return 0 if all(each.holds for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
