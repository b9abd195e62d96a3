"""Options that several ``ddl`` commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanner_schema.model.strategies import Modulo, ShardKind, Strategy

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="A TOML file: tables, exclude, [defaults], [table.NAME]; flags override the file.",
    ),
]
StrategyOption = Annotated[
    Strategy | None,
    typer.Option(
        metavar="STRATEGY",
        help="automatic (default): Spanner writes the timestamp, clearing sets it to NULL;"
        " applications stay as they are, but for those that the notes of the plan name."
        " processed: clearing sets Processed to TRUE and keeps the timestamp;"
        " the applications' UPDATEs reset Processed. manual: the applications write an existing"
        " timestamp column. change-set: for tables without a timestamp; the applications write a"
        " change-set id. change-stream: a change stream of Spanner, with deletes.",
    ),
]
ShardsOption = Annotated[
    int | None,
    typer.Option(
        "--shards",
        metavar="NUMBER",
        help="Distinct values of the computed shard (16); see 'ddl advise'.",
    ),
]
ModuloOption = Annotated[
    Modulo | None,
    typer.Option(
        metavar="MODULO",
        help="positive: exactly N shards. signed: MOD keeps the sign, 2N - 1 shards.",
    ),
]
ShardKeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shard-key",
        metavar="COLUMN",
        help="Hash this column; repeatable; default: the primary key.",
    ),
]
TimestampColumnOption = Annotated[
    str | None,
    typer.Option(
        "--timestamp-column",
        metavar="NAME",
        help="Name of the commit-timestamp column (LastModified).",
    ),
]
ShardColumnOption = Annotated[
    str | None,
    typer.Option(
        "--shard-column", metavar="NAME", help="Name of the computed shard column (ShardId)."
    ),
]
ProcessedColumnOption = Annotated[
    str | None,
    typer.Option(
        "--processed-column", metavar="NAME", help="Name of the Processed column (Processed)."
    ),
]
IndexOption = Annotated[
    str | None, typer.Option("--index", metavar="NAME", help="Name of the index.")
]
StoringOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storing",
        metavar="COLUMN",
        help="Store this column in the index, to avoid a join with the table; repeatable.",
    ),
]
TakeOverOption = Annotated[
    list[str] | None,
    typer.Option(
        "--take-over",
        metavar="COLUMN",
        help="Let this existing column be overwritten and cleared (with change-set: the table of"
        " change sets); repeatable. Its values are lost.",
    ),
]
ShardOption = Annotated[
    ShardKind | None,
    typer.Option(
        "--shard",
        metavar="KIND",
        help="computed (default): a generated column. time, fixed, not-null: --shard-column is one"
        " that applications write. none: no shard.",
    ),
]
HiddenOption = Annotated[
    bool,
    typer.Option(
        "--hidden",
        help="Make the added columns HIDDEN, so that SELECT * of applications stays as it was"
        " (GoogleSQL).",
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse, where a table cannot be planned. Without it such tables are left out and"
        " named, and the exit code is 5.",
    ),
]
StoredOption = Annotated[
    bool,
    typer.Option("--stored", help="Store the shard in the table, too; writes every row once."),
]
