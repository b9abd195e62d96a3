"""The parts of which DDL statements are made: types, columns, keys, options."""

from __future__ import annotations

from typing import cast

from ddl.reader import Reader
from ddl.schema import (
    ChangeStreamTable,
    Column,
    ForeignKey,
    Identity,
    Interleave,
    KeyPart,
    OnDelete,
    RowDeletionPolicy,
    StructField,
    Type,
    TypeCode,
)
from ddl.tokens import Kind

VERBATIM_KINDS = (
    "PROTO BUNDLE",
    "PROPERTY GRAPH",
    "SEARCH INDEX",
    "VECTOR INDEX",
    "LOCALITY GROUP",
    "SEQUENCE",
    "VIEW",
    "MODEL",
    "ROLE",
    "FUNCTION",
    "PLACEMENT",
)
OTHER_KINDS = ("GRANT", "REVOKE", "ANALYZE", "RENAME")

SIZED = {"STRING": TypeCode.STRING, "BYTES": TypeCode.BYTES}
PLAIN = {
    code.value: code
    for code in TypeCode
    if code
    not in {
        TypeCode.STRING,
        TypeCode.BYTES,
        TypeCode.ARRAY,
        TypeCode.STRUCT,
        TypeCode.PROTO,
        TypeCode.ENUM,
    }
}


def type_of(reader: Reader) -> Type:
    """A type of a column."""
    if reader.accept("ARRAY"):
        reader.expect("<")
        element = type_of(reader)
        reader.expect(">")
        return Type(TypeCode.ARRAY, element=element, vector_length=vector_length(reader))
    if reader.accept("STRUCT"):
        return struct(reader)
    for code in (TypeCode.PROTO, TypeCode.ENUM):
        # So INFORMATION_SCHEMA may write them; DDL gives the name alone.
        if reader.accept(code.value, "<"):
            name = reader.path("the name of a type")
            reader.expect(">")
            return Type(code, proto_name=name)
    word = reader.token.text.upper()
    if word in SIZED:
        reader.advance()
        return Type(SIZED[word], length=size(reader))
    if word in PLAIN:
        reader.advance()
        return Type(PLAIN[word])
    start = reader.mark()
    name = reader.path("a type")
    if "." not in name:
        reader.reset(start)
        reader.fail("a type")
    return Type(TypeCode.PROTO, proto_name=name)


def vector_length(reader: Reader) -> int | None:
    """(vector_length=>n), where there is one."""
    if not reader.accept("(", "VECTOR_LENGTH", "=>"):
        return None
    found = reader.number()
    reader.expect(")")
    return found


def size(reader: Reader) -> int | None:
    """(n) or (MAX)."""
    reader.expect("(")
    length = None if reader.accept("MAX") else reader.number()
    reader.expect(")")
    return length


def struct(reader: Reader) -> Type:
    """STRUCT<a INT64, ...>, after the word."""
    reader.expect("<")
    fields = []
    while not reader.accept(">"):
        fields.append(StructField(reader.name(), type_of(reader)))
        if not reader.peek(">"):
            reader.expect(",")
    return Type(TypeCode.STRUCT, fields=tuple(fields))


def column(reader: Reader) -> Column:
    """A column definition: its clauses may come in any order."""
    name = reader.name("a column name")
    type_ = type_of(reader)
    clauses: dict[str, object] = {}
    while clause(reader, clauses):
        pass
    given = cast("tuple[tuple[str, str], ...]", clauses.pop("options", ()))
    commit = any(n == "allow_commit_timestamp" and v.lower() == "true" for n, v in given)
    rest = tuple(pair for pair in given if pair[0] != "allow_commit_timestamp")
    return Column(
        name,
        type_,
        allow_commit_timestamp=commit,
        options=rest,
        **clauses,  # type: ignore[arg-type]
    )


def clause(reader: Reader, clauses: dict[str, object]) -> bool:
    """Reads one clause after a column's type; False when there is none."""
    if reader.accept("NOT", "NULL"):
        clauses["not_null"] = True
    elif reader.accept("HIDDEN"):
        clauses["hidden"] = True
    elif reader.accept("DEFAULT"):
        clauses["default"] = reader.parenthesised()
    elif reader.accept("ON", "UPDATE"):
        clauses["on_update"] = reader.parenthesised()
    elif reader.peek("AS", "("):
        reader.expect("AS")
        clauses["generated"] = reader.parenthesised()
        clauses["stored"] = reader.accept("STORED")
    elif reader.accept("GENERATED", "BY", "DEFAULT", "AS", "IDENTITY"):
        clauses["identity"] = identity(reader)
    elif reader.accept("AUTO_INCREMENT"):
        clauses["identity"] = Identity()
    elif reader.peek("OPTIONS"):
        clauses["options"] = options(reader)
    else:
        return False
    return True


