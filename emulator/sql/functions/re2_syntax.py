"""Regular expressions of RE2 -> the syntax of Python's.

What only Python knows is refused; classes such as \\w are ASCII, as in RE2.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata

from emulator.errors import out_of_range, unimplemented

REPETITIONS_MAX = 1000
REPETITION = re.compile(r"\{(\d+)(?:,(\d*))?\}", re.ASCII)
QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})", re.ASCII)
INLINE_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
GROUP_NAME = re.compile(r"\(\?P?<([A-Za-z_]\w*)>", re.ASCII)
POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]", re.ASCII)
UNICODE_CLASS = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))", re.ASCII)
CODE_POINT = re.compile(
    r"\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|(0[0-7]{0,2}|[1-7][0-7]{1,2}))"
)
LETTERS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
Ranges = tuple[tuple[int, int], ...]


def span(text: str) -> Ranges:
    """Ranges of characters, two characters each."""
    return tuple((ord(a), ord(b)) for a, b in zip(text[::2], text[1::2], strict=True))


PERL: dict[str, Ranges] = {"d": span("09"), "w": span("09AZ__az"), "s": span("\t\n\f\r  ")}
POSIX: dict[str, Ranges] = {
    "alnum": span("09AZaz"),
    "alpha": span("AZaz"),
    "ascii": ((0, 127),),
    "blank": span("\t\t  "),
    "cntrl": ((0, 31), (127, 127)),
    "digit": span("09"),
    "graph": span("!~"),
    "lower": span("az"),
    "print": span(" ~"),
    "punct": span("!/:@[`{~"),
    "space": span("\t\r  "),
    "upper": span("AZ"),
    "word": span("09AZ__az"),
    "xdigit": span("09AFaf"),
}


def refuse(pattern: str, problem: str) -> Exception:
    """The error of a pattern that RE2 refuses."""
    return out_of_range(f"Cannot parse regular expression: {problem}: {pattern[:100]!r}")


@functools.lru_cache(maxsize=64)
def unicode_category(name: str) -> Ranges:
    """The code points of a general category (Lu, or L for all that begin with it)."""
    known = {unicodedata.category(chr(code)) for code in range(0x3000)} | {"Co", "Cs", "Cn"}
    if name != "Any" and not any(each.startswith(name) for each in known):
        raise unimplemented(f"the Unicode class {name!r} in a regular expression: a script")
    ranges: list[tuple[int, int]] = []
    for code in range(sys.maxunicode + 1):
        if name == "Any" or unicodedata.category(chr(code)).startswith(name):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    return tuple(ranges)


def complement(ranges: Ranges) -> Ranges:
    """All other code points."""
    result, start = [], 0
    for first, last in ranges:
        if first > start:
            result.append((start, first - 1))
        start = last + 1
    return (*result, (start, sys.maxunicode)) if start <= sys.maxunicode else tuple(result)


def write_ranges(ranges: Ranges) -> str:
    """Ranges as the inside of a class."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


