"""Runs the schema-change case files of Google's emulator against a server.

    PYTHONPATH=.:tests python -m case_files.schema_changes HOST:PORT [--list]

A case is a list of DDL statements, and what GetDatabaseDdl then says or the error that refuses one
of them. An outcome is the same where that text agrees (white space aside), or where both refuse,
with the same code if the case names one.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import grpc
from google.api_core.exceptions import AlreadyExists, GoogleAPICallError
from google.cloud.spanner_admin_database_v1 import DatabaseAdminClient
from google.cloud.spanner_admin_database_v1.services.database_admin.transports import (
    DatabaseAdminGrpcTransport,
)
from google.cloud.spanner_admin_instance_v1 import Instance, InstanceAdminClient
from google.cloud.spanner_admin_instance_v1.services.instance_admin.transports import (
    InstanceAdminGrpcTransport,
)

from case_files.scope import FOLDER, SCHEMA_CHANGE_FOLDERS, SCHEMA_CHANGE_WORDS

PARENT = "projects/p/instances/schema-changes"
NO_FAULT = ("the same", "the same, in other words")


class Kind(Enum):
    """How an outcome compares with the case."""

    SAME = "the same"
    OTHER_WORDS = "the same, in other words"
    OUT_OF_SCOPE = "out of scope"
    ACCEPTED = "accepted, must be refused"
    REFUSED = "refused, must be accepted"
    OTHER_DDL = "another schema"
    OTHER_CODE = "another code"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Case:
    """``expected`` is a schema or an error; ``is_pattern`` says that it is a regular expression."""

    file: str
    line: int
    statements: tuple[str, ...]
    expected: str
    is_pattern: bool

    @property
    def expects_refusal(self) -> bool:
        """Whether one of the statements must be refused; a lone semicolon is an empty schema."""
        text = self.expected.strip().strip(";")
        return bool(text) and (text.startswith("ERROR:") or "CREATE " not in text.upper())

    def reason_out_of_scope(self) -> str | None:
        """Why the case is not run; None for one that is."""
        text = ";".join(self.statements)
        reasons = (
            why for words, why in SCHEMA_CHANGE_WORDS.items() if re.search(words, text, re.I)
        )
        return next(reasons, None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case; ``text`` is what the server said."""

    case: Case
    kind: Kind
    text: str = ""


def read_cases(folder: str) -> list[Case]:
    """The cases of a folder of ``FOLDER``; none where the folder is out of scope or absent."""
    if folder in SCHEMA_CHANGE_FOLDERS:
        return []
    files = sorted((FOLDER / folder).glob("*.test"))
    return [case for file in files for case in read_file_cases(file)]


def read_file_cases(file: Path) -> Iterator[Case]:
    """The cases of a file: blocks between lines of ``==``, each with ``--`` before what is
    expected; without it the schema is expected as it is written."""
    line = 1
    for block in re.split(r"^==$", file.read_text(encoding="utf-8"), flags=re.MULTILINE):
        start, line = line, line + block.count("\n")
        given, separator, expected = block.partition("\n--\n")
        lines = given.split("\n")
        notes = " ".join(text for text in lines if text.startswith("#")).casefold()
        ddl = "\n".join(text for text in lines if not text.startswith("#"))
        statements = tuple(text for text in ddl.strip().split(";") if text.strip())
        if statements:
            is_pattern = "regex" in notes
            yield Case(file.name, start, statements, expected if separator else ddl, is_pattern)


class Judge:
    """Runs cases against a server, each in a database of its own."""

    def __init__(self, address: str) -> None:
        channel = grpc.insecure_channel(address)
        transport = DatabaseAdminGrpcTransport(channel=channel)
        self._databases = DatabaseAdminClient(transport=transport)
        instances = InstanceAdminClient(transport=InstanceAdminGrpcTransport(channel=channel))
        config = "projects/p/instanceConfigs/emulator-config"
        instance = Instance(config=config, display_name="cases", node_count=1)
        with suppress(AlreadyExists):
            instances.create_instance(
                parent="projects/p", instance_id="schema-changes", instance=instance
            ).result(30)
        self._number = 0

    def judge(self, case: Case) -> Outcome:
        """The outcome of a case."""
        if case.reason_out_of_scope() is not None:
            return Outcome(case, Kind.OUT_OF_SCOPE)
        self._number += 1
        identifier = f"cases-{self._number}"
        name = f"{PARENT}/databases/{identifier}"
        self._databases.create_database(
            parent=PARENT, create_statement=f"CREATE DATABASE `{identifier}`"
        ).result(30)
        try:
            return self._compare(case, name)
        finally:
            self._databases.drop_database(database=name)

    def _compare(self, case: Case, name: str) -> Outcome:
        try:
            self._databases.update_database_ddl(
                database=name, statements=list(case.statements)
            ).result(60)
        except GoogleAPICallError as error:
            code = error.grpc_status_code
            return compare_refusal(case, code.name if code else "UNKNOWN", error.message or "")
        if case.expects_refusal:
            return Outcome(case, Kind.ACCEPTED)
        statements = self._databases.get_database_ddl(database=name).statements
        text = "".join(f"{statement};\n" for statement in statements)
        return Outcome(
            case, Kind.SAME if agrees(case, case.expected, text) else Kind.OTHER_DDL, text
        )


