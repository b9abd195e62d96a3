"""github.com/daichirata/hammer, a tool that changes a schema into what a file says. Its own tests
ask no server: real schemas and one that changes go through its commands, as its README has them.
The module proxy does not have it: it is built from its repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CalledProcessError

from schemas.cases import KEPT, list_names, read_case

from clients.outcomes import Outcome, Verdict
from clients.repositories import copy_files
from clients.suite import INSTANCE, PROJECT, Suite, Workplace
from spanner_schema.model.schema import Dialect

REPOSITORY, VERSION = "daichirata/hammer", "v0.7.0-beta.7"
BEFORE = """
CREATE TABLE users (user_id STRING(36) NOT NULL, email STRING(MAX)) PRIMARY KEY(user_id);
CREATE TABLE posts (user_id STRING(36) NOT NULL, post_id INT64 NOT NULL, made TIMESTAMP NOT NULL
  OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY(user_id, post_id),
  INTERLEAVE IN PARENT users ON DELETE CASCADE;
CREATE INDEX by_email ON users(email);
CREATE CHANGE STREAM every_user FOR users(email) OPTIONS (retention_period = '2d');
"""
AFTER = """
CREATE TABLE users (user_id STRING(36) NOT NULL, email STRING(MAX) NOT NULL, age INT64,
  name STRING(MAX) NOT NULL DEFAULT ("nobody"), folded STRING(MAX) AS (LOWER(email)) STORED,
  CONSTRAINT of_id CHECK(user_id != '')) PRIMARY KEY(user_id);
CREATE TABLE posts (user_id STRING(36) NOT NULL, post_id INT64 NOT NULL, made TIMESTAMP NOT NULL
  OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY(user_id, post_id),
  INTERLEAVE IN PARENT users ON DELETE CASCADE,
  ROW DELETION POLICY (OLDER_THAN(made, INTERVAL 30 DAY));
CREATE UNIQUE INDEX by_name ON users(folded) STORING (age);
CREATE CHANGE STREAM every_user FOR users, posts OPTIONS (retention_period = '7d');
"""


def run(place: Workplace) -> list[Outcome]:
    """Each command on each schema; what fails has what the tool says."""
    source = copy_files(place, REPOSITORY, VERSION, ".")
    place.call(["go", "build", "-o", place.folder / "hammer", "."], source)
    return [judge(case, step) for case, step in list_steps(place)]


def list_steps(place: Workplace) -> Iterator[tuple[str, Callable[[], str]]]:
    """The cases: each is a command, or two whose results have to be the same."""
    hammer = place.folder / "hammer"

    def command(*arguments: str | Path) -> Callable[[], str]:
        return lambda: place.call([hammer, *arguments])

    def differences(left: str | Path, right: str | Path) -> Callable[[], str]:
        return lambda: refuse_output(place.call([hammer, "diff", left, right]))

    for number, (name, script) in enumerate(list_scripts()):
        database, copy = name_database(f"hammer-{number}"), name_database(f"hammer-copy-{number}")
        file = write_script(place, f"{number}.sql", script)
        yield f"{name}: create", command("create", database, file)
        yield f"{name}: diff with the file", differences(database, file)
        yield f"{name}: create of a database", command("create", copy, database)
        yield f"{name}: diff of databases", differences(database, copy)
    database = name_database("hammer-changed")
    before = write_script(place, "before.sql", BEFORE)
    after = write_script(place, "after.sql", AFTER)
    exported = place.folder / "exported.sql"
    yield "changed: create", command("create", database, before)
    yield "changed: apply", command("apply", database, after)
    yield "changed: diff after apply", differences(database, after)
    yield "changed: export", lambda: str(exported.write_text(command("export", database)()))
    yield "changed: diff with the export", differences(database, exported)
    yield "changed: apply the first again", command("apply", database, before)
    yield "changed: diff after the way back", differences(database, before)


def list_scripts() -> Iterator[tuple[str, str]]:
    """The real schemas of GoogleSQL that are in this repository, as files."""
    for name in list_names(KEPT):
        case = read_case(name, KEPT)
        if case.dialect is Dialect.GOOGLESQL:
            kept = (s.sql for s in case.statements if s.kind == "ddl" and not drops(s.sql))
            yield name, "".join(f"{sql};\n" for sql in kept)


def drops(sql: str) -> bool:
    """Whether a statement makes room for those that follow: the tool's files have none."""
    return sql.upper().startswith("DROP ")


def judge(case: str, step: Callable[[], str]) -> Outcome:
    """A case has passed if its command has."""
    try:
        step()
    except CalledProcessError as error:
        return Outcome(case, Verdict.FAILED, f"{error.stderr or ''}{error.stdout or ''}"[-2000:])
    except ValueError as error:
        return Outcome(case, Verdict.FAILED, str(error))
    return Outcome(case, Verdict.PASSED)


def refuse_output(said: str) -> str:
    """Raises ValueError for differences."""
    if said.strip():
        raise ValueError(f"there are differences: {said[:2000]}")
    return said


def name_database(name: str) -> str:
    """A database as the tool calls it."""
    return f"spanner://projects/{PROJECT}/instances/{INSTANCE}/databases/{name}"


def write_script(place: Workplace, name: str, text: str) -> Path:
    """A file of the suite."""
    path = place.folder / name
    path.write_text(text)
    return path


SUITE = Suite(
    "hammer",
    f"github.com/{REPOSITORY} {VERSION}",
    run,
    {
        "keyless_googlesql: diff with the file": (
            "it knows no tables without a primary key, and would make them anew"
        ),
    },
)
