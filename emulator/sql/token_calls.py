"""TOKEN, TOKENIZE_FULLTEXT and its like: what makes a TOKENLIST. Nothing here searches one, so that
its value only tells whether it is NULL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import coerce
from emulator.sql.compiler import Call, Compiler
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of
from emulator.values.types import (
    BOOL,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT64,
    JSON,
    PG_JSONB,
    STRING,
    TOKENLIST,
    array,
)
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Dialect


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """What a function takes first, one of ``values``, and by name."""

    values: tuple[Type, ...]
    named: Mapping[str, tuple[Type, ...]] = field(default_factory=dict)


NUMBERS = (INT64, FLOAT64, FLOAT32)
TEXTS = (STRING, array(STRING))
SIZES = {"ngram_size_min": (INT64,), "ngram_size_max": (INT64,), "remove_diacritics": (BOOL,)}
LANGUAGE = {"language_tag": (STRING,), "content_type": (STRING,)}

TOKENIZERS: Mapping[str, Tokenizer] = {
    "TOKEN": Tokenizer((STRING, BYTES, array(STRING), array(BYTES))),
    "TOKENIZE_BOOL": Tokenizer((BOOL, array(BOOL))),
    "TOKENIZE_FULLTEXT": Tokenizer(
        TEXTS, {**LANGUAGE, "token_category": (STRING,), "remove_diacritics": (BOOL,)}
    ),
    "TOKENIZE_JSON": Tokenizer((JSON,)),
    "TOKENIZE_JSONB": Tokenizer((PG_JSONB,)),
    "TOKENIZE_NGRAMS": Tokenizer(TEXTS, SIZES),
    "TOKENIZE_NUMBER": Tokenizer(
        (*NUMBERS, *map(array, NUMBERS)),
        {
            **dict.fromkeys(("comparison_type", "algorithm"), (STRING,)),
            **dict.fromkeys(("min", "max", "granularity"), NUMBERS),
            **dict.fromkeys(("tree_base", "precision", "ieee_precision"), (INT64,)),
        },
    ),
    "TOKENIZE_SUBSTRING": Tokenizer(
        TEXTS,
        {
            **LANGUAGE,
            **SIZES,
            "relative_search_types": (array(STRING),),
            "support_relative_search": (BOOL,),
            "short_tokens_only_for_anchors": (BOOL,),
        },
    ),
    "TOKENLIST_CONCAT": Tokenizer((array(TOKENLIST),)),
}
"""By their names in GoogleSQL; PostgreSQL has a prefix before each."""
POSTGRES_PREFIX = "SPANNER."
ONLY_IN = {"TOKENIZE_JSON": Dialect.GOOGLESQL, "TOKENIZE_JSONB": Dialect.POSTGRESQL}


def tokenize(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """f(value [, name => argument ...])."""
    name = node.name.upper().removeprefix(POSTGRES_PREFIX)
    tokenizer = TOKENIZERS[name]
    accepted = tokenizer.values
    value: Typed | None = None
    given: list[str] = []
    for number, each in enumerate(node.expressions):
        is_named = isinstance(each, exp.Kwarg)
        item = compiler.compile(each.expression if is_named else each, scope, context)
        if number and not is_named:
            raise mismatch(name, item, context)
        argument = each.this.name.lower() if is_named else "value"
        accepted = tokenizer.values if argument == "value" else tokenizer.named.get(argument, ())
        converted = convert(item, accepted, context)
        if converted is None or argument in given:
            raise mismatch(name, item, context)
        given.append(argument)
        value = converted if argument == "value" else value
    if value is None:
        raise mismatch(name, None, context)
    return Typed(f"CASE WHEN {value.sql} IS NOT NULL THEN '' END", TOKENLIST)


def convert(item: Typed, accepted: tuple[Type, ...], context: Context) -> Typed | None:
    """An argument as the first of some types that it is, or becomes; None if it becomes none."""
    exact = [type_ for type_ in accepted if type_ == item.type]
    attempts = (coerce(item, type_, context) for type_ in (*exact, *accepted))
    return next((converted for converted in attempts if converted is not None), None)


def mismatch(name: str, item: Typed | None, context: Context) -> errors.SpannerError:
    """No signature fits: an argument is missing, unknown, or of another type."""
    shown = name_of(item.type) if item is not None else ""
    if context.schema.dialect is Dialect.POSTGRESQL:
        return errors.invalid_argument(f"function spanner.{name.lower()}({shown}) does not exist")
    return errors.invalid_argument(
        f"No matching signature for function SPANNER:{name} for argument types: {shown}"
    )


def refuse_token_lists(types: Iterable[Type]) -> None:
    """Raises INVALID_ARGUMENT for a TOKENLIST among what is returned."""
    if any((type_.element or type_).code is TypeCode.TOKENLIST for type_ in types):
        raise errors.invalid_argument(
            "TOKENLIST is an internal-only type and cannot be returned to the user by SQL query."
        )


CALLS: dict[str, Call] = {
    name: tokenize for name in TOKENIZERS if ONLY_IN.get(name) is not Dialect.POSTGRESQL
}
POSTGRES_CALLS: dict[str, Call] = {
    f"{POSTGRES_PREFIX}{name}": tokenize
    for name in TOKENIZERS
    if ONLY_IN.get(name) is not Dialect.GOOGLESQL
}
