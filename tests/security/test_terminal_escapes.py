"""Names of a database, or of consumers, do not command the terminal of who reads them."""

from __future__ import annotations

import io
import logging

import pytest
from rich.text import Text

from watcher.cli.logs import FORMATS
from watcher.process.terminal.console import TextConsole, label, print_error
from watcher.process.terminal.tables import TableColumn, print_table

EVIL = "a\x1b]52;c;Y3VybA==\x07b\x1b[2Jc\x9b2Jd\u202ee\rf\x08g\x7fh\x00"
COMMANDS = set("\x1b\x07\x9b\u202e\r\x08\x7f\x00")


def make_console(terminal: bool) -> tuple[TextConsole, io.StringIO]:
    console = TextConsole()
    console.file = io.StringIO()
    console._force_terminal = terminal
    return console, console.file


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_printed_commands_nothing(terminal: bool) -> None:
    console, output = make_console(terminal)
    console.print(EVIL)
    console.print(Text(EVIL))
    console.print(label("error:", "none", f" {EVIL}"))
    console.print(f"two\n\tlines {EVIL}")
    print_table(console, [TableColumn(EVIL)], [[EVIL]], EVIL)
    shown = output.getvalue()
    assert not COMMANDS & set(shown.replace("\x1b[0m", "").replace("\x1b[1m", ""))
    assert "two\n" in shown
    assert "\u241b" in shown


def test_an_error_commands_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(f"no table {EVIL}")
    assert not COMMANDS & set(capsys.readouterr().err)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", [EVIL, "\x1b[2J", "a\nlevel=error", "\u2028", "\x85"])
def test_a_line_of_the_log_is_one_line_and_commands_nothing(form: str, name: str) -> None:
    record = logging.LogRecord("watcher", logging.INFO, "", 0, name, None, None)
    line = FORMATS[form]().format(record)
    assert not COMMANDS & set(line)
    assert len(line.splitlines()) == 1
