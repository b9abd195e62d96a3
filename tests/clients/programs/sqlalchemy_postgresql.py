"""What users of SQLAlchemy do with the PostgreSQL dialect through PGAdapter: the variable
``PGADAPTER_URL`` is the address of a database. pytest runs it in an environment of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.orm import Session, registry, relationship

METADATA = sa.MetaData()
SINGERS = sa.Table(
    "singers",
    METADATA,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("first_name", sa.String(100)),
    sa.Column("last_name", sa.String, nullable=False),
    sa.Column(
        "full_name",
        sa.String,
        sa.Computed("coalesce(concat(first_name, ' '::varchar, last_name), last_name)", True),
    ),
    sa.Column("active", sa.Boolean, server_default=sa.true()),
)
ALBUMS = sa.Table(
    "albums",
    METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("singer_id", sa.String, sa.ForeignKey("singers.id", name="fk_singer")),
    sa.Column("title", sa.String, nullable=False),
    sa.Column("budget", sa.Numeric),
    sa.CheckConstraint("id > 0", name="positive"),
)
BY_TITLE = sa.Index("by_title", ALBUMS.c.title, unique=True)
VALUES = sa.Table(
    "every_type",
    METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("yes", sa.Boolean),
    sa.Column("number", sa.Integer),
    sa.Column("ratio", sa.Float),
    sa.Column("price", sa.Numeric),
    sa.Column("name", sa.String),
    sa.Column("picture", sa.LargeBinary),
    sa.Column("day", sa.Date),
    sa.Column("at", sa.DateTime(timezone=True)),
    sa.Column("document", JSONB),
    sa.Column("numbers", ARRAY(sa.BigInteger)),
    sa.Column("names", ARRAY(sa.String)),
)
AT = datetime(2026, 11, 28, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=1)))
ROW: dict[str, Any] = {
    "id": 1,
    "yes": True,
    "number": 7,
    "ratio": 0.25,
    "price": Decimal("3.14"),
    "name": "Zoë",
    "picture": b"\x00\xff",
    "day": date(2026, 11, 28),
    "at": AT,
    "document": {"a": [1, None], "b": "x"},
    "numbers": [1, None, 3],
    "names": ["a", "b"],
}


class Singer:
    """A row of singers."""

    def __init__(self, key: str, last_name: str) -> None:
        self.id, self.last_name = key, last_name
        self.full_name: str
        self.albums: list[Album] = []


class Album:
    """A row of albums."""

    def __init__(self, key: int, title: str, budget: Decimal | None = None) -> None:
        self.id, self.title, self.budget = key, title, budget


MAPPED = registry()
MAPPED.map_imperatively(
    Singer, SINGERS, properties={"albums": relationship(Album, order_by=ALBUMS.c.id)}
)
MAPPED.map_imperatively(Album, ALBUMS)


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    made = sa.create_engine(os.environ["PGADAPTER_URL"])
    METADATA.create_all(made, checkfirst=False)
    yield made
    BY_TITLE.drop(made)  # Spanner drops no table that has one.
    METADATA.drop_all(made, checkfirst=False)
    made.dispose()


def test_rows_of_every_type_come_back(engine: Any) -> None:
    with engine.begin() as connection:
        connection.execute(sa.insert(VALUES), ROW)
        connection.execute(sa.insert(VALUES), {"id": 2})
        rows = connection.execute(sa.select(VALUES).order_by(VALUES.c.id)).mappings().all()
    assert dict(rows[0]) == ROW
    assert {value for name, value in rows[1].items() if name != "id"} == {None}
    with engine.connect() as connection:
        for name, value in ROW.items():
            column = VALUES.c[name]
            if name != "document":
                found = connection.execute(sa.select(VALUES.c.id).where(column == value)).all()
                assert found == [(1,)], name


def test_objects_are_written_read_and_deleted(engine: Any) -> None:
    with Session(engine) as session:
        singer = Singer("s1", "Bach")
        singer.albums += [Album(1, "First", Decimal(10)), Album(2, "Second")]
        session.add(singer)
        session.commit()
        assert singer.full_name == "Bach"
    with Session(engine) as session:
        found = session.get_one(Singer, "s1")
        assert [album.title for album in found.albums] == ["First", "Second"]
        found.albums[0].budget = Decimal(20)
        session.delete(found.albums[1])
        session.commit()
    with engine.connect() as connection:
        total = sa.select(sa.func.count(), sa.func.sum(ALBUMS.c.budget))
        assert connection.execute(total).one() == (1, Decimal(20))


def test_statements_return_rows_and_upsert(engine: Any) -> None:
    with engine.begin() as connection:
        added = sa.insert(SINGERS).values(id="s2", last_name="Satie").returning(SINGERS.c.active)
        assert connection.execute(added).scalar_one() is True
        upsert = insert(SINGERS).values(id="s2", last_name="Sati", active=False)
        names = {"last_name": upsert.excluded.last_name, "active": upsert.excluded.active}
        upsert = upsert.on_conflict_do_update(index_elements=["id"], set_=names)
        connection.execute(upsert)
        changed = sa.update(SINGERS).where(SINGERS.c.id == "s2").values(first_name="Erik")
        assert connection.execute(changed.returning(SINGERS.c.full_name)).all() == [("Erik Sati",)]
        assert connection.execute(sa.delete(SINGERS).where(SINGERS.c.id == "s2")).rowcount == 1


def test_queries_join_group_and_page(engine: Any) -> None:
    with engine.begin() as connection:
        rows = [{"id": f"q{n}", "last_name": f"N{n % 2}"} for n in range(6)]
        connection.execute(sa.insert(SINGERS), rows)
        albums = [{"id": n + 10, "singer_id": f"q{n}", "title": f"T{n}"} for n in range(4)]
        connection.execute(sa.insert(ALBUMS), albums)
    joined = SINGERS.outerjoin(ALBUMS, ALBUMS.c.singer_id == SINGERS.c.id)
    mine = SINGERS.c.id.like("q%")
    counted = (
        sa.select(SINGERS.c.last_name, sa.func.count(ALBUMS.c.id))
        .select_from(joined)
        .where(mine)
        .group_by(SINGERS.c.last_name)
        .order_by(SINGERS.c.last_name)
    )
    page = sa.select(SINGERS.c.id).where(mine).order_by(SINGERS.c.id.desc()).limit(2).offset(1)
    with engine.connect() as connection:
        assert connection.execute(counted).all() == [("N0", 2), ("N1", 2)]
        assert connection.execute(page).scalars().all() == ["q4", "q3"]
        theirs = sa.exists().where(ALBUMS.c.singer_id == SINGERS.c.id)
        without = connection.execute(sa.select(SINGERS.c.id).where(mine, ~theirs))
        assert sorted(without.scalars()) == ["q4", "q5"]


def test_constraints_raise_their_errors(engine: Any) -> None:
    for statement in (
        sa.insert(ALBUMS).values(id=100, title="First"),
        sa.insert(ALBUMS).values(id=1, title="other"),
    ):
        with pytest.raises(exc.IntegrityError), engine.begin() as connection:
            connection.execute(statement)
    for statement in (
        sa.insert(ALBUMS).values(id=-1, title="negative"),
        sa.insert(ALBUMS).values(id=101, title="x", singer_id="nobody"),
        sa.insert(ALBUMS).values(id=102),
    ):
        with pytest.raises(exc.DBAPIError), engine.begin() as connection:
            connection.execute(statement)


def test_a_transaction_that_is_rolled_back_leaves_nothing(engine: Any) -> None:
    with engine.connect() as connection:
        connection.execute(sa.insert(SINGERS).values(id="gone", last_name="x"))
        connection.rollback()
    read_only = engine.execution_options(postgresql_readonly=True)
    with read_only.connect() as connection:
        assert connection.execute(sa.select(SINGERS).where(SINGERS.c.id == "gone")).all() == []


def test_the_inspector_finds_the_tables(engine: Any) -> None:
    inspector = sa.inspect(engine)
    assert {"singers", "albums", "every_type"} <= set(inspector.get_table_names())
    assert inspector.has_table("albums")
    assert not inspector.has_table("nothing")


def test_the_inspector_finds_the_columns(engine: Any) -> None:
    columns = {each["name"]: each for each in sa.inspect(engine).get_columns("albums")}
    assert list(columns) == ["id", "singer_id", "title", "budget"]
    assert isinstance(columns["budget"]["type"], sa.Numeric)
    assert not columns["title"]["nullable"]
