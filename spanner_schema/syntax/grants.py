"""GRANT and REVOKE: privileges of database roles as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from spanner_schema.model.schema import Dialect, Grant
from spanner_schema.syntax.reader import TokenReader

CHANGE_STREAM, FUNCTION, TABLE, VIEW = "CHANGE STREAM", "TABLE FUNCTION", "TABLE", "VIEW"
SCHEMA = "SCHEMA"
KINDS = (CHANGE_STREAM, FUNCTION, TABLE, VIEW, "SEQUENCE", SCHEMA, "MODEL")
SELECT, INSERT, UPDATE, DELETE, EXECUTE = "SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE"
USAGE = "USAGE"
PRIVILEGE_STATEMENTS = {"GRANT", "REVOKE"}
ROLE = "ROLE"
PUBLIC, INFO_READER, SYS_READER = "public", "spanner_info_reader", "spanner_sys_reader"
SYSTEM_ROLES = (PUBLIC, INFO_READER, SYS_READER)
"""Every role is a member of the first; members of the others read all of INFORMATION_SCHEMA, and
SPANNER_SYS."""


def change_grants(
    grants: tuple[Grant, ...], text: str, dialect: Dialect = Dialect.GOOGLESQL
) -> tuple[Grant, ...]:
    """The privileges after a GRANT or REVOKE statement. Raises DdlSyntaxError."""
    reader = TokenReader(text, dialect)
    revokes = reader.accept("REVOKE")
    if not revokes:
        reader.expect("GRANT")
    named = list(read_grants(reader, "FROM" if revokes else "TO"))
    if revokes:
        left = (take_away(grant, named) for grant in grants)
        return tuple(grant for grant in left if grant is not None)
    return (*grants, *(grant for grant in named if grant not in grants))


def take_away(grant: Grant, revoked: Iterable[Grant]) -> Grant | None:
    """What REVOKE leaves of a privilege: of one for columns, those that it does not name. Without
    columns it is about all of them."""
    for each in revoked:
        if is_of_same_object(each, grant):
            gone = {column.casefold() for column in each.columns}
            left = tuple(column for column in grant.columns if column.casefold() not in gone)
            if not gone or (grant.columns and not left):
                return None
            grant = replace(grant, columns=left)
    return grant


def is_of_same_object(one: Grant, other: Grant) -> bool:
    """Whether two privileges differ in their columns alone."""
    same = [(g.privilege, g.kind, g.name.casefold(), g.role.casefold()) for g in (one, other)]
    return same[0] == same[1]


def read_grants(reader: TokenReader, before_roles: str) -> Iterator[Grant]:
    """What follows GRANT or REVOKE, one privilege on one object for one role at a time."""
    postgres = reader.dialect is Dialect.POSTGRESQL
    if postgres and names_roles(reader, before_roles):
        privileges: list[tuple[str, tuple[str, ...]]] = [(USAGE, ())]
        kind, names = ROLE, read_name_list(reader)
    elif not postgres and reader.accept(ROLE):
        privileges = [(USAGE, ())]
        kind, names = ROLE, read_name_list(reader)
    else:
        privileges = read_privileges(reader)
        kind, names = read_objects(reader)
    reader.expect(before_roles)
    if not postgres:
        reader.expect(ROLE)
    roles = read_name_list(reader)
    reader.expect_end()
    for role in roles:
        for name in names:
            yield from (Grant(word, columns, kind, name, role) for word, columns in privileges)


def names_roles(reader: TokenReader, before_roles: str) -> bool:
    """Whether a statement of the PostgreSQL dialect is about roles: r1, r2 TO ..."""
    start = reader.mark()
    read_name_list(reader)
    found = reader.peek(before_roles)
    reader.reset(start)
    return found


def read_privileges(reader: TokenReader) -> list[tuple[str, tuple[str, ...]]]:
    """SELECT, INSERT(a, b), ...: up to ON, which is taken."""
    privileges = []
    while True:
        word = reader.read_name("a privilege").upper()
        privileges.append((word, reader.read_names() if reader.peek("(") else ()))
        if not reader.accept(","):
            break
    reader.expect("ON")
    return privileges


def read_objects(reader: TokenReader) -> tuple[str, list[str]]:
    """The kind and the names of the objects; ALL ... IN SCHEMA is a kind."""
    if reader.accept("ALL"):
        words = [reader.advance().text.upper()]
        while not reader.accept("IN", "SCHEMA"):
            words.append(reader.read_name("IN SCHEMA").upper())
        return f"ALL {' '.join(words)} IN SCHEMA", read_name_list(reader)
    postgres = reader.dialect is Dialect.POSTGRESQL
    if postgres and reader.accept("FUNCTION"):
        return FUNCTION, read_name_list(reader)
    for kind in KINDS:
        if reader.accept(*kind.split()):
            return kind, read_name_list(reader)
    if postgres:
        return TABLE, read_name_list(reader)
    return reader.fail("TABLE, VIEW, CHANGE STREAM, TABLE FUNCTION, SEQUENCE or SCHEMA")


def read_name_list(reader: TokenReader) -> list[str]:
    """Names, separated by commas."""
    names = [reader.read_path()]
    while reader.accept(","):
        names.append(reader.read_path())
    return names


def render_grants(
    grants: Iterable[Grant],
    quote_name: Callable[[str], str],
    quote_column: Callable[[str], str],
    dialect: Dialect = Dialect.GOOGLESQL,
) -> list[str]:
    """GRANT statements, one for each object and role."""
    postgres = dialect is Dialect.POSTGRESQL

    def write(grant: Grant) -> str:
        columns = ", ".join(map(quote_column, grant.columns))
        return f"{grant.privilege}({columns})" if columns else grant.privilege

    texts = []
    word = "" if postgres else f"{ROLE} "
    for (kind, name, role), group in groupby(grants, lambda g: (g.kind, g.name, g.role)):
        shown = "FUNCTION" if postgres and kind == FUNCTION else kind
        what = word if kind == ROLE else f"{', '.join(map(write, group))} ON {shown} "
        texts.append(f"GRANT {what}{quote_name(name)} TO {word}{quote_name(role)}")
    return texts