class Translator:
    """Translates one pattern, left to right."""

    def __init__(self, pattern: str, *, octets: bool) -> None:
        self._text = pattern
        self._octets = octets
        self._at = 0
        self._output: list[str] = []
        # For each open group: flags that hold to its end, and whether ^ and $ mean lines.
        self._inline: list[list[str]] = [[]]
        self._lines: list[bool] = [False]

    def translate(self) -> str:
        """The whole pattern. Raises OUT_OF_RANGE, or UNIMPLEMENTED for a class of a script."""
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if len(self._inline) > 1:
            raise refuse(self._text, "missing )")
        return "".join(self._output) + ")" * len(self._inline[0])

    def _write(self, text: str, length: int) -> None:
        self._output.append(text)
        self._at += length

    def _step(self, char: str) -> None:
        steps = {"\\": self._escape, "[": self._character_class, "(": self._group}
        if char in steps:
            steps[char]()
        elif char == ")":
            self._close()
        elif char == "|":
            flags = self._inline[-1]
            self._write(")" * len(flags) + "|" + "".join(flags), 1)
        elif char == "$":
            self._write("$" if self._lines[-1] else r"\Z", 1)
        elif char in "*+?{":
            self._quantifier()
        else:
            self._write(char if char in "^." else re.escape(char), 1)

    def _quantifier(self) -> None:
        match = QUANTIFIER.match(self._text, self._at)
        if match is None:
            return self._write(r"\{", 1)
        numbers = REPETITION.match(self._text, self._at)
        if numbers and any(int(n) > REPETITIONS_MAX for n in numbers.groups() if n):
            raise refuse(self._text, "invalid repetition size")
        lazy = "?" if self._text[match.end() : match.end() + 1] == "?" else ""
        if QUANTIFIER.match(self._text, match.end() + len(lazy)):
            raise refuse(self._text, "bad repetition operator")
        return self._write(match.group() + lazy, len(match.group() + lazy))

    def _group(self) -> None:
        text, at = self._text, self._at
        if not text.startswith("(?", at):
            self._write("(", 1)
            return self._open()
        if named := GROUP_NAME.match(text, at):
            self._write(f"(?P<{named[1]}>", len(named.group()))
            return self._open()
        flags = INLINE_FLAGS.match(text, at)
        if flags is None:
            raise refuse(text, "invalid perl operator")
        on, off, end = flags[1], flags[2] or "", flags[3]
        if "U" in on:
            raise unimplemented("the flag U in a regular expression")
        written = f"(?{on}{'-' + off if off else ''}:"
        self._write(written, len(flags.group()))
        lines = ("m" in on or self._lines[-1]) and "m" not in off
        if end == ":":
            self._open()
        else:
            self._inline[-1].append(written)
        self._lines[-1] = lines
        return None

    def _open(self) -> None:
        self._inline.append([])
        self._lines.append(self._lines[-1])

    def _close(self) -> None:
        if len(self._inline) == 1:
            raise refuse(self._text, "unexpected )")
        self._lines.pop()
        self._write(")" * len(self._inline.pop()) + ")", 1)

    def _escape(self) -> None:
        text, at = self._text, self._at
        if text.startswith(r"\Q", at):
            end = text.find(r"\E", at)
            quoted = text[at + 2 : end if end >= 0 else len(text)]
            return self._write(re.escape(quoted), len(quoted) + (4 if end >= 0 else 2))
        following = text[at + 1 : at + 2]
        if following in {"b", "B"}:
            return self._write(f"(?a:\\{following})" if not self._octets else f"\\{following}", 2)
        if following in {"A", "z"}:
            return self._write(r"\A" if following == "A" else r"\Z", 2)
        if following == "C":
            raise unimplemented(r"\C in a regular expression")
        inside, length = self._read_atom()
        return self._write(f"[{inside}]", length)

    def _read_atom(self) -> tuple[str, int]:
        """What stands at the place, as the inside of a class, and its length."""
        text, at = self._text, self._at
        if text[at] != "\\":
            return self._literal(text[at]), 1
        if wide := UNICODE_CLASS.match(text, at):
            ranges = unicode_category(wide[3] or wide[4])
            negated = (wide[1] == "P") != (wide[2] == "^")
            return self._ranges(complement(ranges) if negated else ranges), len(wide.group())
        following = text[at + 1 : at + 2]
        if following.lower() in PERL and following:
            ranges = PERL[following.lower()]
            return self._ranges(complement(ranges) if following.isupper() else ranges), 2
        if code := CODE_POINT.match(text, at):
            number = int(code[3], 8) if code[3] else int(code[1] or code[2], 16)
            if number > (255 if self._octets else sys.maxunicode):
                raise refuse(text, "invalid escape sequence")
            return self._literal(chr(number)), len(code.group())
        if following in LETTERS:
            return self._literal(LETTERS[following]), 2
        if not following or following.isalnum():
            raise refuse(text, "invalid escape sequence" if following else "trailing \\")
        return self._literal(following), 2

    def _literal(self, char: str) -> str:
        code = ord(char)
        return f"\\x{code:02x}" if code < 256 else f"\\U{code:08x}"

    def _ranges(self, ranges: Ranges) -> str:
        if not self._octets:
            return write_ranges(ranges)
        narrow = [(first, min(last, 255)) for first, last in ranges if first < 256]
        return "".join(f"\\x{first:02x}-\\x{last:02x}" for first, last in narrow)

    def _character_class(self) -> None:
        text, self._at = self._text, self._at + 1
        negated = text.startswith("^", self._at)
        self._at += negated
        parts: list[str] = []
        while not (text.startswith("]", self._at) and parts):
            if self._at >= len(text):
                raise refuse(text, "missing ]")
            parts.append(self._class_member())
        self._write(f"[{'^' if negated else ''}{''.join(parts)}]", 1)

    def _class_member(self) -> str:
        text = self._text
        if posix := POSIX_CLASS.match(text, self._at):
            if posix[2] not in POSIX:
                raise refuse(text, "invalid character class range")
            self._at += len(posix.group())
            ranges = POSIX[posix[2]]
            return self._ranges(complement(ranges) if posix[1] else ranges)
        first, length = self._read_atom()
        self._at += length
        dash = text.startswith("-", self._at) and self._at + 1 < len(text)
        if not dash or text[self._at + 1] == "]":
            return first
        self._at += 1
        last, length = self._read_atom()
        self._at += length
        if "-" in first or "-" in last or first_code(first) > first_code(last):
            raise refuse(text, "invalid character class range")
        return f"{first}-{last}"


def first_code(escaped: str) -> int:
    """The code point of an escaped character."""
    return int(escaped[2:], 16)
