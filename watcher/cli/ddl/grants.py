"""``ddl grants``: the least privileges of a role that watches, clears, replicates or verifies."""

from __future__ import annotations

from typing import Annotated

import typer

from spanner_schema.model.purposes import Purpose
from watcher.cli.options import (
    POSITIONS_TABLE,
    ApplyOption,
    DatabaseOption,
    JsonOption,
    PositionsTableOption,
    TablesOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from ddl.migration.apply import run_statements
    from ddl.rules.evolve import apply_step
    from ddl.tracking.grants import GrantRequest, list_statements
    from spanner_schema.model.schema import Schema
    from spanner_schema.model.selection import select_tables
    from spanner_schema.syntax.parse import parse_statement
    from spanner_schema.watched.records import TABLE
    from watcher.cli.ddl.request import load_schema
    from watcher.consumers.positions.own_names import check_positions_table
    from watcher.consumers.positions.tables import list_missing, own_tables


def command(
    database: DatabaseOption,
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="The role; it is created where it is missing.")
    ],
    purpose: Annotated[
        list[Purpose],
        typer.Option("--for", metavar="PURPOSE", help="What the role is for; repeatable."),
    ],
    table: TablesOption = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A change stream that is read; repeatable."),
    ] = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    positions: Annotated[
        bool,
        typer.Option(
            "--positions/--no-positions",
            help="Whether the product's own tables are in this database; those that are missing"
            " are made.",
        ),
    ] = True,
    apply: ApplyOption = False,
    json_output: JsonOption = False,
) -> None:
    """Show (or grant) the least privileges that a role needs.

    With ?database_role=ROLE after the database, a command is allowed nothing else. The purposes:
    watch, replicate, verify, clear, status (page and check, too), control (ctl, page --control).
    The product's own tables are made first, so that the role needs no right to change the schema.

    Example:
      spanner-watcher ddl grants -d $D --role watcher --for watch --for clear -t 'Sing*' --apply
      spanner-watcher watch -d "$D?database_role=watcher" -t 'Sing*' --consumer audit
    """
    loaded, client = load_schema(database, None)
    created = add_own_tables(loaded, positions_table) if positions else []
    complete = loaded
    for statement in created:
        complete = apply_step(complete, parse_statement(statement, loaded.dialect))
    own = (*own_tables(positions_table), *find_record_table(complete)) if positions else ()
    tables = select_tables(loaded, table) if table else ()
    request = GrantRequest(role, frozenset(purpose), tables, tuple(stream or ()), own)
    statements = [*created, *list_statements(complete, request)]
    if json_output:
        print_json({"role": role, "statements": statements, "applied": apply})
    else:
        for statement in statements:
            CONSOLE.print(f"{statement};", soft_wrap=True)
        if not statements:
            CONSOLE.print(f"role {role} has every privilege that it needs")
    if apply and client is not None and statements:
        run_statements(client, statements)


def add_own_tables(schema: Schema, positions_table: str) -> list[str]:
    """The statements for what the product's own tables lack. Raises ConfigurationError."""
    check_positions_table(positions_table, schema.dialect)
    known = frozenset(
        (table.name, column.name) for table in schema.tables for column in table.columns
    )
    return list_missing(known, positions_table, schema.dialect)


def find_record_table(schema: Schema) -> tuple[str, ...]:
    """The table in which 'ddl apply' recorded what it did, which clearing reads."""
    return (TABLE,) if schema.table(TABLE) is not None else ()