def compare_refusal(case: Case, code: str, message: str) -> Outcome:
    """The outcome of a case that the server refused."""
    if code in {Kind.UNIMPLEMENTED.value, Kind.INTERNAL.value}:
        return Outcome(case, Kind(code), message)
    if not case.expects_refusal:
        return Outcome(case, Kind.REFUSED, message)
    expected = case.expected.strip().removeprefix("ERROR:").strip()
    named = re.match(r"([A-Z_]+):", expected)
    if named and named[1] in grpc.StatusCode.__members__:
        expected = expected[named.end() :].strip()
        if named[1] != code:
            return Outcome(case, Kind.OTHER_CODE, f"{code}: {message}")
    same = agrees(case, expected, message)
    return Outcome(case, Kind.SAME if same else Kind.OTHER_WORDS, message)


def agrees(case: Case, expected: str, actual: str) -> bool:
    """Whether a text is the expected one, white space aside."""
    if not case.is_pattern:
        return squeeze(expected) in squeeze(actual)
    pattern = squeeze(expected).removeprefix(".*")
    try:
        return re.search(pattern, squeeze(actual)) is not None
    except re.error:
        return False


def squeeze(text: str) -> str:
    """A text with its quotes unescaped and without white space."""
    return "".join(text.replace("\\n", " ").replace("\\'", "'").replace('\\"', '"').split())


def run_cases(address: str, cases: Sequence[Case]) -> list[Outcome]:
    """The outcomes of cases."""
    judge = Judge(address)
    return [judge.judge(case) for case in cases]


def is_fault(outcome: Outcome) -> bool:
    """Whether an outcome in scope is not the same."""
    return outcome.kind not in {Kind.SAME, Kind.OTHER_WORDS, Kind.OUT_OF_SCOPE}


def summarize(outcomes: Sequence[Outcome]) -> str:
    """One line: how many cases in scope have the same outcome, and what the others have."""
    counts = Counter(outcome.kind for outcome in outcomes)
    scope = len(outcomes) - counts[Kind.OUT_OF_SCOPE]
    same = counts[Kind.SAME] + counts[Kind.OTHER_WORDS]
    faults = [f"{kind.value}: {counts[kind]}" for kind in Kind if is_fault_kind(kind, counts)]
    return (
        f"{same} of {scope} in scope with the same outcome ({counts[Kind.OTHER_WORDS]} in other"
        f" words; {counts[Kind.OUT_OF_SCOPE]} out of scope); {', '.join(faults) or 'no faults'}"
    )


def is_fault_kind(kind: Kind, counts: Counter[Kind]) -> bool:
    """Whether there are outcomes of a kind that is a fault."""
    return bool(counts[kind]) and kind not in {Kind.SAME, Kind.OTHER_WORDS, Kind.OUT_OF_SCOPE}


def describe(outcome: Outcome) -> str:
    """A fault with its case, over several lines."""
    case = outcome.case
    ddl = ";\n".join(text.strip() for text in case.statements)
    return (
        f"{case.file}:{case.line}: {outcome.kind.value}\n{ddl}\n-- expected\n"
        f"{case.expected.strip()}\n-- actual\n{outcome.text.strip()}\n"
    )


def main() -> None:
    """Prints the summary, and with ``--list`` each fault."""
    parser = argparse.ArgumentParser(description="the schema-change case files")
    parser.add_argument("address")
    parser.add_argument("--list", action="store_true", help="print each fault")
    options = parser.parse_args()
    outcomes = run_cases(options.address, read_cases("schema_changes"))
    for outcome in filter(is_fault, outcomes) if options.list else ():
        print(describe(outcome))
    print(summarize(outcomes))


if __name__ == "__main__":
    main()
