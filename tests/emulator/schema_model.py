"""A model of a database whose schema changes: what every past moment must still show."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

TABLES = ("Cats", "Dogs")
INDEXES = ("By0", "By1", "By2", "By3")
COLUMNS = ("A", "B", "C")
TYPES = ("INT64", "STRING(MAX)")
SHARDS = (2, 8)


@dataclass
class ModelTable:
    """Columns with their types in their order, rows by key, the column of each index."""

    columns: dict[str, str] = field(default_factory=dict)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    indexes: dict[str, str] = field(default_factory=dict)

    def select_all(self) -> list[list[Any]]:
        """What SELECT * ORDER BY K gives."""
        return [
            [key, *(row[name] for name in self.columns)] for key, row in sorted(self.rows.items())
        ]


Model = dict[str, ModelTable]


@dataclass
class SchemaWorld:
    """A database, the model of it, and the model at every remembered timestamp."""

    database: Database
    choice: random.Random
    model: Model = field(default_factory=dict)
    moments: list[tuple[datetime, Model]] = field(default_factory=list)

    def step(self) -> None:
        """A change of schema or rows, and the moment after it."""
        name = self.choice.choice(TABLES)
        table = self.model.get(name)
        if table is None:
            self.create(name)
        else:
            weights = {self.write: 8, self.delete: 2, self.add: 3, self.drop_column: 3}
            weights |= {self.reshard: 2, self.index: 3, self.drop_index: 2, self.drop: 1}
            weights |= {self.rename: 2}
            (change,) = self.choice.choices(list(weights), list(weights.values()))
            change(name, table)
        self.moments.append((now(self.database), deepcopy(self.model)))

    def ddl(self, *statements: str) -> None:
        """Schema changes."""
        self.database.update_ddl(statements).result(60)

    def create(self, name: str) -> None:
        """A table with its key alone."""
        self.ddl(f"CREATE TABLE {name} (K INT64 NOT NULL) PRIMARY KEY (K)")
        self.model[name] = ModelTable()

    def drop(self, name: str, table: ModelTable) -> None:
        """The table with its indexes."""
        self.ddl(*(f"DROP INDEX {index}" for index in table.indexes), f"DROP TABLE {name}")
        del self.model[name]

    def rename(self, name: str, table: ModelTable) -> None:
        """Another name, which may be that of the other table, which then gets this one."""
        other = next(each for each in TABLES if each != name)
        self.model[other], there = table, self.model.pop(other, None)
        if there is None:
            self.ddl(f"RENAME TABLE {name} TO {other}")
            del self.model[name]
        else:
            self.ddl(f"RENAME TABLE {name} TO Aside, {other} TO {name}, Aside TO {other}")
            self.model[name] = there

    def write(self, name: str, table: ModelTable) -> None:
        """Some rows, new or not."""
        plain = {column: type_ for column, type_ in table.columns.items() if column != "ShardId"}
        with self.database.batch() as batch:
            for key in self.choice.sample(range(12), 4):
                row = {column: self.value(type_) for column, type_ in plain.items()}
                batch.insert_or_update(name, ["K", *row], [[key, *row.values()]])
                stored = table.rows.setdefault(key, dict.fromkeys(table.columns))
                stored.update(row)
                self.compute(table, key)

    def delete(self, name: str, table: ModelTable) -> None:
        """Some rows."""
        keys = self.choice.sample(range(12), 3)
        with self.database.batch() as batch:
            batch.delete(name, KeySet(keys=[[key] for key in keys]))
        for key in keys:
            table.rows.pop(key, None)

    def add(self, name: str, table: ModelTable) -> None:
        """A column, with a default or without."""
        column = self.choice.choice(COLUMNS)
        if column in table.columns:
            return
        type_ = self.choice.choice(TYPES)
        value, default = None, ""
        if self.choice.random() < 0.5:
            value = self.value(type_)
            default = f" DEFAULT ({value!r})"
        self.ddl(f"ALTER TABLE {name} ADD COLUMN {column} {type_}{default}")
        table.columns[column] = type_
        for row in table.rows.values():
            row[column] = value

    def drop_column(self, name: str, table: ModelTable) -> None:
        """A column that no index holds."""
        free = [c for c in table.columns if c not in table.indexes.values()]
        if free:
            column = self.choice.choice(free)
            self.ddl(f"ALTER TABLE {name} DROP COLUMN {column}")
            del table.columns[column]
            for row in table.rows.values():
                del row[column]

    def reshard(self, name: str, table: ModelTable) -> None:
        """The computed column goes with its indexes and comes again with another divisor."""
        gone = [index for index, column in table.indexes.items() if column == "ShardId"]
        statements = [f"DROP INDEX {index}" for index in gone]
        if "ShardId" in table.columns:
            statements.append(f"ALTER TABLE {name} DROP COLUMN ShardId")
        divisor = self.choice.choice(SHARDS)
        self.ddl(
            *statements,
            f"ALTER TABLE {name} ADD COLUMN ShardId INT64 AS (MOD(K, {divisor})) STORED",
        )
        table.columns.pop("ShardId", None)
        table.columns["ShardId"] = str(divisor)
        for index in gone:
            del table.indexes[index]
        for key in table.rows:
            self.compute(table, key)

    def index(self, name: str, table: ModelTable) -> None:
        """An index of a changing definition."""
        index = self.choice.choice(INDEXES)
        if table.columns and not any(index in each.indexes for each in self.model.values()):
            column = self.choice.choice(list(table.columns))
            kind = self.choice.choice(("", "NULL_FILTERED "))
            self.ddl(f"CREATE {kind}INDEX {index} ON {name} ({column})")
            table.indexes[index] = column

    def drop_index(self, name: str, table: ModelTable) -> None:
        """Any index."""
        if table.indexes:
            index = self.choice.choice(list(table.indexes))
            self.ddl(f"DROP INDEX {index}")
            del table.indexes[index]

    def value(self, type_: str) -> int | str:
        """A value of a type."""
        number = self.choice.randrange(1000)
        return number if type_ == "INT64" else f"text {number}"

    def compute(self, table: ModelTable, key: int) -> None:
        """The computed column of a row."""
        if "ShardId" in table.columns:
            table.rows[key]["ShardId"] = key % int(table.columns["ShardId"])

    def check(self, database: Database) -> None:
        """Every remembered moment shows what the model was then."""
        for moment, model in self.moments:
            for name in TABLES:
                check_table(database, moment, name, model.get(name))


def check_table(database: Database, moment: datetime, name: str, table: ModelTable | None) -> None:
    """A table at a moment: whole, and through each index that there was."""
    if table is None:
        with pytest.raises(exceptions.InvalidArgument, match=f"Table not found: {name}"):
            rows(database, f"SELECT * FROM {name}", moment)
        return
    assert rows(database, f"SELECT * FROM {name} ORDER BY K", moment) == table.select_all()
    for index in INDEXES:
        column = table.indexes.get(index)
        hinted = f"SELECT K FROM {name}@{{FORCE_INDEX={index}}} "
        if column is None:
            with pytest.raises(exceptions.InvalidArgument, match="does not have a secondary index"):
                rows(database, hinted, moment)
            continue
        present = sorted(key for key, row in table.rows.items() if row[column] is not None)
        sql = f"{hinted}WHERE {column} IS NOT NULL ORDER BY K"
        assert rows(database, sql, moment) == [[key] for key in present]
        with database.snapshot(read_timestamp=moment) as snapshot:
            keys = snapshot.read(name, ["K"], KeySet(all_=True), index=index)
            assert set(present) <= {key for (key,) in keys} <= set(table.rows)


def rows(database: Database, sql: str, moment: datetime | None = None) -> list[list[Any]]:
    """The rows of a query, at a timestamp or now."""
    with database.snapshot(read_timestamp=moment) as snapshot:
        return [list(row) for row in snapshot.execute_sql(sql)]


def now(database: Database) -> datetime:
    """A timestamp that sees everything so far and nothing that follows."""
    moment: datetime = rows(database, "SELECT CURRENT_TIMESTAMP()")[0][0]
    return moment
