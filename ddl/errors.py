"""The exceptions of ddl.

DdlError
├── DdlSyntaxError       the text is not a statement of Spanner's DDL; says line and column
├── SchemaError          the statement does not fit the schema
│   ├── DuplicateNameError    something of this name is there already
│   └── NameNotFoundError     something that the statement names is not there
└── PlanError            what is wanted cannot be planned or applied
"""

from __future__ import annotations


class DdlError(Exception):
    """Base of every error that ddl raises on purpose."""

    exit_code = 1


class DdlSyntaxError(DdlError):
    """The text is not a statement of Spanner's DDL. Lines and columns count from 1."""

    exit_code = 2

    def __init__(self, line: int, column: int, expected: str, found: str) -> None:
        super().__init__(f"line {line}, column {column}: expected {expected}, found {found}")
        self.line = line
        self.column = column
        self.expected = expected
        self.found = found


class SchemaError(DdlError):
    """The statement does not fit the schema as it is."""


class DuplicateNameError(SchemaError):
    """Something of this name is there already."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"Duplicate name in schema: {name}.")
        self.kind = kind
        self.name = name


class NameNotFoundError(SchemaError):
    """Something that the statement names is not there."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} not found: {name}")
        self.kind = kind
        self.name = name


class PlanError(DdlError):
    """What is wanted cannot be planned or applied; nothing was changed."""

    exit_code = 2


class ApplyError(DdlError):
    """The database refused a plan, or its schema is not the one that the plan was made for."""
