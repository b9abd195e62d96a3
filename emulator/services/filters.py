"""The filter of List methods: ``labels.env:dev AND NOT name:test``, ``done:true OR (error:*)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.json_format import MessageToDict

from emulator.errors import invalid_argument
from emulator.wire.messages import Message

Item = TypeVar("Item")
Shown = Mapping[str, object]
Test = Callable[[Shown], bool]
TOKEN = re.compile(
    r"\s*+(?:(?P<sign>[()])|(?P<name>[\w.@-]++)\s*+(?P<sign_of>:|!=|<=|>=|=|<|>)\s*+"
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*+)"|(?P<plain>[^\s()"]++))|(?P<word>AND|OR|NOT)\b)',
    re.DOTALL,
)
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
FILTER_BYTES_MAX = 4_096
DEPTH_MAX = 20


def select(items: Sequence[Item], request: Message, show: Callable[[Item], Message]) -> list[Item]:
    """The items that the filter of a request takes; ``show`` gives the message that it reads.
    Raises INVALID_ARGUMENT for one that cannot be read."""
    accept = read_filter(request)
    return [item for item in items if accept(show(item))]


def read_filter(request: Message) -> Callable[[Message], bool]:
    """Whether the filter of a request takes a message. Raises INVALID_ARGUMENT for one that cannot
    be read."""
    if not request.filter.strip():
        return lambda _: True
    test = Filter(request.filter).read()
    return lambda message: test(MessageFields(message))


class MessageFields(Mapping[str, object]):
    """A message as nested objects; what is not set is not there, but for ``done``.

    What filters ask of every message, its name and the type of its metadata, is read directly: a
    server has thousands of operations, and converting one takes a tenth of a millisecond.
    """

    def __init__(self, message: Message) -> None:
        self._message = message

    def __getitem__(self, name: str) -> object:
        message = self._message
        if isinstance(message, AnyMessage):
            return message.type_url or None if name == "@type" else self._whole[name]
        if name == "name" and isinstance(getattr(message, name, None), str):
            return message.name
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is not None and field.message_type is AnyMessage.DESCRIPTOR:
            return MessageFields(getattr(message, name)) if message.HasField(name) else None
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)

    def __str__(self) -> str:
        return str(self._whole)

    @cached_property
    def _whole(self) -> dict[str, object]:
        shown: dict[str, object] = MessageToDict(self._message, preserving_proto_field_name=True)
        if "done" in self._message.DESCRIPTOR.fields_by_name:
            shown.setdefault("done", False)
        return shown


class Filter:
    """Reads a filter: NOT binds before AND, which may be left out, and AND before OR."""

    def __init__(self, text: str) -> None:
        self._text = text
        if len(text.encode()) > FILTER_BYTES_MAX:
            raise self._refuse(f"it has more than {FILTER_BYTES_MAX} bytes")
        self._place, self._depth = 0, 0

    def read(self) -> Test:
        """The whole filter."""
        test = self._any()
        if self._text[self._place :].strip():
            raise self._refuse(f"unexpected {self._text[self._place :].strip()[:40]!r}")
        return test

    def _any(self) -> Test:
        tests = [self._all()]
        while self._take_word("OR"):
            tests.append(self._all())
        return lambda shown: any(test(shown) for test in tests)

    def _all(self) -> Test:
        tests = [self._one()]
        while self._take_word("AND") or self._begins_another():
            tests.append(self._one())
        return lambda shown: all(test(shown) for test in tests)

    def _one(self) -> Test:
        match = TOKEN.match(self._text, self._place)
        if match is None or match["sign"] == ")" or match["word"] in {"AND", "OR"}:
            raise self._refuse(f"expected FIELD:VALUE at {self._text[self._place :][:40]!r}")
        self._place = match.end()
        if match["word"]:
            self._deeper()
            negated = self._one()
            self._depth -= 1
            return lambda shown: not negated(shown)
        if match["sign"]:
            self._deeper()
            test = self._any()
            closing = TOKEN.match(self._text, self._place)
            if closing is None or closing["sign"] != ")":
                raise self._refuse("a parenthesis is not closed")
            self._place = closing.end()
            self._depth -= 1
            return test
        value = match["plain"]
        if value is None:
            value = ESCAPE.sub(r"\1", match["quoted"])
        return term(match["name"], match["sign_of"], value)

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._refuse("it is nested too deeply")

    def _take_word(self, word: str) -> bool:
        match = TOKEN.match(self._text, self._place)
        if match is None or match["word"] != word:
            return False
        self._place = match.end()
        return True

    def _begins_another(self) -> bool:
        match = TOKEN.match(self._text, self._place)
        return match is not None and match["sign"] != ")" and match["word"] not in {"AND", "OR"}

    def _refuse(self, problem: str) -> Exception:
        return invalid_argument(f"Invalid filter {self._text[:100]!r}: {problem}.")


def term(name: str, sign: str, value: str) -> Test:
    """FIELD:VALUE takes what has the value in it, whatever the case; FIELD:* what is set."""
    if sign == ":" and value == "*":
        return lambda shown: find(shown, name) is not None
    wanted = value.casefold()

    def holds(shown: Shown) -> bool:
        found = find(shown, name)
        if found is None:
            return sign == "!="
        texts = [text_of(each) for each in (found if isinstance(found, list) else [found])]
        if sign == ":":
            return any(wanted in text for text in texts)
        return any(COMPARISONS[sign](text, wanted) for text in texts)

    return holds


COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def text_of(value: object) -> str:
    """A value as it is compared: times are texts that sort as they do."""
    return (str(value).lower() if isinstance(value, bool) else str(value)).casefold()


def find(shown: Shown, path: str) -> object:
    """The value of a field, through objects and lists of them; None where it is not set."""
    values: list[object] = [shown]
    for step in path.split("."):
        inner = [v.get(step) for v in values if isinstance(v, Mapping)]
        values = [
            each
            for value in inner
            if value is not None
            for each in (value if isinstance(value, list) else [value])
        ]
    return values or None
