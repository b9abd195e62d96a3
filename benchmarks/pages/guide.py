"""What can be set, for people: every setting of a scenario with its value and what it may be."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from benchmarks.scenario import Scenario

BOUNDS = {Ge: ("at least", "ge"), Gt: ("above", "gt"), Le: ("at most", "le"), Lt: ("below", "lt")}


@dataclass(frozen=True, slots=True)
class Row:
    """A setting. ``name`` is what ``--set`` takes; ``choices`` what it may be."""

    name: str
    value: str
    choices: str


@dataclass(frozen=True, slots=True)
class GuideSection:
    """Settings that belong together, and what they mean."""

    title: str
    text: str
    rows: tuple[Row, ...]


def list_sections(scenario: Scenario) -> list[GuideSection]:
    """The scenario's own settings, then those that every scenario of its kind has."""
    settings = scenario.settings()
    own = make_section(scenario.name, settings)
    inner = [
        make_section(name, value)
        for name in type(settings).model_fields
        if isinstance(value := getattr(settings, name), BaseModel)
    ]
    return [own, *inner]


def make_section(title: str, settings: BaseModel) -> GuideSection:
    """The plain settings of one model."""
    rows = tuple(
        Row(name, format_value(getattr(settings, name)), describe_choices(field))
        for name, field in type(settings).model_fields.items()
        if not isinstance(getattr(settings, name), BaseModel)
    )
    return GuideSection(title, read_docstrings(type(settings)), rows)


def read_docstrings(kind: type[BaseModel]) -> str:
    """What a model and those that it builds on say of themselves, a paragraph a line."""
    texts = [inspect.cleandoc(each.__dict__.get("__doc__") or "") for each in list_models(kind)]
    paragraphs = "\n\n".join(text for text in texts if text).split("\n\n")
    return "\n".join(" ".join(each.split()) for each in paragraphs).replace("``", "`")


def list_models(kind: type[BaseModel]) -> list[type]:
    """The model, then what it inherits from, up to pydantic's own."""
    mro = kind.__mro__
    return list(mro[: mro.index(BaseModel)])


def format_value(value: object) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(format_value, value))
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe_choices(field: FieldInfo) -> str:
    """What a setting may be."""
    kind = kind_of(field.annotation)
    bounds = [
        f"{words} {getattr(each, name):,}"
        for each in field.metadata
        for limit, (words, name) in BOUNDS.items()
        if isinstance(each, limit)
    ]
    return ", ".join([kind, *bounds])


def kind_of(annotation: object) -> str:
    """A type in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin is tuple:
        return f"list of {kind_of(arguments[0])}"
    if origin is Annotated:
        return kind_of(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(kind_of(each) for each in arguments)
    names = {
        NoneType: "nothing",
        bool: "true | false",
        int: "whole number",
        float: "number",
        str: "text",
    }
    return next((text for kind, text in names.items() if annotation is kind), str(annotation))
