"""How far a load is, and how long it lasts on: estimated by keys, in cuts and on a terminal."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
from fixtures.changing_schemas import watchable_ddl, write
from fixtures.replicas import CONSUMER, replicate
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from spanner_schema.model.column_types import Type, TypeCode
from watcher.cli import load_bars
from watcher.cli.replicate import describe_load
from watcher.replica.keys.order import KeyColumn, KeyOrder
from watcher.replica.load_share import KeyBounds
from watcher.replica.loads import LoadProgress
from watcher.runners.replicator import Replicator
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.key_values import NAN, NULL, Part, Parts, write_key

VALUES: dict[TypeCode, st.SearchStrategy[object]] = {
    TypeCode.BOOL: st.booleans(),
    TypeCode.INT64: st.integers(-(2**63), 2**63 - 1),
    TypeCode.FLOAT64: st.floats(allow_nan=False),
    TypeCode.NUMERIC: st.decimals(-(10**20), 10**20, places=9).map(Decimal),
    TypeCode.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    TypeCode.BYTES: st.binary(max_size=12),
    TypeCode.DATE: st.dates(date(1, 1, 1)),
    TypeCode.TIMESTAMP: st.integers(0, 2**60),
}


def parts_of(code: TypeCode) -> st.SearchStrategy[Part]:
    absent = [NULL, NAN] if code is TypeCode.FLOAT64 else [NULL]
    return st.one_of(st.sampled_from(absent), VALUES[code].map(lambda value: (2, value)))


@given(data=st.data())
def test_of_keys_in_their_order_the_share_never_falls(data: st.DataObject) -> None:
    """Whatever the types of the key, whether its columns are descending, and where it has NULL."""
    codes = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    columns = [
        KeyColumn(f"k{n}", Type(code), data.draw(st.booleans())) for n, code in enumerate(codes)
    ]
    order = KeyOrder(tuple(columns))
    keys: list[Parts] = data.draw(
        st.lists(st.tuples(*map(parts_of, codes)), min_size=2, max_size=20)
    )
    ordered = sorted(keys, key=order.sort_key)
    bounds = KeyBounds(order, ordered[0], ordered[-1])
    types = [each.type for each in columns]
    shares = [bounds.measure(write_key(each, types)) for each in ordered]
    known = [share for share in shares if share is not None]
    assert known == sorted(known)
    assert all(0 <= share <= 1 for share in known)


def test_a_load_says_how_much_is_done_and_how_long_it_lasts_on(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(*watchable_ddl("T"))
    write(database, *range(200), Version=1)
    to = {"to": f"delta:{tmp_path}", "load_rows": 50}
    reports = replicate(database, tmp_path, tables=["T"], replica=to)
    loads = [report.loading["T"] for report in reports if report.loading]
    assert [load.progress.rows for load in loads if load is not None] == [50, 100, 150, 200]
    for load in loads:
        assert load is not None
        share = load.progress.share
        assert share is not None
        assert abs(share - load.progress.rows / 200) < 0.01
        said = describe_load(load)
        assert said is not None
        assert said["share"] == round(share, 4)
        left = load.seconds * (1 - share) / share
        assert load.seconds_left == pytest.approx(left)
    assert "about 25%" in reports[0].cut.explain()


def test_pages_of_a_load_are_told(create_database: CreateDatabase, tmp_path: Path) -> None:
    database = create_database(*watchable_ddl("T"))
    write(database, *range(100), Version=1)
    told: list[LoadProgress | None] = []
    config = parse_watch_config(
        {
            "database": str(address_of(database)),
            "consumer": CONSUMER,
            "tables": ["T"],
            "replica": {"to": f"delta:{tmp_path}", "load_rows": 30},
        }
    )
    Replicator(config, watch_load=lambda _, progress: told.append(progress)).run_once()
    assert told[-1] is None
    there = [each for each in told if each is not None]
    assert [each.rows for each in there] == sorted(each.rows for each in there)
    shares = [each.share for each in there if each.share is not None]
    assert len(shares) == len(there) >= 4
    assert shares == sorted(shares)


def test_a_terminal_has_a_bar_with_rows_bytes_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    terminal = Console(file=screen, force_terminal=True, width=200)
    monkeypatch.setattr(load_bars, "ERRORS", terminal)
    with load_bars.shown_loads(quiet=False) as watch:
        assert watch is not None
        watch("Orders", LoadProgress(("7",), 12_000, 3_400_000, 1, 0, 0.25))
        watch("Orders", LoadProgress(("8",), 24_000, 6_800_000, 1, 0, 0.5))
        watch("Songs", LoadProgress((None,), 5, 1_000, 1, 0, None))
        watch("Orders", None)
    text = screen.getvalue()
    for said in ("loading Orders", "50%", "24,000 rows, 6.8 MB", "loading Songs"):
        assert said in text
    with load_bars.shown_loads(quiet=True) as watch:
        assert watch is None
