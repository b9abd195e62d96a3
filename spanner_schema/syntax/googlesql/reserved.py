"""The words of GoogleSQL that must be quoted as names."""

from __future__ import annotations

WORDS = """
all and any array as asc assert_rows_modified at between by case cast collate contains create
cross cube current default define desc distinct else end enum escape except exclude exists extract
false fetch following for from full graph_table group grouping groups hash having if ignore in
inner intersect interval into is join lateral left like limit lookup merge natural new no not null
nulls of on or order outer over partition preceding proto range recursive respect right rollup
rows select set some struct tablesample then to treat true unbounded union unnest using when where
window with within
"""
RESERVED = frozenset(WORDS.upper().split())
"""https://cloud.google.com/spanner/docs/reference/standard-sql/lexical#reserved_keywords"""
QUOTED = RESERVED | {"CHECK", "CONSTRAINT", "FOREIGN", "PRIMARY", "SYNONYM"}
"""What is to be quoted as a name: these, too, because something else than a column of CREATE TABLE
begins with them."""