def identity(reader: Reader) -> Identity:
    """(BIT_REVERSED_POSITIVE [SKIP RANGE a, b] [START COUNTER WITH n])."""
    if not reader.accept("("):
        return Identity()
    start, skip = None, None
    while not reader.accept(")"):
        if reader.accept("SKIP", "RANGE"):
            low = reader.number()
            reader.expect(",")
            skip = (low, reader.number())
        elif reader.accept("START", "COUNTER", "WITH"):
            start = reader.number()
        else:
            reader.expect("BIT_REVERSED_POSITIVE")
    return Identity(start, skip)


def options(reader: Reader) -> tuple[tuple[str, str], ...]:
    """OPTIONS (a = b, ...): the values as written."""
    reader.expect("OPTIONS", "(")
    pairs = []
    while not reader.accept(")"):
        name = reader.name("an option")
        reader.expect("=")
        pairs.append((name, value(reader)))
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(pairs)


def value(reader: Reader) -> str:
    """The value of an option: a literal, a word or a list."""
    if reader.peek("["):
        start = reader.token.start
        while not reader.peek("]"):
            reader.advance()
        return reader.text[start : reader.advance().end]
    sign = "-" if reader.accept("-") else ""
    if reader.token.kind not in {Kind.STRING, Kind.NUMBER, Kind.WORD}:
        reader.fail("a value")
    return sign + reader.advance().text


def key_parts(reader: Reader) -> tuple[KeyPart, ...]:
    """(a, b DESC, ...); may be empty."""
    reader.expect("(")
    parts = []
    while not reader.accept(")"):
        name = reader.name("a column name")
        descending = reader.accept("DESC")
        if not descending:
            reader.accept("ASC")
        parts.append(KeyPart(name, descending))
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(parts)


def interleave(reader: Reader) -> Interleave:
    """INTERLEAVE IN [PARENT] p [ON DELETE ...]."""
    reader.expect("INTERLEAVE", "IN")
    enforced = reader.accept("PARENT")
    parent = reader.path("a table name")
    action = on_delete(reader) if reader.peek("ON", "DELETE") else OnDelete.NO_ACTION
    return Interleave(parent, action, enforced)


def on_delete(reader: Reader) -> OnDelete:
    """ON DELETE CASCADE | NO ACTION."""
    reader.expect("ON", "DELETE")
    if reader.accept("CASCADE"):
        return OnDelete.CASCADE
    reader.expect("NO", "ACTION")
    return OnDelete.NO_ACTION


def row_deletion_policy(reader: Reader) -> RowDeletionPolicy:
    """ROW DELETION POLICY (OLDER_THAN(c, INTERVAL n DAY))."""
    reader.expect("ROW", "DELETION", "POLICY", "(", "OLDER_THAN", "(")
    name = reader.name("a column name")
    reader.expect(",", "INTERVAL")
    days = reader.number()
    reader.expect("DAY", ")", ")")
    return RowDeletionPolicy(name, days)


def foreign_key(reader: Reader, name: str | None) -> ForeignKey:
    """FOREIGN KEY (...) REFERENCES t (...) [ON DELETE ...] [[NOT] ENFORCED]."""
    reader.expect("FOREIGN", "KEY")
    columns = reader.names()
    reader.expect("REFERENCES")
    table = reader.path("a table name")
    referenced = reader.names()
    action = on_delete(reader) if reader.peek("ON", "DELETE") else OnDelete.NO_ACTION
    enforced = not reader.accept("NOT", "ENFORCED")
    reader.accept("ENFORCED")
    return ForeignKey(name, columns, table, referenced, action, enforced)


def watches(reader: Reader) -> tuple[tuple[ChangeStreamTable, ...], bool]:
    """ALL | t1, t2(c1, c2), t3(): the tables of a change stream, and whether it is ALL."""
    if reader.accept("ALL"):
        return (), True
    tables = []
    while True:
        name = reader.path("a table name")
        tables.append(ChangeStreamTable(name, reader.names() if reader.peek("(") else None))
        if not reader.accept(","):
            return tuple(tables), False
