"""The reserved words of PostgreSQL: as names they must be quoted."""

from __future__ import annotations

WORDS = """
all analyse analyze and any array as asc asymmetric both case cast check collate column constraint
create current_catalog current_date current_role current_time current_timestamp current_user default
deferrable desc distinct do else end except false fetch for foreign from grant group having in
initially intersect into lateral leading limit localtime localtimestamp not null offset on only or
order placing primary references returning select session_user some symmetric table then to trailing
true union unique user using variadic when where window with
"""

RESERVED = frozenset(WORDS.split())
