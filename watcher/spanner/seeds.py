"""What a new database begins with: DDL statements, then DML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.tokens import split_statements
from watcher.model.errors import ConfigurationError
from watcher.process.system_errors import describe_system_error
from watcher.process.text_files import read_text_file

DML = {"INSERT", "UPDATE", "DELETE"}
SUFFIX = ".sql"


@dataclass(frozen=True, slots=True)
class Seed:
    """Statements, all those of DDL before all of DML, each kind in its order."""

    ddl: tuple[str, ...] = ()
    dml: tuple[str, ...] = ()

    def __add__(self, other: Seed) -> Seed:
        return Seed(self.ddl + other.ddl, self.dml + other.dml)


def sort_statements(statements: Iterable[str]) -> Seed:
    """DDL and DML, by their first word."""
    ddl: list[str] = []
    dml: list[str] = []
    for statement in statements:
        kind = dml if statement.split(None, 1)[0].upper() in DML else ddl
        kind.append(statement)
    return Seed(tuple(ddl), tuple(dml))


def read_seed(path: Path, dialect: Dialect) -> Seed:
    """The statements of a file, or of the *.sql files of a folder in the order of their names.

    Raises ConfigurationError for what cannot be read or split, and for a folder without such files.
    """
    if not path.is_dir():
        return read_seed_file(path, dialect)
    try:
        files = sorted(each for each in path.iterdir() if each.suffix == SUFFIX)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {describe_system_error(error)}") from error
    if not files:
        raise ConfigurationError(f"the folder {path} has no *{SUFFIX} files")
    return sum((read_seed_file(each, dialect) for each in files), Seed())


def read_seed_file(path: Path, dialect: Dialect) -> Seed:
    """The statements of a file, which semicolons separate."""
    try:
        split = split_statements(read_text_file(path), dialect)
    except DdlSyntaxError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return sort_statements(statement for statement, _ in split)
