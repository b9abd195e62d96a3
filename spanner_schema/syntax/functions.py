"""User-defined functions: what CREATE FUNCTION says. A schema keeps them as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from spanner_schema.model.column_types import StructField, Type, TypeCode
from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Schema, Verbatim, find
from spanner_schema.syntax.clauses import Options, read_option_list
from spanner_schema.syntax.googlesql.types import read_type
from spanner_schema.syntax.protos import list_bundle_types
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.tokens import Token, TokenKind, tokenize

KIND = "FUNCTION"
SIZED = frozenset({"STRING", "BYTES"})
NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of an argument or a result, as it is written. ``sized`` says that a part of it has
    a length, which Spanner refuses."""

    type: Type
    text: str
    sized: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a function; ``default`` is the text of a literal, or None. ``written`` is the
    name with its quotes."""

    name: str
    written: str
    type: ValueType
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function. ``body`` is its expression, None of a remote one; ``returns`` is None where the
    type follows from the body; ``name`` is quoted as it is written."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: ValueType | None
    body: str | None
    security: str | None = None
    options: Options = ()
    replaces: bool = False

    @property
    def text(self) -> str:
        """The statement that creates the function."""
        parts = [
            f"{each.written} {each.type.text}"
            + (f" DEFAULT {each.default}" if each.default is not None else "")
            for each in self.parameters
        ]
        text = f"CREATE FUNCTION {self.name}({', '.join(parts)})"
        text += f" RETURNS {self.returns.text}" if self.returns is not None else ""
        text += f" SQL SECURITY {self.security}" if self.security is not None else ""
        return f"{text} AS ({self.body})"


@lru_cache(maxsize=1_000)
def read_function(text: str, type_names: tuple[str, ...] = ()) -> Function:
    """Reads a whole CREATE FUNCTION statement. Raises DdlSyntaxError."""
    reader = TokenReader(text, type_names=type_names)
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    reader.expect(KIND)
    start = reader.token.start
    reader.read_path("a function name")
    name = text[start : reader.token.start].strip()
    parameters = read_parameters(reader)
    returns = read_value_type(reader) if reader.accept("RETURNS") else None
    varies = reader.accept("NOT", "DETERMINISTIC")
    remote = reader.accept("LANGUAGE") and not reader.accept("SQL")
    if remote:
        reader.expect("REMOTE")
    remote = remote or reader.accept("REMOTE")
    security = read_security(reader)
    body: str | None = None
    options: Options = ()
    if remote:
        reader.expect("OPTIONS")
        options = read_option_list(reader)
    else:
        if varies:
            reader.fail("the body of a function, which has no clause of determinism")
        reader.expect("AS")
        body = reader.read_parenthesized()
    reader.accept(";")
    reader.expect_end()
    return Function(name, parameters, returns, body, security, options, replaces)


def read_security(reader: TokenReader) -> str | None:
    """SQL SECURITY INVOKER | DEFINER, or nothing."""
    if not reader.accept("SQL", "SECURITY"):
        return None
    if reader.accept("DEFINER"):
        return "DEFINER"
    reader.expect("INVOKER")
    return "INVOKER"


def read_parameters(reader: TokenReader) -> tuple[Parameter, ...]:
    """(a INT64, b STRING DEFAULT 'x', ...); there may be none."""
    reader.expect("(")
    parameters: list[Parameter] = []
    while not reader.accept(")"):
        if parameters:
            reader.expect(",")
        written = reader.token.text
        name = reader.read_name("an argument")
        type_ = read_value_type(reader)
        default = read_default(reader) if reader.accept("DEFAULT") else None
        parameters.append(Parameter(name, written, type_, default))
    return tuple(parameters)


def read_default(reader: TokenReader) -> str:
    """The text of a literal, up to the next argument."""
    start = end = reader.token.start
    depth = 0
    while depth or not (reader.peek(",") or reader.peek(")")):
        if reader.token.kind is TokenKind.END:
            reader.fail("')'")
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(reader.token.text, 0)
        end = reader.advance().end
    if end == start:
        reader.fail("a value")
    return reader.text[start:end]


def read_value_type(reader: TokenReader) -> ValueType:
    """The type of an argument or a result, in which STRING and BYTES need no length."""
    start, mark = reader.token.start, reader.mark()
    type_, sized = read_unsized(reader)
    if reader.mark() == mark:
        reader.fail("a type")
    return ValueType(type_, reader.text[start : reader.token.start].strip(), sized)


def read_unsized(reader: TokenReader) -> tuple[Type, bool]:
    """A type, and whether a part of it has a length."""
    if reader.accept("ARRAY"):
        reader.expect("<")
        element, sized = read_unsized(reader)
        reader.expect(">")
        return Type(TypeCode.ARRAY, element=element), sized
    if reader.accept("STRUCT"):
        return read_struct(reader)
    word = reader.token.text.upper()
    if word not in SIZED:
        return read_type(reader), False
    mark = reader.mark()
    reader.advance()
    if not reader.peek("("):
        return Type(TypeCode(word)), False
    reader.reset(mark)
    return read_type(reader), True


def read_struct(reader: TokenReader) -> tuple[Type, bool]:
    """STRUCT<a INT64, STRING, ...>, after the word."""
    if reader.accept("<>"):
        return Type(TypeCode.STRUCT), False
    reader.expect("<")
    fields: list[StructField] = []
    sized = False
    while not reader.accept(">"):
        if fields:
            reader.expect(",")
        mark = reader.mark()
        reader.advance()
        name = "" if reader.peek(",") or reader.peek(">") or reader.peek("<") else None
        reader.reset(mark)
        named = reader.read_name("the name of a field") if name is None else name
        type_, part_sized = read_unsized(reader)
        sized |= part_sized
        fields.append(StructField(named, type_))
    return Type(TypeCode.STRUCT, fields=tuple(fields)), sized


def list_functions(schema: Schema) -> list[Verbatim]:
    """The functions of a schema."""
    return [item for item in schema.verbatim if item.kind == KIND]


def find_function(schema: Schema, name: str) -> Verbatim | None:
    """The function of this name (without regard to case), or None."""
    return find(tuple(list_functions(schema)), name)


def list_bodies(schema: Schema) -> dict[str, str]:
    """The expressions of the functions by their names in lower case; empty for a remote one, and
    where the statement cannot be read."""
    names = list_bundle_types(schema)
    bodies: dict[str, str] = {}
    for item in list_functions(schema):
        try:
            body = read_function(item.text, names).body
        except DdlSyntaxError:
            body = None
        bodies[item.name.casefold()] = body or ""
    return bodies


def list_called_functions(schema: Schema, texts: Iterable[str]) -> list[Verbatim]:
    """The functions that expressions call, and those that these call, in the schema's order."""
    bodies = list_bodies(schema)
    called: set[str] = set()
    waiting = list(texts) if bodies else []
    while waiting:
        for name in find_calls(waiting.pop()):
            if name in bodies and name not in called:
                called.add(name)
                waiting.append(bodies[name])
    return [item for item in list_functions(schema) if item.name.casefold() in called]


def find_calls(text: str) -> Iterator[str]:
    """What an expression calls, in lower case, with the named schema that stands before it."""
    path: list[Token] = []
    for token, following in pairwise(tokenize(text)):
        if token.kind in NAMES:
            path.append(token)
            if following.text == "(":
                yield ".".join(each.value for each in path).casefold()
        elif token.text != ".":
            path = []
        if token.kind in NAMES and following.text != ".":
            path = []


def list_early_functions(schema: Schema) -> list[Verbatim]:
    """The functions that tables may use: those that read no table or view, themselves or by the
    functions that they call."""
    bodies = list_bodies(schema)
    early: list[Verbatim] = []
    for item in list_functions(schema):
        body = bodies[item.name.casefold()]
        called = list_called_functions(schema, [body])
        if not any(map(reads_rows, (body, *(bodies[each.name.casefold()] for each in called)))):
            early.append(item)
    return early


def reads_rows(text: str) -> bool:
    """Whether an expression has a query of a table or a view in it."""
    words = {each.text.upper() for each in tokenize(text) if each.kind is TokenKind.WORD}
    return {"SELECT", "FROM"} <= words
