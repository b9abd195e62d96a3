"""Any schema, watched and copied in any way: what is drawn, and the judge of one drawing."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fixtures.any_schema import AnySchema, schemas
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
from hypothesis import strategies as st

from schemas.delivered import SinkKind
from schemas.outcomes import SchemaOutcome
from schemas.way import DDL_SECONDS_MAX, ENGINES, Choice, Subject, Way
from spanner_schema.model.schema import Dialect
from watcher.consumers.positions.tables import create_own_tables
from watcher.model.change import ValueCapture

TABLES_MAX = (1, 1, 2, 3)
"""At most so many tables: what goes wrong is seldom of several."""
NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A schema, and how it is watched: what one example of hypothesis is."""

    schema: AnySchema
    sink: SinkKind
    value_capture: str | None
    leaves: bool
    seed: int


drawings = st.builds(
    Drawing,
    st.tuples(st.sampled_from(list(Dialect)), st.sampled_from(TABLES_MAX)).flatmap(
        lambda drawn: schemas(*drawn)
    ),
    st.sampled_from(list(SinkKind)),
    st.none() | st.sampled_from([capture.value for capture in ValueCapture]),
    st.integers(0, 3).map(lambda number: number == 3),
    st.integers(0, 2**16),
)


class Judge:
    """Takes drawings the whole way, each in a database of its own; positions are in another one,
    which is emptied after each of them."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._positions = instance.database(f"positions-{next(NUMBERS)}")
        self._positions.create().result(DDL_SECONDS_MAX)
        create_own_tables(self._positions, "SpannerWatcherPositions")

    def judge(self, drawing: Drawing) -> SchemaOutcome:
        """What comes of a drawing."""
        schema = drawing.schema
        outcome = SchemaOutcome(f"seed {drawing.seed}", schema.dialect.value)
        database = create_database(self._instance, schema)
        choice = Choice(
            [ENGINES[drawing.seed % len(ENGINES)]],
            sink=drawing.sink,
            value_capture=drawing.value_capture,
            positions=self._positions,
            leaves=drawing.leaves,
        )
        try:
            with TemporaryDirectory() as folder:
                subject = Subject(
                    database, schema.dialect, schema.facts, str(drawing.seed), Path(folder), choice
                )
                Way(subject, outcome).run()
        finally:
            database.drop()
            self._forget()
        return outcome

    def _forget(self) -> None:
        tables = [table.table_id for table in self._positions.list_tables()]
        with self._positions.batch() as batch:
            for table in tables:
                batch.delete(table, KeySet(all_=True))


def create_database(instance: Instance, schema: AnySchema) -> Database:
    """A new database with a schema."""
    postgres = schema.dialect is Dialect.POSTGRESQL
    database: Database = instance.database(
        f"any-{next(NUMBERS)}",
        database_dialect=DatabaseDialect.POSTGRESQL
        if postgres
        else DatabaseDialect.GOOGLE_STANDARD_SQL,
    )
    database.create().result(DDL_SECONDS_MAX)
    database.update_ddl(schema.statements).result(DDL_SECONDS_MAX)
    return database
