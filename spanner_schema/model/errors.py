"""The exceptions of ddl.

DdlError
├── DdlSyntaxError       the text is not a statement of Spanner's DDL; says line and column
├── SchemaError          the statement does not fit the schema
│   ├── DuplicateNameError    the name is in use
│   ├── InvalidDefinitionError   the definition is wrong in itself
│   ├── ConstraintNotFoundError  the table has no constraint of this name
│   └── NameNotFoundError     the statement names an object that does not exist
├── PlanError            the request cannot be planned; nothing was changed
│   └── MissingObjectError    the table or change stream that the user named does not exist
└── ApplyError           the database refused a plan, or has another schema than the plan
"""

from __future__ import annotations


class DdlError(Exception):
    """The base of every error that ddl raises on purpose."""

    exit_code = 1


class DdlSyntaxError(DdlError):
    """The text is not a statement of Spanner's DDL. Lines and columns count from 1."""

    exit_code = 2

    def __init__(self, line: int, column: int, expected: str, actual: str) -> None:
        super().__init__(f"line {line}, column {column}: expected {expected}, found {actual}")
        self.line = line
        self.column = column
        self.expected = expected
        self.actual = actual


class SchemaError(DdlError):
    """The statement does not fit the schema."""


class InvalidDefinitionError(SchemaError):
    """The definition is wrong in itself, or asks for a change that Spanner never makes."""


class DuplicateNameError(SchemaError):
    """The name is in use."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"Duplicate name in schema: {name}.")
        self.kind = kind
        self.name = name


class NameNotFoundError(SchemaError):
    """The statement names an object that does not exist."""

    def __init__(self, kind: str, name: str, table: str | None = None) -> None:
        inside = "" if table is None else f" in table {table}"
        super().__init__(f"{kind} not found{inside}: {name}")
        self.kind = kind
        self.name = name


class ConstraintNotFoundError(SchemaError):
    """The table has no foreign key or check of this name."""

    def __init__(self, name: str, table: str) -> None:
        super().__init__(f"{name} is not a constraint in {table}")
        self.name = name
        self.table = table


class PlanError(DdlError):
    """The request cannot be planned; nothing was changed."""

    exit_code = 2


class MissingObjectError(PlanError):
    """The table or change stream that the user named does not exist."""

    exit_code = 4


class ApplyError(DdlError):
    """The database refused a plan, or its schema changed after the plan was made."""
