"""The schema-change tests of Google's emulator, sent to a Spanner server.

A case is a list of DDL statements, and what GetDatabaseDdl then says or the error that refuses one
of them. An outcome is the same where that text agrees (white space aside), or where both refuse,
with the same code if the case names one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

from golden.outcomes import Outcome

PART = "schema_changes"
POSTGRESQL_PART = "schema_changes_pg"
SAME = "the same"
OTHER_WORDS = "the same, in other words"


@dataclass(frozen=True, slots=True)
class Case:
    """``expected`` is a schema or an error; ``is_pattern`` says that it is a regular expression."""

    name: str
    statements: tuple[str, ...]
    expected: str
    is_pattern: bool

    @property
    def expects_refusal(self) -> bool:
        """Whether one of the statements must be refused; a lone semicolon is an empty schema."""
        text = self.expected.strip().strip("^$;")
        return bool(text) and (text.startswith("ERROR:") or "CREATE " not in text.upper())


def read_cases(folder: Path, part: str = PART) -> Iterator[Case]:
    """The cases of all files."""
    for path in sorted((folder / part).glob("*.test")):
        yield from read_file(f"{part}/{path.name}", path.read_text(encoding="utf-8"))


def read_file(name: str, text: str) -> Iterator[Case]:
    """The cases of a file: blocks between lines of "==", each with "--" before what is expected;
    without it the schema is expected as it is written."""
    line = 1
    for block in re.split(r"^==$", text, flags=re.MULTILINE):
        start, line = line, line + block.count("\n")
        given, separator, expected = block.partition("\n--\n")
        lines = given.split("\n")
        notes = " ".join(each for each in lines if each.startswith("#")).casefold()
        ddl = "\n".join(each for each in lines if not each.startswith("#"))
        statements = tuple(each for each in ddl.strip().split(";") if each.strip())
        if statements:
            wanted = expected if separator else ddl
            yield Case(f"{name}:{start}", statements, wanted, "regex" in notes)


def judge(
    case: Case,
    instance: Instance,
    number: int,
    dialect: int = DatabaseDialect.GOOGLE_STANDARD_SQL,
) -> Outcome:
    """Runs a case in a database of its own; ``number`` tells the databases of a run apart."""
    database = instance.database(f"schema-change-{number}", database_dialect=dialect)
    database.create().result(60)
    try:
        return compare(case, database)
    finally:
        database.drop()


def compare(case: Case, database: Database) -> Outcome:
    """The outcome of a case in an empty database."""
    try:
        database.update_ddl(list(case.statements)).result(60)
    except GoogleAPICallError as error:
        code = error.grpc_status_code
        return compare_refusal(case, code.name if code else "UNKNOWN", error.message or "")
    if case.expects_refusal:
        return fault(case, "accepted, must be refused", "OK")
    database.reload()
    text = "".join(f"{statement};\n" for statement in database.ddl_statements) or ";"
    if agrees(case, case.expected, text):
        return Outcome(case.name, SAME, False, "")
    return fault(case, "another schema", text)


def compare_refusal(case: Case, code: str, message: str) -> Outcome:
    """The outcome of a case that the server refused."""
    found = f"{code}: {message}"
    if code in {"UNIMPLEMENTED", "INTERNAL", "UNKNOWN"}:
        return fault(case, code, found)
    if not case.expects_refusal:
        return fault(case, "refused, must be accepted", found)
    expected = case.expected.strip().removeprefix("ERROR:").strip()
    named = re.match(r"([A-Z_]+):", expected)
    if named and named[1] in grpc.StatusCode.__members__:
        expected = expected[named.end() :].strip()
        if named[1] != code:
            return fault(case, "another code", found)
    verdict = SAME if agrees(case, expected, message) else OTHER_WORDS
    return Outcome(case.name, verdict, False, found)


def fault(case: Case, verdict: str, found: str) -> Outcome:
    """An outcome that is not the same."""
    ddl = ";\n".join(each.strip() for each in case.statements)
    expected = case.expected.strip()
    detail = f"\n{ddl}\n-- expected\n{expected}\n-- found\n{found.strip()}\n"
    return Outcome(case.name, verdict, True, detail)


def agrees(case: Case, expected: str, found: str) -> bool:
    """Whether a text is the expected one, white space aside."""
    if not case.is_pattern:
        return squeeze(expected) in squeeze(found)
    pattern = squeeze(expected).removeprefix(".*")
    try:
        return re.search(pattern, squeeze(found)) is not None
    except re.error:
        return False


def squeeze(text: str) -> str:
    """A text with its quotes unescaped and without white space."""
    return "".join(text.replace("\\n", " ").replace("\\'", "'").replace('\\"', '"').split())
