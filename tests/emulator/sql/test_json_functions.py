"""Functions of JSON; JSON results are shown as text."""

from __future__ import annotations

import math

import pytest
from fixtures.queries import ask, check
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

VALUES: list[tuple[str, str, object]] = [
    ('PARSE_JSON(\'{"b":1,"a":[1,2.50,null]}\')', "JSON", '{"a":[1,2.5,null],"b":1}'),
    ('PARSE_JSON(\'{"a":1,"a":2}\')', "JSON", '{"a":1}'),
    (
        "PARSE_JSON('{\"id\":123456789012345678901}', wide_number_mode=>'round')",
        "JSON",
        '{"id":1.2345678901234568e+20}',
    ),
    ("SAFE.PARSE_JSON('{')", "JSON", None),
    ("TO_JSON(NULL)", "JSON", "null"),
    ("TO_JSON(12345678901234567, stringify_wide_numbers=>TRUE)", "JSON", '"12345678901234567"'),
    (
        "TO_JSON(NUMERIC '123456789.123456789', stringify_wide_numbers=>TRUE)",
        "JSON",
        '"123456789.123456789"',
    ),
    ("TO_JSON(NUMERIC '1.5')", "JSON", "1.5"),
    (
        "TO_JSON(STRUCT(1 AS a, [TRUE, NULL] AS b, b'x' AS c, DATE '2024-01-02' "
        "AS d, TIMESTAMP '2024-01-02 00:00:00.5Z' AS e))",
        "JSON",
        '{"a":1,"b":[true,null],"c":"eA==","d":"2024-01-02","e":"2024-01-02T00:00:00.500Z"}',
    ),
    ("TO_JSON([IEEE_DIVIDE(1, 0), 0.5])", "JSON", '["Infinity",0.5]'),
    ("TO_JSON(JSON '{\"a\":1}')", "JSON", '{"a":1}'),
    ("TO_JSON([JSON '1', NULL])", "JSON", "[1,null]"),
    ('TO_JSON_STRING(JSON \'{"b":[1, 2],"a":"x"}\')', "STRING", '{"a":"x","b":[1,2]}'),
    ('JSON_QUERY(JSON \'{"a":"str", "b":2}\', \'$.a\')', "JSON", '"str"'),
    ('JSON_QUERY(\'{"a":"str", "b":2}\', \'$.a\')', "STRING", '"str"'),
    ('JSON_QUERY(JSON \'{"a":null}\', "$.a")', "JSON", "null"),
    ('JSON_QUERY(JSON \'{"a":null}\', "$.b")', "JSON", None),
    ('JSON_QUERY(\'{"a":null}\', "$.a")', "STRING", None),
    (
        'JSON_QUERY(\'{"class": {"students": [{"name": "John"},{"name": '
        "\"Jamie\"}]}}', '$.class.students[1].name')",
        "STRING",
        '"Jamie"',
    ),
    ("JSON_QUERY('{\"b\":1,\"a\":2}', '$')", "STRING", '{"b":1,"a":2}'),
    ("JSON_QUERY('nope', '$')", "STRING", None),
    ('JSON_VALUE(JSON \'{"a":"str", "b":2}\', \'$.a\')', "STRING", "str"),
    ('JSON_VALUE(\'{"a.b": {"c": "world"}}\', \'$."a.b".c\')', "STRING", "world"),
    ("JSON_VALUE(JSON '{\"a\":true,\"b\":1.5}', '$.a')", "STRING", "true"),
    ("JSON_VALUE(JSON '{\"a\":null}', '$.a')", "STRING", None),
    ("JSON_VALUE(JSON '[1]', '$[0]')", "STRING", "1"),
    ("JSON_VALUE(JSON '\"x\"')", "STRING", "x"),
    ('JSON_QUERY_ARRAY(\'["apples", {"a":1}]\')', "ARRAY<STRING>", ['"apples"', '{"a":1}']),
    ("JSON_QUERY_ARRAY(JSON '{\"a\":[1,\"x\"]}', '$.a')", "ARRAY<JSON>", ["1", '"x"']),
    ("JSON_QUERY_ARRAY('{\"a\": \"foo\"}', '$.a')", "ARRAY<STRING>", None),
    ("JSON_VALUE_ARRAY('[\"world\", null, 1]')", "ARRAY<STRING>", ["world", None, "1"]),
    ("JSON_VALUE_ARRAY('[{\"a\":1}]')", "ARRAY<STRING>", None),
    ('JSON \'{"a":"str", "b":[1,2,3]}\'[\'a\']', "JSON", '"str"'),
    ('JSON \'{"a":"str", "b":[1,2,3]}\'[\'b\'][1]', "JSON", "2"),
    ('JSON \'{"a":{"b":1}}\'.a.b', "JSON", "1"),
    ("JSON '{\"a\":1}'.c", "JSON", None),
    ("JSON_TYPE(JSON '10')", "STRING", "number"),
    ("JSON_TYPE(JSON 'null')", "STRING", "null"),
    ("JSON_TYPE(JSON '[]')", "STRING", "array"),
    ("BOOL(JSON 'true')", "BOOL", True),
    ("SAFE.BOOL(JSON '123')", "BOOL", None),
    ("INT64(JSON '10.0')", "INT64", 10),
    ("FLOAT64(JSON '9.8')", "FLOAT64", 9.8),
    ("FLOAT64(JSON '18446744073709551615')", "FLOAT64", 1.8446744073709552e19),
    ("FLOAT32(JSON '16777217')", "FLOAT32", 16777216.0),
    ("STRING(JSON '\"purple\"')", "STRING", "purple"),
    ("INT64_ARRAY(JSON '[1, 10.0]')", "ARRAY<INT64>", [1, 10]),
    ("STRING_ARRAY(JSON '[\"a\"]')", "ARRAY<STRING>", ["a"]),
    ("FLOAT64_ARRAY(JSON '[9, 9.8]')", "ARRAY<FLOAT64>", [9.0, 9.8]),
    ("LAX_BOOL(JSON '\"TRUE\"')", "BOOL", True),
    ("LAX_BOOL(JSON '0.0')", "BOOL", False),
    ("LAX_BOOL(JSON '[]')", "BOOL", None),
    ("LAX_INT64(JSON '\"1.1e2\"')", "INT64", 110),
    ("LAX_INT64(JSON '3.5')", "INT64", 4),
    ("LAX_INT64(JSON 'true')", "INT64", 1),
    ("LAX_INT64(JSON '1e100')", "INT64", None),
    ("LAX_FLOAT64(JSON '\"-InfiNiTY\"')", "FLOAT64", -math.inf),
    ("LAX_FLOAT64(JSON '9007199254740993')", "FLOAT64", 9007199254740992.0),
    ("LAX_STRING(JSON '10.0')", "STRING", "10"),
    ("LAX_STRING(JSON '1e100')", "STRING", "1e+100"),
    ("LAX_STRING(JSON '[1]')", "STRING", None),
    ("JSON_ARRAY(10, 'foo', NULL)", "JSON", '[10,"foo",null]'),
    ("JSON_ARRAY()", "JSON", "[]"),
    ("JSON_ARRAY(10, ['foo', 'bar'], [JSON '20'])", "JSON", '[10,["foo","bar"],[20]]'),
    ("JSON_OBJECT('foo', 10, 'bar', TRUE)", "JSON", '{"bar":true,"foo":10}'),
    ("JSON_OBJECT('a', 10, 'a', 'foo')", "JSON", '{"a":10}'),
    ("JSON_OBJECT(['a', 'b'], [10, NULL])", "JSON", '{"a":10,"b":null}'),
    ('JSON_REMOVE(JSON \'["a", ["b", "c"], "d"]\', \'$[1]\', \'$[1]\')', "JSON", '["a"]'),
    (
        "JSON_REMOVE(JSON '{\"a\": [1, 2, 3]}', '$.a[0]', '$.a.b', '$.b', '$.a[0]')",
        "JSON",
        '{"a":[3]}',
    ),
    ("JSON_SET(JSON '{\"a\": 1}', '$', JSON '{\"b\": 2}')", "JSON", '{"b":2}'),
    ('JSON_SET(JSON \'{"a": 1}\', "$.b", 999, create_if_missing => false)', "JSON", '{"a":1}'),
    ("JSON_SET(JSON 'null', '$.a.b', 100)", "JSON", '{"a":{"b":100}}'),
    (
        "JSON_SET(JSON '{\"a\": 1}', '$.b', 2, '$.a.c', 100, '$.d', 3)",
        "JSON",
        '{"a":1,"b":2,"d":3}',
    ),
    ("JSON_SET(JSON 'null', '$[0][3]', \"foo\")", "JSON", '[[null,null,null,"foo"]]'),
    ("JSON_SET(JSON '{}', '$.b[2].d', 100)", "JSON", '{"b":[null,null,{"d":100}]}'),
    ("JSON_ARRAY_APPEND(JSON '[\"a\", \"b\"]', '$', [1, 2])", "JSON", '["a","b",1,2]'),
    (
        'JSON_ARRAY_APPEND(JSON \'["a", ["b"], "c"]\', \'$[1]\', [1, 2], '
        "'$[1][1]', [3, 4], append_each_element=>FALSE)",
        "JSON",
        '["a",["b",[1,2,[3,4]]],"c"]',
    ),
    (
        "JSON_ARRAY_APPEND(JSON '[\"a\", [\"b\"], \"c\"]', '$[1]', [1, 2], '$[1][1]', [3, 4])",
        "JSON",
        '["a",["b",1,2],"c"]',
    ),
    ("JSON_ARRAY_APPEND(JSON '{\"a\": null}', '$.a', 10)", "JSON", '{"a":[10]}'),
    ("JSON_ARRAY_APPEND(JSON '{\"a\": 1}', '$.b', 2)", "JSON", '{"a":1}'),
    (
        'JSON_ARRAY_INSERT(JSON \'["a", ["b", "c"], "d"]\', \'$[1]\', 1)',
        "JSON",
        '["a",1,["b","c"],"d"]',
    ),
    (
        'JSON_ARRAY_INSERT(JSON \'["a", "b", "c", "d"]\', \'$[7]\', "e")',
        "JSON",
        '["a","b","c","d",null,null,null,"e"]',
    ),
    ("JSON_ARRAY_INSERT(JSON '{\"a\": null}', '$.a[2]', 10)", "JSON", '{"a":[null,null,10]}'),
    ("JSON_ARRAY_INSERT(JSON '[1, 2]', '$', 3)", "JSON", "[1,2]"),
    ('JSON_STRIP_NULLS(JSON \'{"a": null, "b": "c"}\')', "JSON", '{"b":"c"}'),
    (
        "JSON_STRIP_NULLS(JSON '[1, null, 2, null]', include_arrays=>FALSE)",
        "JSON",
        "[1,null,2,null]",
    ),
    ("JSON_STRIP_NULLS(JSON '[1, null, 2, null, [null]]', remove_empty=>TRUE)", "JSON", "[1,2]"),
    (
        'JSON_STRIP_NULLS(JSON \'{"a": {"b": {"c": null}}, "d": [null], "e": [], '
        '"f": 1}\', include_arrays=>FALSE, remove_empty=>TRUE)',
        "JSON",
        '{"d":[null],"e":[],"f":1}',
    ),
    ("JSON_STRIP_NULLS(JSON '{\"a\": [null]}', remove_empty=>TRUE)", "JSON", "null"),
    (
        'JSON_CONTAINS(JSON \'{"a": {"b": 1, "d": 3}, "c": 2}\', JSON \'{"a": {"b": 1}}\')',
        "BOOL",
        True,
    ),
    ("JSON_CONTAINS(JSON '[1, 2, 3]', JSON '2')", "BOOL", True),
    ("JSON_CONTAINS(JSON '[[1, 2, 3]]', JSON '2')", "BOOL", False),
    ('JSON_CONTAINS(JSON \'[{"a":0}, {"b":1, "c":2}]\', JSON \'{"b":1}\')', "BOOL", False),
    ('JSON_KEYS(JSON \'{"a": {"b":1}}\')', "ARRAY<STRING>", ["a", "a.b"]),
    ('JSON_KEYS(JSON \'{"a": {"b":1}}\', 1)', "ARRAY<STRING>", ["a"]),
    ('JSON_KEYS(JSON \'{"a":[{"b":1}, {"c":2}], "d":3}\')', "ARRAY<STRING>", ["a", "d"]),
    (
        'JSON_KEYS(JSON \'{"a":[{"b":1}, {"c":2}], "d":3}\', mode => "lax")',
        "ARRAY<STRING>",
        ["a", "a.b", "a.c", "d"],
    ),
    ('JSON_KEYS(JSON \'{"a":[[{"b":1}]]}\', mode => "lax")', "ARRAY<STRING>", ["a"]),
    (
        'JSON_KEYS(JSON \'{"a":[[{"b":1}]]}\', mode => "lax recursive")',
        "ARRAY<STRING>",
        ["a", "a.b"],
    ),
    ('JSON_KEYS(JSON \'{"a":[{"b":[[{"c":1}]]}]}\', mode => "lax")', "ARRAY<STRING>", ["a", "a.b"]),
    (
        'SELECT j.a.b, j[\'a\'], j.n FROM (SELECT JSON \'{"a":{"b":1},"n":null}\' AS j)',
        "JSON, JSON, JSON",
        ("1", '{"b":1}', "null"),
    ),
]

