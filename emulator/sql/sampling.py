"""TABLESAMPLE: a percentage of the rows, or a number of rows."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import require
from emulator.sql.compiler import Compiler, refuse_other_clauses
from emulator.sql.scope import Context, Scope
from emulator.values.sqlite_text import quote_name
from emulator.values.types import FLOAT64, INT64

RANDOM_SPAN = 2.0**63


def add_sample(compiler: Compiler, named: str, alias: str, node: exp.Expr, context: Context) -> str:
    """A source of a FROM clause, which has its alias already, with the sample that is asked for."""
    sample = node.args.get("sample")
    if sample is None:
        return named
    name = quote_name(alias)
    refuse_other_clauses(sample, "method", "percent", "size")
    method = sample.args["method"].name.upper() if sample.args.get("method") else ""
    if method == "BERNOULLI" and sample.args.get("percent") is not None:
        item = compiler.compile(sample.args["percent"], Scope(), context)
        percent = require(item, FLOAT64, context, "The percentage of TABLESAMPLE").sql
        chance = f"abs(random() / {RANDOM_SPAN!r}) * 100.0"
        return f"(SELECT * FROM {named} WHERE {chance} <= fn_percentage({percent})) AS {name}"
    if method == "RESERVOIR" and sample.args.get("size") is not None:
        item = compiler.compile(sample.args["size"], Scope(), context)
        count = require(item, INT64, context, "The size of TABLESAMPLE").sql
        limit = f"fn_not_negative({count}, 'TABLESAMPLE')"
        return f"(SELECT * FROM {named} ORDER BY random() LIMIT {limit}) AS {name}"
    raise errors.invalid_argument(
        f"TABLESAMPLE {method} is not supported: write BERNOULLI (n PERCENT) or RESERVOIR (n ROWS)"
    )
