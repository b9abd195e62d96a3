"""The events of the log: one registry, and nothing is logged beside it."""

from __future__ import annotations

import ast
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.commands import run_command
from fixtures.consumers import write
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database
from opentelemetry.sdk.trace import TracerProvider

from watcher.cli.logs import FORMATS
from watcher.model.log_events.delivery import CALLBACK_RETRIED, WINDOW_DELIVERED
from watcher.model.log_events.registry import EVENTS

WATCHER = Path(__file__).resolve().parents[2] / "watcher"
PACKAGE = "watcher.model.log_events"
LOGGERS = {"LOG", "log", "logger", "logging"}
DIRECT = {"info", "warning", "error", "exception", "critical", "log"}
RESERVED = {"time", "level", "logger", "event", "message", "trace_id", "span_id"}
LOG = logging.getLogger("watcher")


def list_problems(source: str) -> tuple[list[str], set[str]]:
    """What is wrong with the log calls of a source, and the names of the events that it uses."""
    nodes = [*ast.walk(ast.parse(source))]
    problems = [each for call in nodes if isinstance(call, ast.Call) for each in check_call(call)]
    constants = {name.lower() for each in nodes if (name := find_constant(each)) is not None}
    return problems, constants & EVENTS.keys()


def find_constant(node: ast.AST) -> str | None:
    """The constant that a node is: by its name, or through its module."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name.isupper():
            return name
        case _:
            return None


def check_call(call: ast.Call) -> Iterator[str]:
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if (
            name in LOGGERS and method in DIRECT
        ):
            yield f"line {call.lineno}: {name}.{method} has no event"
        case ast.Call(func=ast.Attribute(value=owner, attr="log"), args=[ast.Name(id=name)]) if (
            name in LOGGERS and (constant := find_constant(owner)) is not None
        ):
            yield from check_fields(call, constant)


def check_fields(call: ast.Call, constant: str) -> Iterator[str]:
    event = EVENTS.get(constant.lower())
    if event is None:
        yield f"line {call.lineno}: {constant} is not registered"
    elif {each.arg for each in call.keywords} != set(event.fields):
        yield f"line {call.lineno}: {constant} has the fields {event.fields}"


def test_every_log_call_has_a_registered_event_and_every_event_is_logged() -> None:
    problems: list[str] = []
    used: set[str] = set()
    for path in sorted(WATCHER.rglob("*.py")):
        if path.parent.name == "log_events":
            continue
        wrong, names = list_problems(path.read_text())
        problems += [f"{path.relative_to(WATCHER)}: {each}" for each in wrong]
        used |= names
    assert problems == []
    assert used == EVENTS.keys()


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("LOG.warning('text')", "LOG.warning has no event"),
        ("LOG.log(level, 'text')", "LOG.log has no event"),
        ("WINDOW_DELIVERED.log(LOG, end=1)", "WINDOW_DELIVERED has the fields"),
        ("UNKNOWN.log(LOG)", "UNKNOWN is not registered"),
    ],
)
def test_a_log_call_without_an_event_is_found(call: str, problem: str) -> None:
    imports = f"from {PACKAGE}.delivery import WINDOW_DELIVERED, UNKNOWN\n"
    (found,), _ = list_problems(imports + call)
    assert problem in found
    assert list_problems(imports + "WINDOW_DELIVERED.log(LOG, end=1, rows=2)\nLOG.debug('x')") == (
        [],
        {"window_delivered"},
    )


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_says_what_it_is_and_what_to_do(name: str) -> None:
    event = EVENTS[name]
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
    assert event.level in {logging.INFO, logging.WARNING, logging.ERROR}
    assert event.message
    assert event.meaning.endswith(".")
    assert not RESERVED & set(event.fields)
    if event.level > logging.INFO:
        assert re.search(r"[.;:,] ", event.meaning), "say what to do, or that nothing is"


def log_and_format(form: str, caplog: pytest.LogCaptureFixture) -> str:
    caplog.clear()
    with caplog.at_level("INFO", logger="watcher"):
        CALLBACK_RETRIED.log(LOG, change="a", error=ValueError("b c"), seconds=1.5)
    return FORMATS[form]().format(caplog.records[0])


def test_a_line_of_json_has_the_event_and_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    line = json.loads(log_and_format("json", caplog))
    assert line.pop("time").startswith("20")
    assert line == {
        "level": "warning",
        "logger": "watcher",
        "event": "callback_retried",
        "message": "the callback failed for change a (b c); trying again in 1.5 s",
        "change": "a",
        "error": "b c",
        "seconds": 1.5,
    }
    assert caplog.records[0].funcName == "log_and_format"


def test_a_line_of_logfmt_has_the_event(caplog: pytest.LogCaptureFixture) -> None:
    assert ' event=callback_retried message="the callback' in log_and_format("logfmt", caplog)


@pytest.mark.parametrize("form", FORMATS)
def test_a_line_inside_a_span_has_its_identifiers(
    form: str, caplog: pytest.LogCaptureFixture
) -> None:
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("window") as span:
        inside = log_and_format(form, caplog)
    context = span.get_span_context()
    assert f"{context.trace_id:032x}" in inside
    assert f"{context.span_id:016x}" in inside
    assert "trace_id" not in log_and_format(form, caplog)


def test_a_run_writes_its_events_as_json(music: Database, tmp_path: Path) -> None:
    write(music, 1, 2)
    config = tmp_path / "watch.toml"
    config.write_text('log_format = "json"\n')
    arguments = ["-c", str(config), "-d", str(address_of(music)), "-t", "Singers"]
    result = run_command("watch", *arguments, "--once", "--verbose", "--from", "earliest")
    assert result.returncode == 0, result.stderr
    lines = [json.loads(each) for each in result.stderr.splitlines() if each.startswith("{")]
    (window,) = [each for each in lines if each.get("event") == WINDOW_DELIVERED.name]
    assert window["rows"] == 2
    assert window["level"] == "info"
    assert {each["event"] for each in lines if each["logger"].startswith("watcher")} <= set(EVENTS)
