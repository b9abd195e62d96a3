"""The fields of pydantic's models and of dataclasses: name, type, default, meaning."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, is_dataclass
from dataclasses import fields as list_dataclass_fields
from enum import Enum
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from reference_pages.markdown import code, format_prose, require_text
from watcher.settings.fields import Duration, End, Size, Start

KINDS = (
    (get_args(Duration)[1], "duration"),
    (get_args(Size)[1], "size"),
    (get_args(Start)[-1], "start"),
    (get_args(End)[-1], "end"),
)
"""The validators of the types that the pages explain by name."""
WORDS = {bool: "`true` or `false`", int: "number", float: "number", str: "text", Path: "file"}
UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "m"), (1.0, "s"))


@dataclass(frozen=True, slots=True)
class FieldText:
    """A field as the reference shows it; ``section`` is the class of its value, if it has fields
    of its own."""

    name: str
    kind: str
    default: str
    meaning: str
    section: type | None


def is_section(hint: object) -> bool:
    """True for a class that has fields of its own."""
    return isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, BaseModel))


@cache
def read_docstrings(owner: type) -> Mapping[str, str]:
    """The text below each field of a class, also of those that it inherits."""
    texts: dict[str, str] = {}
    for each in reversed(owner.__mro__):
        if is_section(each) and each is not BaseModel:
            (body,) = ast.parse(dedent(inspect.getsource(each))).body
            assert isinstance(body, ast.ClassDef)
            for field, below in zip(body.body, body.body[1:], strict=False):
                match field, below:
                    case (
                        ast.AnnAssign(target=ast.Name(name)),
                        ast.Expr(ast.Constant(str() as text)),
                    ):
                        texts[name] = text
    return texts


def list_fields(owner: type) -> Iterator[FieldText]:
    """The fields of a model or dataclass. Raises MissingDescriptionError."""
    texts = read_docstrings(owner)
    for name, hint, default in iterate_hints(owner):
        where = f"{owner.__module__}.{owner.__name__}, in a docstring below the field"
        meaning = require_text(texts.get(name), f"{owner.__name__}.{name}", where)
        kind = describe_type(hint)
        yield FieldText(
            name, kind, describe_default(default, kind), format_prose(meaning), find_section(hint)
        )


def iterate_hints(owner: type) -> Iterator[tuple[str, object, object]]:
    """Each field's name, type and default; MISSING for a field that is required."""
    if issubclass(owner, BaseModel):
        for name, field in owner.model_fields.items():
            hint: Any = field.annotation
            if field.metadata:
                hint = Annotated[(hint, *field.metadata)]
            yield name, hint, MISSING if field.is_required() else field.get_default()
    else:
        yield from iterate_dataclass_hints(owner)


def iterate_dataclass_hints(owner: Any) -> Iterator[tuple[str, object, object]]:
    """As ``iterate_hints``."""
    hints = get_type_hints(owner, localns={"ConfigDict": dict}, include_extras=True)
    for each in list_dataclass_fields(owner):
        made = each.default_factory
        yield each.name, hints[each.name], each.default if made is MISSING else made()


def describe_type(hint: object) -> str:
    """A type in words."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        names = (name for validator, name in KINDS if validator in metadata)
        return next(names, None) or describe_type(inner)
    if get_origin(hint) in (Union, types.UnionType):
        parts = [describe_type(each) for each in get_args(hint) if each is not type(None)]
        return " or ".join(dict.fromkeys(parts))
    if get_origin(hint) is Literal:
        return ", ".join(code(str(value)) for value in get_args(hint))
    if get_origin(hint) is tuple:
        return f"list of {describe_type(get_args(hint)[0])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ", ".join(code(str(each.value)) for each in hint)
    return WORDS.get(hint, "table")  # type: ignore[call-overload, no-any-return]


def find_section(hint: object) -> type | None:
    """The class of a value that has fields of its own, also of the values of a list or table."""
    if isinstance(hint, type) and is_section(hint):
        return hint
    return next((found for each in get_args(hint) if (found := find_section(each))), None)


def describe_default(default: Any, kind: str) -> str:
    """A default as it is written in a file."""
    if default is MISSING:
        return "required"
    if default is None or default in ((), "", {}) or is_section(type(default)):
        return "none"
    if kind == "duration":
        return code(format_duration(default))
    if isinstance(default, tuple):
        return ", ".join(code(str(each)) for each in default)
    if isinstance(default, bool):
        return code(str(default).lower())
    return code(str(default.value if isinstance(default, Enum) else default))


def format_duration(seconds: float) -> str:
    """Seconds in the greatest unit that they are a multiple of."""
    for unit, name in UNITS:
        if seconds and seconds % unit == 0:
            return f"{seconds / unit:.0f}{name}"
    return f"{seconds * 1_000:.0f}ms" if seconds else "0s"
