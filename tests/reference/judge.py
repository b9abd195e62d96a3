"""GoogleSQL's reference implementation: ``zetasql``, WebAssembly, in a process of its own.

It has the language features that Google's emulator switches on, so it says what Spanner says.
"""

from __future__ import annotations

import base64
import json
import math
import os
import struct
import subprocess
import sys
from datetime import date, timedelta
from importlib.util import find_spec
from types import TracebackType
from typing import IO, Any
from uuid import UUID

from reference.answers import Answer

FEATURES = """
EXTENDED_TYPES FUNCTION_ARGUMENTS_WITH_DEFAULTS NAMED_ARGUMENTS NUMERIC_TYPE TABLESAMPLE
TIMESTAMP_NANOS HAVING_IN_AGGREGATE NULL_HANDLING_MODIFIER_IN_AGGREGATE ORDER_BY_IN_AGGREGATE
LIMIT_IN_AGGREGATE ORDER_BY_COLLATE SELECT_STAR_EXCEPT_REPLACE SAFE_FUNCTION_CALL
JSON_KEYS_FUNCTION JSON_TYPE JSON_ARRAY_FUNCTIONS JSON_CONSTRUCTOR_FUNCTIONS
JSON_CONTAINS_FUNCTION JSON_MUTATOR_FUNCTIONS JSON_STRICT_NUMBER_PARSING
JSON_VALUE_EXTRACTION_FUNCTIONS JSON_LAX_VALUE_EXTRACTION_FUNCTIONS DML_RETURNING
WITH_EXPRESSION TABLE_VALUED_FUNCTIONS TOKENIZED_SEARCH ADDITIONAL_STRING_FUNCTIONS SEQUENCE_ARG
JSON_ARRAY_VALUE_EXTRACTION_FUNCTIONS JSON_MORE_VALUE_EXTRACTION_FUNCTIONS
ENABLE_FLOAT_DISTANCE_FUNCTIONS DOT_PRODUCT INTERVAL_TYPE UUID_TYPE FOR_UPDATE
INLINE_LAMBDA_ARGUMENT PIPES
"""
"""As in Google's emulator, backend/query/analyzer_options.cc; and pipe syntax, which it lacks."""
TIME_ZONE = "America/Los_Angeles"
NAMES = {"DOUBLE": "FLOAT64", "FLOAT": "FLOAT32"}
"""Types whose names in SQL are not those of zetasql's TypeKind."""


def is_installed() -> bool:
    """Whether there is a reference to ask."""
    return find_spec("zetasql") is not None


class Reference:
    """The process; its start takes about 30 s of CPU, a statement 0.1 s."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "reference.judge"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def __enter__(self) -> Reference:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, sql: str, parameter: str = "") -> Answer:
        """What GoogleSQL answers; @p, a NULL, is of the type ``parameter``.

        Raises EOFError when the process has died.
        """
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        questions.write(json.dumps([sql, parameter]) + "\n")
        questions.flush()
        line = answers.readline()
        if not line:
            raise EOFError(f"the reference implementation has died of: {sql}")
        return Answer.from_plain(json.loads(line))


def serve(questions: IO[str], answers: IO[str]) -> None:
    """Answers one statement a line."""
    engine = Engine()
    for line in questions:
        answers.write(json.dumps(engine.answer(*json.loads(line)).to_plain()) + "\n")
        answers.flush()


class Engine:
    """zetasql in this process."""

    def __init__(self) -> None:
        from zetasql import api, types
        from zetasql.core import local_service

        language = types.LanguageOptions()
        language.enabled_language_features = find_features(types.LanguageFeature)
        language.product_mode = types.ProductMode.PRODUCT_EXTERNAL
        functions = types.ZetaSQLBuiltinFunctionOptions(language_options=language)
        catalog = api.CatalogBuilder("d").with_builtin_functions(functions).build()
        # Registered once: a catalog that comes with a query is made again for it, 40 ms each.
        service = local_service.ZetaSqlLocalService.get_instance()
        self._catalog = service.register_catalog(simple_catalog=catalog).registered_id
        self._options = types.AnalyzerOptions(language_options=language)
        self._options.default_timezone = TIME_ZONE
        self._api, self._types = api, types

    def answer(self, sql: str, parameter: str = "") -> Answer:
        """The answer to a query; of one with a parameter the columns alone."""
        self._options.query_parameters = self._declare(parameter) if parameter else []
        query = self._api.PreparedQuery.builder().set_sql(sql)
        query = query.set_analyzer_options(self._options).set_registered_catalog_id(self._catalog)
        try:
            with query.prepare() as prepared:
                columns = prepared.columns
                rows = [] if parameter else self._evaluate(prepared)
        except self._api_error() as error:
            return Answer(refusal=str(error)[:400])
        except UnicodeDecodeError:
            # Its messages are cut within a character.
            return Answer(refusal="a message that is no UTF-8")
        named = [(each.name, type_text(each.type)) for each in columns]
        types = [each.type for each in columns]
        return Answer(
            named, [[read(t, v) for t, v in zip(types, row.cell, strict=True)] for row in rows]
        )

    def _declare(self, parameter: str) -> list[Any]:
        """@p of a type."""
        names = {name: kind for kind, name in NAMES.items()}
        kind = self._types.TypeKind[f"TYPE_{names.get(parameter, parameter)}"]
        declared = self._types.Type(type_kind=kind)
        return [self._types.AnalyzerOptions.QueryParameter(name="p", type=declared)]

    def _evaluate(self, prepared: Any) -> Any:
        """The rows as protos: the package's own values lose nanoseconds and intervals."""
        from zetasql.core import local_service

        request = self._types.EvaluateQueryRequest(prepared_query_id=prepared.prepared_query_id)
        response = prepared._service.wasm_client.call_grpc_func(
            "ZetaSqlLocalService_EvaluateQuery",
            request.to_proto(),
            local_service.local_service_pb2.EvaluateQueryResponse,
        )
        return response.content.table_data.row

    def _api_error(self) -> type[Exception]:
        from zetasql.core.exceptions import ZetaSQLError

        kind: type[Exception] = ZetaSQLError
        return kind


