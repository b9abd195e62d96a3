"""The types of GoogleSQL, as DDL writes them."""

from __future__ import annotations

from spanner_schema.model.column_types import COLUMN_TYPES, StructField, Type, TypeCode, TypeSyntax
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.tokens import TokenKind

WORDS = {
    code.value: (code, each.googlesql)
    for code, each in COLUMN_TYPES.items()
    if each.googlesql in (TypeSyntax.PLAIN, TypeSyntax.SIZED)
}


def read_type(reader: TokenReader) -> Type:
    """A type of a column. Raises DdlSyntaxError."""
    if reader.accept("ARRAY"):
        reader.expect("<")
        element = read_type(reader)
        reader.expect(">")
        return Type(TypeCode.ARRAY, element=element, vector_length=read_vector_length(reader))
    if reader.accept("STRUCT"):
        return read_struct(reader)
    for code in (TypeCode.PROTO, TypeCode.ENUM):
        # INFORMATION_SCHEMA may write PROTO<name>; DDL gives the name alone.
        if reader.accept(code.value, "<"):
            name = reader.read_path("the name of a type")
            reader.expect(">")
            return Type(code, proto_name=name)
    word = reader.token.text.upper()
    if word not in WORDS:
        return read_named_type(reader)
    reader.advance()
    code, spelling = WORDS[word]
    return Type(code, length=read_length(reader) if spelling is TypeSyntax.SIZED else None)


def read_named_type(reader: TokenReader) -> Type:
    """A message or an enum of the proto bundle: DDL writes both alike. A name without a package
    must be in backquotes, or in the bundle: it would else be a misspelt type."""
    start, quoted = reader.mark(), reader.token.kind is TokenKind.QUOTED
    name = reader.read_path("a type")
    if "." not in name and not quoted and name not in reader.type_names:
        reader.reset(start)
        reader.fail("a type")
    return Type(TypeCode.PROTO, proto_name=name)


def read_vector_length(reader: TokenReader) -> int | None:
    """(vector_length=>n); None where it is missing."""
    if not reader.accept("(", "VECTOR_LENGTH", "=>"):
        return None
    length = reader.read_number()
    reader.expect(")")
    return length


def read_length(reader: TokenReader) -> int | None:
    """(n) or (MAX); None is MAX."""
    reader.expect("(")
    length = None if reader.accept("MAX") else reader.read_number()
    reader.expect(")")
    return length


def read_struct(reader: TokenReader) -> Type:
    """STRUCT<a INT64, ...>, after the word."""
    reader.expect("<")
    fields = []
    while not reader.accept(">"):
        fields.append(StructField(reader.read_name(), read_type(reader)))
        if not reader.peek(">"):
            reader.expect(",")
    return Type(TypeCode.STRUCT, fields=tuple(fields))
