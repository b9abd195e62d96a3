"""The names that Spanner gives to constraints without one, and to the indexes of foreign keys."""

from __future__ import annotations

from collections.abc import Iterable

from ddl.rules.limits import NAME_CHARACTERS_MAX
from emulator.sql.functions.text import farm_fingerprint
from spanner_schema.model.names import join_name, split_name

SEED = "2695C62E33338E4B"


def name_foreign_key(table: str, referenced_table: str, taken: Iterable[str]) -> str:
    """The first free name for a foreign key between two tables."""
    return number_name(join_names("FK", table, referenced_table), taken)


def name_check(table: str, taken: Iterable[str]) -> str:
    """The first free name for a CHECK of a table."""
    return number_name(join_names("CK", table), taken)


def name_managed_index(table: str, columns: Iterable[str], *, nullable: bool, unique: bool) -> str:
    """The name of the index that Spanner creates for a side of a foreign key."""
    base = join_names("IDX", table, "_".join(columns))
    codes = "U" if unique else "N" if nullable else ""
    signature = f"{base}_{codes}" if codes else base
    suffix = f"{codes}_{make_fingerprint(signature)}" if codes else make_fingerprint(signature)
    return shorten_name(base, suffix)


def join_names(prefix: str, first: str, *others: str) -> str:
    """Prefix and names; a named schema stands before the prefix."""
    schema, name = split_name(first)
    return "_".join([join_name(schema, prefix), name, *(split_name(each)[1] for each in others)])


def number_name(base: str, taken: Iterable[str]) -> str:
    """A name with a fingerprint and the first number that makes it free."""
    folded = {name.casefold() for name in taken}
    number = 1
    while True:
        name = shorten_name(base, f"{make_fingerprint(base)}_{number}")
        if name.casefold() not in folded:
            return name
        number += 1


def make_fingerprint(signature: str) -> str:
    """FarmHash as 16 digits."""
    return f"{farm_fingerprint(f'{SEED}_{signature}') % (1 << 64):016X}"


def shorten_name(base: str, suffix: str) -> str:
    """Both joined, the base cut so that the name is not too long."""
    base = base[: NAME_CHARACTERS_MAX - len(suffix) - 1]
    return f"{base.removesuffix('_')}_{suffix}"
