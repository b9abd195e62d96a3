"""GoogleSQL's parser tests: statements that it takes or refuses, sent to a Spanner server.

A file is a list of cases between lines of "==": options in brackets and comments, a statement, and
after "--" the tree, or the error. Queries and DML are of interest, without macros, alternations and
options that switch the parser. What GoogleSQL refuses must be a syntax error here, what it takes
must be none (its tables do not exist: another refusal is right).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from google.api_core.exceptions import GoogleAPICallError, InvalidArgument, MethodNotImplemented
from google.cloud.spanner_v1 import ExecuteSqlRequest
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from golden.outcomes import Outcome

SCHEMA = "CREATE TABLE T (a INT64, b STRING(MAX)) PRIMARY KEY (a)"
STATEMENT = re.compile(r"(?:@\{[^}]*\}\s*)?(select|with|insert|update|delete|\(|from\b)", re.I)
DML = {"insert", "update", "delete"}
OPTION = re.compile(r"\[([^\]=]*)[^\]]*\]\s*$")
NEUTRAL = {"name", "no_show_sql", "no_test_get_parse_tokens", "default no_test_get_parse_tokens"}
PLAN = ExecuteSqlRequest.QueryMode.PLAN


@dataclass(frozen=True, slots=True)
class Case:
    """``name`` is the file and the line; ``is_refused`` what GoogleSQL's parser says."""

    name: str
    statement: str
    word: str
    is_refused: bool


def read_cases(folder: Path) -> Iterator[Case]:
    """The cases of all files."""
    for path in sorted((folder / "grammar").glob("*.test")):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        yield from read_file(f"grammar/{path.name}", text)


def read_file(name: str, text: str) -> Iterator[Case]:
    """The cases of a file; an option that begins with "default" holds from there on."""
    line, defaults = 1, set[str]()
    for block in re.split(r"^==$", text, flags=re.MULTILINE):
        parts = re.split(r"^--$", block, flags=re.MULTILINE)
        options, statement = split_options(parts[0])
        defaults |= {each for each in options if each.startswith("default")}
        word = STATEMENT.match(statement)
        if len(parts) > 1 and word and is_plain(statement) and not (options | defaults) - NEUTRAL:
            is_refused = parts[1].strip().startswith("ERROR:")
            yield Case(f"{name}:{line}", statement, word[1].lower(), is_refused)
        line += block.count("\n")


def split_options(head: str) -> tuple[set[str], str]:
    """The names of a case's options, and its statement without lines of comment."""
    lines = [each for each in head.split("\n") if not each.startswith("#")]
    options: set[str] = set()
    while lines and (not lines[0].strip() or OPTION.match(lines[0])):
        option = OPTION.match(lines.pop(0))
        if option:
            options.add(option[1])
    return options, "\n".join(lines).strip().replace("\\-", "-")


def is_plain(statement: str) -> bool:
    """Neither alternations nor pipes, and only characters that a file can hold."""
    shown = statement.replace("\n", "").replace("\t", "")
    return shown.isprintable() and "{{" not in statement and "|>" not in statement


def judge(case: Case, database: Database) -> Outcome:
    """Sends a case, and compares the answer with what GoogleSQL's parser says."""
    error = send(case, database)
    text = error.message if error else ""
    is_syntax = isinstance(error, InvalidArgument) and text.startswith("Syntax error")
    detail = f"{' '.join(case.statement.split())[:120]!r}: {text.splitlines()[0] if text else 'OK'}"
    if error is not None and error.code == 500:
        return Outcome(case.name, "INTERNAL", True, detail)
    if not case.is_refused:
        verdict = "wrongly a syntax error" if is_syntax else "taken, right"
        return Outcome(case.name, verdict, is_syntax, detail)
    if is_syntax:
        return Outcome(case.name, "refused, right", False, detail)
    if isinstance(error, MethodNotImplemented):
        return Outcome(case.name, "UNIMPLEMENTED instead of a syntax error", False, detail)
    verdict = "accepted, but must be refused" if error is None else "refused in other words"
    return Outcome(case.name, verdict, error is None, detail)


def send(case: Case, database: Database) -> GoogleAPICallError | None:
    """The error of a case; queries and DML are planned, not run."""
    try:
        if case.word in DML:
            database.run_in_transaction(plan_dml, case.statement)
        else:
            with database.snapshot() as snapshot:
                list(snapshot.execute_sql(case.statement, query_mode=PLAN))
    except GoogleAPICallError as error:
        return error
    return None


def plan_dml(transaction: Transaction, statement: str) -> None:
    """Plans a DML statement."""
    transaction.execute_update(statement, query_mode=PLAN)
