"""Random SQL: statements from a generator, and mutations of valid ones."""

from __future__ import annotations

import random
import re

from fuzz.typed import KINDS, TEMPLATES, VALUES
from fuzz.vocabulary import DDL, FUNCTIONS, LITERALS, STATEMENTS, WORDS, words

TOKEN = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)
DEPTHS = (5, 60, 400, 2_000)
OPERATORS = words("+ - * / || = <> < AND OR & | ^ << >> LIKE IN")
TYPES = words(
    "INT64 STRING FLOAT64 DATE NUMERIC BYTES TIMESTAMP JSON ARRAY<INT64> UUID INTERVAL BOOL"
)
TESTS = ("IS NULL", "IN UNNEST([1, 2])", "BETWEEN 1 AND 2", "IS NOT TRUE", "IN (1, 2)")
PLACES = words("OFFSET SAFE_OFFSET ORDINAL SAFE_ORDINAL")


def random_statement(choice: random.Random) -> str:
    """A query or DML statement: generated, or a valid one with mutations."""
    kind = choice.random()
    if kind < 0.3:
        return f"SELECT {typed_expression(choice, choice.choice(KINDS), 4)} FROM A"
    if kind < 0.4:
        return f"SELECT {random_expression(choice, 3)}" + choice.choice(["", " FROM A", " FROM A2"])
    if kind < 0.45:
        return deep_statement(choice)
    text = choice.choice(STATEMENTS)
    return mutate(choice, text) if kind < 0.9 else text


def random_ddl(choice: random.Random) -> str:
    """A statement that changes the schema, as it is or mutated."""
    text = choice.choice(DDL).replace("{n}", str(choice.randrange(4)))
    return mutate(choice, text) if choice.random() < 0.6 else text


def typed_expression(choice: random.Random, kind: str, depth: int) -> str:
    """An expression of a type, with extreme values: it compiles, and what it gives is open."""
    if depth == 0 or choice.random() < 0.25:
        return choice.choice(VALUES[kind])
    template = choice.choice(TEMPLATES[kind])

    def fill(match: re.Match[str]) -> str:
        return typed_expression(choice, match[1], depth - 1)

    return re.sub(r"<(\w)>", fill, template)


def random_expression(choice: random.Random, depth: int) -> str:
    """An expression; its types fit by chance only."""
    if depth == 0 or choice.random() < 0.2:
        return str(choice.choice(LITERALS))

    def inner() -> str:
        return random_expression(choice, depth - 1)

    shape = choice.randrange(10)
    if shape < 5:
        arguments = ", ".join(inner() for _ in range(choice.choice([0, 1, 1, 2, 2, 2, 3, 4])))
        return f"{choice.choice(FUNCTIONS)}({arguments})"
    if shape == 5:
        return f"({inner()} {choice.choice(OPERATORS)} {inner()})"
    if shape == 6:
        return f"CAST({inner()} AS {choice.choice(TYPES)})"
    if shape == 7:
        return f"CASE WHEN {inner()} THEN {inner()} ELSE {inner()} END"
    if shape == 8:
        return f"({inner()} {choice.choice(TESTS)})"
    return f"[{inner()}, {inner()}][{choice.choice(PLACES)}({inner()})]"


def deep_statement(choice: random.Random) -> str:
    """A statement that nests deeply, or is long."""
    depth = choice.choice(DEPTHS)
    return choice.choice(
        [
            f"SELECT {'(' * depth}1{')' * depth}",
            f"SELECT {'-' + '(-' * depth}1{')' * depth}",
            f"SELECT 1 WHERE {' OR '.join(f'{n} = 2' for n in range(depth))}",
            f"SELECT K FROM A WHERE {' AND '.join(f'K = {n}' for n in range(depth))}",
            f"SELECT {'+'.join('1' * depth)}",
            f"SELECT {'ABS(' * depth}1{')' * depth}",
            f"SELECT {'[' * depth}1{']' * depth}",
            f"SELECT {'CASE WHEN TRUE THEN ' * depth}1{' END' * depth}",
            f"SELECT * FROM {'(SELECT * FROM ' * depth}A{')' * depth}",
            f"SELECT {' UNION ALL SELECT '.join('1' * depth)}",
            f"SELECT JSON '{'[' * depth}{']' * depth}'",
            f"SELECT PARSE_JSON('{'[' * depth}{']' * depth}')",
            f"SELECT {'NOT ' * depth}TRUE",
            f"SELECT {','.join('1' * depth)}",
            f"SELECT K IN ({','.join('1' * depth)}) FROM A",
            f"SELECT {'9' * depth}",
            f"SELECT {'9' * depth}e{'9' * depth}",
            f"SELECT '{'x' * depth * 10}' + 1",
            f"SELECT {'x' * depth * 10}",
            f"SELECT NUMERIC '{'9' * depth}'",
            f"SELECT 1 -- {'漢' * depth}",
            f"SELECT REGEXP_CONTAINS('a', r'{'(' * depth}a{')' * depth}')",
            f"SELECT REPEAT('ab', {depth}000000)",
            f"SELECT CAST('{'A' * depth}' AS {'ARRAY<' * depth}INT64{'>' * depth})",
        ]
    )


def mutate(choice: random.Random, text: str) -> str:
    """A text with a few of its tokens changed."""
    tokens = TOKEN.findall(text)
    for _ in range(choice.choice([1, 1, 1, 2, 3, 6])):
        place = choice.randrange(len(tokens) + 1)
        kind = choice.randrange(8)
        if kind == 0 and place < len(tokens):
            del tokens[place]
        elif kind == 1 and place < len(tokens):
            tokens.insert(place, tokens[choice.randrange(len(tokens))])
        elif kind == 2 and place < len(tokens):
            tokens[place] = choice.choice(LITERALS)
        elif kind == 3:
            tokens.insert(place, f" {choice.choice(WORDS)} ")
        elif kind == 4 and place < len(tokens):
            tokens[place] = f" {choice.choice(WORDS)} "
        elif kind == 5 and place < len(tokens):
            tokens[place] = f"({random_expression(choice, 2)})"
        elif kind == 6:
            del tokens[place:]
        else:
            tokens.insert(place, f" {choice.choice(STATEMENTS)} ")
        if not tokens:
            tokens = [" "]
    return "".join(tokens)
