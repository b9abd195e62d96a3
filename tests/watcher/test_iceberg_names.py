"""Names of Iceberg copies: none is one that Iceberg takes for its own, and each is of one table."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from watcher.replica.iceberg.names import METADATA_TABLES, is_taken, name_copy

cased = st.sampled_from(sorted(METADATA_TABLES)).flatmap(
    lambda name: st.sampled_from((name, name.upper(), name.title()))
)
tables = st.one_of(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,9}", fullmatch=True),
    st.builds(lambda name, number: name + "_" * number, cased, st.integers(0, 3)),
    st.builds(lambda name: f"sales.{name}", cased),
)


@given(tables)
def test_a_name_is_free(table: str) -> None:
    assert not is_taken(name_copy(table))


@given(st.sets(tables, min_size=2))
def test_no_two_tables_share_a_copy(names: set[str]) -> None:
    folded = {name.lower() for name in names}
    assert len({name_copy(name).lower() for name in names}) == len(folded)


def test_other_names_stay() -> None:
    for name in ("Singers", "sales.files", "my_files", "files_2", "file"):
        assert name_copy(name) == name
    assert name_copy("Files") == "Files_"
