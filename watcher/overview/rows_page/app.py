"""The page's routes. It has no script, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, SubElement, tostring

from watcher.overview.page.access import Access
from watcher.overview.page.answering import Answering, answer_errors, read_asset
from watcher.overview.page.requests import Request, RequestRefusedError, Response
from watcher.overview.rows_page.reading import (
    NULL,
    ROWS_AT_ONCE,
    DatabasesReader,
    RowsPart,
    TableNames,
)
from watcher.process.http_server import HttpServer

HTML = "text/html; charset=utf-8"
LOOPBACK = "127.0.0.1"
STYLE, ICON = "/rows.css", "/icon.svg"


class RowsApp(Answering):
    """Shows the databases of a server, and the rows of a table."""

    def __init__(self, reader: DatabasesReader) -> None:
        self._reader = reader
        handlers = {
            ("GET", "/"): self._show_databases,
            ("GET", "/rows"): self._show_rows,
            ("GET", STYLE): lambda _: show_asset("rows_page/assets/rows.css", "text/css"),
            ("GET", ICON): lambda _: show_asset("page/assets/icon.svg", "image/svg+xml"),
        }
        super().__init__(Access(None), handlers)

    def _show_databases(self, _: Request) -> Response:
        page, body = begin_page("Embedded Spanner")
        databases = answer_errors(self._reader.read_databases)
        if not databases:
            add(body, "p", "There is no database yet.")
        for database in databases:
            write_database(body, database)
        return finish(page)

    def _show_rows(self, request: Request) -> Response:
        database, table = request.query.get("database", ""), request.query.get("table", "")
        first = read_number(request.query.get("first", "0"))
        part = answer_errors(lambda: self._reader.read_rows(database, table, first))
        page, body = begin_page(table)
        add(add(body, "p"), "a", database, href="/")
        write_rows(body, table, part)
        links = add(body, "p")
        if first:
            write_step(links, "earlier rows", database, table, max(first - ROWS_AT_ONCE, 0))
        if part.more:
            write_step(links, "more rows", database, table, first + ROWS_AT_ONCE)
        return finish(page)


def write_database(body: Element, database: TableNames) -> None:
    """A database with links to its tables, and its DDL to unfold."""
    add(body, "h2", database.database)
    listing = add(body, "ul")
    for table in database.tables:
        add(add(listing, "li"), "a", table, href=link(database.database, table, 0))
    if not database.tables:
        add(listing, "li", "no table", **{"class": "muted"})
    details = add(body, "details")
    add(details, "summary", "DDL")
    add(details, "pre", ";\n\n".join(database.statements), tabindex="0")


def write_rows(body: Element, table: str, part: RowsPart) -> None:
    """Rows as a table, which scrolls by itself where it is wide."""
    area = add(body, "div", tabindex="0", role="region", **{"aria-label": f"Rows of {table}"})
    area.set("class", "wide")
    grid = add(area, "table")
    head = add(add(grid, "thead"), "tr")
    for name, type_ in part.columns:
        add(add(head, "th", name, scope="col"), "small", type_)
    lines = add(grid, "tbody")
    for row in part.rows:
        line = add(lines, "tr")
        for text in row:
            if text is None:
                add(add(line, "td"), "em", NULL)
            else:
                add(line, "td", text)
    if not part.rows:
        add(body, "p", "No rows.", **{"class": "muted"})


def write_step(links: Element, text: str, database: str, table: str, first: int) -> None:
    """A link to other rows of the table."""
    add(links, "a", text, href=link(database, table, first)).tail = " "


def link(database: str, table: str, first: int) -> str:
    """The address of a table's rows."""
    return f"/rows?{urlencode({'database': database, 'table': table, 'first': first})}"


def read_number(text: str) -> int:
    """A number of rows. Raises RequestRefusedError."""
    if not text.isascii() or not text.isdigit() or len(text) > len(str(2**53)):
        raise RequestRefusedError(HTTPStatus.BAD_REQUEST, f"'{text}' is not a number of rows")
    return int(text)


def begin_page(title: str) -> tuple[Element, Element]:
    """A page with a title, and its body."""
    page = Element("html", lang="en")
    head = add(page, "head")
    add(head, "meta", charset="utf-8")
    add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    add(head, "title", title)
    add(head, "link", rel="stylesheet", href=STYLE)
    add(head, "link", rel="icon", href=ICON)
    body = add(add(page, "body"), "main")
    add(body, "h1", title)
    return page, body


def add(parent: Element, tag: str, text: str | None = None, /, **attributes: str) -> Element:
    """A new element in another one."""
    element = SubElement(parent, tag, attributes)
    element.text = text
    return element


def finish(page: Element) -> Response:
    """The response; texts and attributes are escaped."""
    text = tostring(page, encoding="unicode", method="html")
    return Response(HTTPStatus.OK, f"<!doctype html>\n{text}\n".encode(), HTML)


def show_asset(name: str, content_type: str) -> Response:
    """A file of the package."""
    return Response(HTTPStatus.OK, read_asset(name), content_type)


def serve_rows(port: int, list_databases: Callable[[], Sequence[str]]) -> int:
    """Serves the page in threads of its own, on this machine alone; the port. Raises
    ConfigurationError for one in use."""
    server = HttpServer(RowsApp(DatabasesReader(list_databases)), LOOPBACK, port, "page")
    server.start()
    return server.port
