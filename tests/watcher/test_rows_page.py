"""``emulator --page``: databases, tables and rows, as a person's browser gets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.client import HTTPConnection
from subprocess import PIPE, STDOUT
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from fixtures.browser import NEEDS_AXE, NEEDS_BROWSER, Browser, list_violations
from fixtures.commands import CODE
from fixtures.warm_python import WarmProcess

MAIN = ["-u", "-c", CODE]
DATABASE = "projects/project/instances/instance/databases/database"
SEED = {
    "googlesql": """
CREATE SCHEMA s;
CREATE TABLE s.`Order` (A INT64 NOT NULL, B STRING(MAX), D BYTES(MAX), J JSON, L ARRAY<STRING(MAX)>,
  T TIMESTAMP, N NUMERIC, O BOOL) PRIMARY KEY (A DESC, B);
CREATE TABLE Keyless (X INT64);
CREATE TABLE Many (K INT64) PRIMARY KEY (K);
INSERT INTO s.`Order` (A, B, D, J, L, T, N, O) VALUES
  (1, 'b', b'a\\xff', JSON '{"a":[1]}', ['x', NULL], TIMESTAMP '2026-01-01T00:00:00.123456789Z',
   1.50, TRUE),
  (1, '<script>', NULL, NULL, NULL, NULL, NULL, NULL),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO Keyless (X) VALUES (7);
INSERT INTO Many (K) SELECT K FROM UNNEST(GENERATE_ARRAY(1, 250)) AS K;
""",
    "postgresql": """
CREATE SCHEMA s;
CREATE TABLE s."Order" (a bigint, b text, d bytea, j jsonb, l text[], t timestamptz, n numeric,
  o boolean, PRIMARY KEY (a, b));
CREATE TABLE many (k bigint PRIMARY KEY);
INSERT INTO s."Order" (a, b, d) VALUES (1, '<script>', '\\x61ff'), (0, 'b', NULL);
""",
}


class RowsPage:
    """The page of a server, as a program that reads what a browser is sent."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, host: str = "localhost") -> tuple[int, str]:
        """The status and the text of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        return answer.status, answer.read().decode()

    def read(self, table: str, first: int = 0) -> ElementTree.Element:
        """The page of a table's rows."""
        return self.parse(
            f"/rows?{urlencode({'database': DATABASE, 'table': table, 'first': first})}"
        )

    def parse(self, path: str) -> ElementTree.Element:
        """A page, whose elements without content are closed."""
        status, text = self.get(path)
        assert status == 200, text
        return ElementTree.fromstring(re.sub(r"<(meta|link)([^>]*)>", r"<\1\2/>", text[15:]))


def cells(page: ElementTree.Element) -> list[list[str | None]]:
    """The rows that are shown; None is NULL."""
    return [
        [None if cell.findtext("em") == "NULL" else cell.text or "" for cell in line]
        for line in page.iterfind(".//tbody/tr")
    ]


@pytest.fixture(scope="module", params=list(SEED))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def page(dialect: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RowsPage]:
    seed = tmp_path_factory.mktemp("seed") / "seed.sql"
    seed.write_text(SEED[dialect])
    options = ["--port", "0", "-d", DATABASE, "--dialect", dialect, "--seed", str(seed)]
    process = WarmProcess([*MAIN, "emulator", *options, "--page", "0"], stdout=PIPE, stderr=STDOUT)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        match = re.search(r"http://localhost:(\d+)/$", line)
        assert match, line
        yield RowsPage(int(match[1]))
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_the_first_page_leads_to_every_table(page: RowsPage, dialect: str) -> None:
    first = page.parse("/")
    assert first.findtext(".//h2") == DATABASE
    links = {link.text: link.get("href") or "" for link in first.iterfind(".//li/a")}
    assert set(links) == (
        {"s.Order", "Keyless", "Many"} if dialect == "googlesql" else {"s.Order", "many"}
    )
    for link in links.values():
        page.parse(link)
    assert "CREATE TABLE" in (first.findtext(".//pre") or "")


def test_rows_of_every_type_come_in_the_order_of_the_key(page: RowsPage, dialect: str) -> None:
    shown = page.read("s.Order")
    if dialect == "postgresql":
        assert cells(shown) == [
            ["0", "b", *[None] * 6],
            ["1", "<script>", "0x61ff", *[None] * 5],
        ]
        return
    time = "2026-01-01T00:00:00.123456789Z"
    assert cells(shown) == [
        ["2", *[None] * 7],
        ["1", "<script>", *[None] * 6],
        ["1", "b", "0x61ff", '{"a":[1]}', "[x, NULL]", time, "1.5", "true"],
    ]
    heads = [(head.text, head.findtext("small")) for head in shown.iterfind(".//th")]
    assert heads[:2] == [("A", "INT64"), ("B", "STRING")]
    assert heads[4] == ("L", "ARRAY<STRING>")
    assert cells(page.read("Keyless")) == [["7"]]


def test_many_rows_are_shown_in_parts(page: RowsPage, dialect: str) -> None:
    if dialect == "postgresql":
        assert page.read("many").findtext(".//p[@class='muted']") == "No rows."
        return
    seen: list[str | None] = []
    link: str | None = f"/rows?{urlencode({'database': DATABASE, 'table': 'Many'})}"
    while link is not None:
        part = page.parse(link)
        seen += [row[0] for row in cells(part)]
        steps = {step.text: step.get("href") for step in part.iterfind(".//p/a")}
        link = steps.get("more rows")
    assert seen == [str(number) for number in range(1, 251)]
    assert "earlier rows" in steps


@pytest.mark.parametrize(
    ("path", "host", "status", "sentence"),
    [
        ("/rows?database=d&table=t", "localhost", 404, "there is no database d"),
        (f"/rows?database={DATABASE}&table=Missing", "localhost", 404, "no table 'Missing'"),
        (f"/rows?database={DATABASE}&table=x&first=-1", "localhost", 400, "not a number of rows"),
        ("/other", "localhost", 404, "there is no /other"),
        ("/", "attacker.example", 403, "answers as localhost only"),
    ],
)
def test_what_is_asked_wrongly_is_answered_in_a_sentence(
    page: RowsPage, path: str, host: str, status: int, sentence: str
) -> None:
    answer, text = page.get(path, host)
    assert answer == status
    assert sentence in text


@NEEDS_BROWSER
@NEEDS_AXE
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_everybody_can_read_it(page: RowsPage, browser: Browser, width: int, scheme: str) -> None:
    browser.show_as(width, scheme)
    for path in ("/", f"/rows?{urlencode({'database': DATABASE, 'table': 's.Order'})}"):
        browser.open(f"http://localhost:{page.port}{path}")
        assert list_violations(browser) == []
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.list_errors() == []