REFUSED: list[tuple[str, type[Exception]]] = [
    ("PARSE_JSON('{\"id\":123456789012345678901}')", exceptions.OutOfRange),
    (
        "PARSE_JSON('{\"id\":123456789012345678901}', wide_number_mode=>'exact')",
        exceptions.OutOfRange,
    ),
    ("PARSE_JSON('1', wide_number_mode=>'EXACT')", exceptions.OutOfRange),
    ("PARSE_JSON('{')", exceptions.OutOfRange),
    ("JSON '{\"a\":1,}'", exceptions.InvalidArgument),
    ("TO_JSON(NUMERIC '123456789.123456789')", exceptions.OutOfRange),
    ("TO_JSON(1, nope=>TRUE)", exceptions.InvalidArgument),
    ("TO_JSON_STRING('x')", exceptions.MethodNotImplemented),
    ("JSON_QUERY('{}', 'a')", exceptions.OutOfRange),
    ("BOOL(JSON '123')", exceptions.OutOfRange),
    ("INT64(JSON '10.1')", exceptions.OutOfRange),
    ("FLOAT64(JSON '18446744073709551615', wide_number_mode=>'exact')", exceptions.OutOfRange),
    ("FLOAT32(JSON '16777217', wide_number_mode=>'exact')", exceptions.OutOfRange),
    ("STRING(JSON '1')", exceptions.OutOfRange),
    ("BOOL_ARRAY(JSON '[true, null]')", exceptions.OutOfRange),
    ("JSON_OBJECT(['a', 'b'], [10])", exceptions.OutOfRange),
    ("JSON_OBJECT('a', 1, 'b')", exceptions.InvalidArgument),
    ("JSON_OBJECT(CAST(NULL AS STRING), 1)", exceptions.OutOfRange),
    ("JSON_REMOVE(JSON '{}', '$')", exceptions.OutOfRange),
]


def query(text: str) -> str:
    return text if text.startswith("SELECT") else f"SELECT {text}"


@pytest.mark.parametrize(("text", "types", "row"), VALUES, ids=[v[0] for v in VALUES])
def test_a_call_has_its_value_and_type(blank: Database, text: str, types: str, row: object) -> None:
    check(blank, query(text), types, row)


@pytest.mark.parametrize(("text", "error"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_wrong_call_is_refused_with_its_code(
    blank: Database, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(blank, query(text))
