"""Proto bundles: what CREATE PROTO BUNDLE and ALTER PROTO BUNDLE name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from spanner_schema.model.schema import Schema
from spanner_schema.syntax.reader import TokenReader

KIND = "PROTO BUNDLE"


@dataclass(frozen=True, slots=True)
class BundleChange:
    """ALTER PROTO BUNDLE: the full names of the types of each of its lists."""

    inserted: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


@lru_cache(maxsize=1_000)
def read_bundle(text: str) -> tuple[str, ...]:
    """The types of a whole CREATE PROTO BUNDLE statement. Raises DdlSyntaxError."""
    reader = TokenReader(text)
    reader.expect("CREATE", "PROTO", "BUNDLE")
    names = read_type_names(reader)
    reader.accept(";")
    reader.expect_end()
    return names


def read_bundle_change(text: str) -> BundleChange:
    """What a whole ALTER PROTO BUNDLE statement changes. Raises DdlSyntaxError."""
    reader = TokenReader(text)
    reader.expect("ALTER", "PROTO", "BUNDLE")
    inserted = read_type_names(reader) if reader.accept("INSERT") else ()
    updated = read_type_names(reader) if reader.accept("UPDATE") else ()
    deleted = read_type_names(reader) if reader.accept("DELETE") else ()
    if not inserted and not updated and not deleted:
        reader.fail("INSERT, UPDATE or DELETE with the names of types")
    reader.accept(";")
    reader.expect_end()
    return BundleChange(inserted, updated, deleted)


def read_type_names(reader: TokenReader) -> tuple[str, ...]:
    """(a.b.C, `d.E`, ...); a comma may follow the last name."""
    reader.expect("(")
    names: list[str] = []
    while not reader.accept(")"):
        names.append(reader.read_path("the name of a type"))
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(names)


def write_bundle(names: tuple[str, ...]) -> str:
    """The statement that creates a bundle of these types."""
    lines = "".join(f"  `{name}`,\n" for name in names)
    return f"CREATE PROTO BUNDLE (\n{lines})"


def list_bundle_types(schema: Schema) -> tuple[str, ...]:
    """The full names of the types of a schema's bundle; none without a bundle."""
    texts = [item.text for item in schema.verbatim if item.kind == KIND]
    return read_bundle(texts[0]) if texts else ()