def find_features(feature: Any) -> list[Any]:
    """The features by their names in C++; FEATURE_V_1_3_X is the same as FEATURE_X."""
    found = []
    for name in FEATURES.split():
        fitting = [each for each in dir(feature) if each.endswith(f"_{name}")]
        if fitting:
            found.append(getattr(feature, min(fitting, key=len)))
    return found


def type_text(type_: Any) -> str:
    """A type as SQL writes it."""
    if type_.array_type:
        return f"ARRAY<{type_text(type_.array_type.element_type)}>"
    if type_.struct_type:
        fields = (
            f"{each.field_name} {type_text(each.field_type)}".strip()
            for each in type_.struct_type.field
        )
        return f"STRUCT<{', '.join(fields)}>"
    name = str(type_.type_kind.name).removeprefix("TYPE_")
    return NAMES.get(name, name)


def read(type_: Any, value: Any) -> Any:
    """A value, as ``answers`` describes it."""
    which = value.WhichOneof("value")
    if which is None:
        return None
    item = getattr(value, which)
    if which == "array_value":
        return [read(type_.array_type.element_type, each) for each in item.element]
    if which == "struct_value":
        fields = type_.struct_type.field
        return [read(f.field_type, each) for f, each in zip(fields, item.field, strict=True)]
    return READERS[which](item) if which in READERS else item


def read_float(value: float) -> float | str:
    """A float, or the word of the API."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def read_numeric(value: bytes) -> str:
    """A NUMERIC: little-endian billionths."""
    scaled = int.from_bytes(value, "little", signed=True)
    text = f"{abs(scaled) // 10**9}.{abs(scaled) % 10**9:09}".rstrip("0").rstrip(".")
    return f"-{text}" if scaled < 0 else text


def read_interval(value: bytes) -> list[int]:
    """Microseconds, days, then a word of the sign and number of months and the nanoseconds."""
    micros, days, word = struct.unpack("<qiI", value)
    months = (word & 0x7FFFFFFF) >> 13
    return [-months if word >> 31 else months, days, micros * 1_000 + (word & 0x3FF)]


READERS: dict[str, Any] = {
    "int64_value": str,
    "double_value": read_float,
    "float_value": read_float,
    "bytes_value": lambda value: base64.b64encode(value).decode(),
    "date_value": lambda days: (date(1970, 1, 1) + timedelta(days=days)).isoformat(),
    "timestamp_value": lambda value: value.seconds * 10**9 + value.nanos,
    "numeric_value": read_numeric,
    "interval_value": read_interval,
    "uuid_value": lambda value: str(UUID(bytes=value)),
}

if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
