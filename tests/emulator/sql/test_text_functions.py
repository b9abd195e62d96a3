"""Functions of STRING and BYTES, regular expressions, hashes, FORMAT."""

from __future__ import annotations

import pytest
from fixtures.queries import ask, check
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database

VALUES: list[tuple[str, str, object]] = [
    (r"REGEXP_CONTAINS('b\n', r'b$')", "BOOL", False),
    (r"REGEXP_CONTAINS('b\n', r'(?m)b$')", "BOOL", True),
    (r"REGEXP_CONTAINS('b$', r'b[$]\z')", "BOOL", True),
    (r"REGEXP_CONTAINS('b$', r'b\$$')", "BOOL", True),
    (r"REGEXP_CONTAINS('é', r'\w')", "BOOL", False),
    ("SUBSTR('apple', 2)", "STRING", "pple"),
    ("SUBSTR('apple', -2)", "STRING", "le"),
    ("SUBSTR('apple', 0, 2)", "STRING", "ap"),
    ("SUBSTR('apple', -10, 3)", "STRING", "app"),
    ("SUBSTR('apple', 9)", "STRING", ""),
    ("SUBSTR(b'apple', 2, 2)", "BYTES", b"cHA="),
    ("TRIM('  a ')", "STRING", "a"),
    ("TRIM('xxaxx', 'x')", "STRING", "a"),
    ("LTRIM('***a', '*')", "STRING", "a"),
    ("RTRIM(b'abb', b'b')", "BYTES", b"YQ=="),
    ("LPAD('abc', 5)", "STRING", "  abc"),
    ("LPAD('abc', 5, 'de')", "STRING", "deabc"),
    ("RPAD('abc', 2)", "STRING", "ab"),
    ("LENGTH('щ😀')", "INT64", 2),
    ("BYTE_LENGTH('щ')", "INT64", 2),
    ("CHAR_LENGTH('щ')", "INT64", 1),
    ("REVERSE('abc')", "STRING", "cba"),
    ("UPPER('straße')", "STRING", "STRASSE"),
    ("LOWER(b'ABC')", "BYTES", b"YWJj"),
    ("CONCAT('a', 'b', 'c')", "STRING", "abc"),
    ("CONCAT('a', NULL)", "STRING", None),
    ("CONCAT(b'a', b'b')", "BYTES", b"YWI="),
    ("REPLACE('abab', 'a', 'x')", "STRING", "xbxb"),
    ("REPLACE('abc', '', 'x')", "STRING", "abc"),
    ("REPEAT('ab', 3)", "STRING", "ababab"),
    ("STRPOS('foobar', 'bar')", "INT64", 4),
    ("STARTS_WITH('foo', 'f')", "BOOL", True),
    ("ENDS_WITH(b'foo', b'o')", "BOOL", True),
    ("SPLIT('a,b,c')", "ARRAY<STRING>", ["a", "b", "c"]),
    ("SPLIT('abc', '')", "ARRAY<STRING>", ["a", "b", "c"]),
    ("SPLIT('', ',')", "ARRAY<STRING>", [""]),
    ("SPLIT(b'a b', b' ')", "ARRAY<BYTES>", [b"YQ==", b"Yg=="]),
    ("TO_HEX(b'\\x00\\xff')", "STRING", "00ff"),
    ("FROM_HEX('0aF')", "BYTES", b"AK8="),
    ("TO_BASE64(b'ab')", "STRING", "YWI="),
    ("FROM_BASE64('YWI=')", "BYTES", b"YWI="),
    ("TO_BASE32(b'abcde\\xff')", "STRING", "MFRGGZDF74======"),
    ("FROM_BASE32('MFRGGZDF74======')", "BYTES", b"YWJjZGX/"),
    ("TO_CODE_POINTS('Aä')", "ARRAY<INT64>", [65, 228]),
    ("TO_CODE_POINTS(b'\\xff')", "ARRAY<INT64>", [255]),
    ("CODE_POINTS_TO_STRING([65, 228])", "STRING", "Aä"),
    ("CODE_POINTS_TO_STRING([65, NULL])", "STRING", None),
    ("CODE_POINTS_TO_BYTES([65, 255])", "BYTES", b"Qf8="),
    ("SAFE_CONVERT_BYTES_TO_STRING(b'a\\xc2')", "STRING", "a�"),
    ("SOUNDEX('Ashcraft')", "STRING", "A261"),
    ("SPLIT_SUBSTR('www.abc.xyz.com', '.', 1, 2)", "STRING", "www.abc"),
    ("SPLIT_SUBSTR('www.abc.xyz.com', '.', -2)", "STRING", "xyz.com"),
    ("SPLIT_SUBSTR('www.abc.xyz.com', '.', 9)", "STRING", ""),
    ("SPLIT_SUBSTR('aaa', 'a', 2)", "STRING", "aa"),
    ("REGEXP_CONTAINS('foo@example.com', r'@[a-z]+\\.com$')", "BOOL", True),
    ("SAFE.REGEXP_CONTAINS('s', ')')", "BOOL", None),
    ("REGEXP_CONTAINS(b'\\xff', b'\\xff')", "BOOL", True),
    ("REGEXP_EXTRACT('foo@example.com', r'^[a-z]+')", "STRING", "foo"),
    ("REGEXP_EXTRACT('foo@example.com', r'@([a-z]+)')", "STRING", "example"),
    ("REGEXP_EXTRACT('x', 'y')", "STRING", None),
    ("REGEXP_EXTRACT_ALL('`a` and `b`', '`(.+?)`')", "ARRAY<STRING>", ["a", "b"]),
    (
        "REGEXP_REPLACE('# Heading', r'^# ([a-zA-Z0-9\\s]+$)', '<h1>\\\\1</h1>')",
        "STRING",
        "<h1>Heading</h1>",
    ),
    ("REGEXP_REPLACE('abc', '(?i)B', '[\\\\0]')", "STRING", "a[b]c"),
    ("MD5('Hello World')", "BYTES", b"sQqNsWTgdUEFt6mb5y4/5Q=="),
    ("SHA1(b'a')", "BYTES", b"hvfkN/qlp/zhXR3cuerq6jd2Z7g="),
    ("SHA256('')", "BYTES", b"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    (
        "SHA512('')",
        "BYTES",
        b"z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    ),
    ("FARM_FINGERPRINT('foo')", "INT64", 6150913649986995171),
    ("FARM_FINGERPRINT(b'foo')", "INT64", 6150913649986995171),
    ("LENGTH(GENERATE_UUID())", "INT64", 36),
    ("NEW_UUID() IS NULL", "BOOL", False),
    (
        "FORMAT('%d %i|%5d|%-5d|%05d|%+d|% d', 10, -3, 7, 7, 7, 7, 7)",
        "STRING",
        "10 -3|    7|7    |00007|+7| 7",
    ),
    (
        "FORMAT(\"%'d %'x %'o %x %X %#x\", 123456789, 12345678, 55555, 255, 255, 255)",
        "STRING",
        "123,456,789 bc:614e 15,4403 ff FF 0xff",
    ),
    (
        "FORMAT('%f %E %g %.2f %10.3f|', 1.1, 2.2, 392.65, 1.005, 3.14159)",
        "STRING",
        "1.100000 2.200000E+00 392.65 1.00      3.142|",
    ),
    ("FORMAT('%s-%t-%T', 'a', 'b', 'c\"d')", "STRING", "a-b-'c\"d'"),
    (
        "FORMAT('%t %T', DATE '2015-09-01', DATE '2015-09-01')",
        "STRING",
        '2015-09-01 DATE "2015-09-01"',
    ),
    (
        "FORMAT('%t', TIMESTAMP '2015-09-01 12:34:56 America/Los_Angeles')",
        "STRING",
        "2015-09-01 19:34:56+00",
    ),
    (
        "FORMAT('%T %t %t %t', [1, NULL], STRUCT(1, 'x'), 1.0, NUMERIC '1.5')",
        "STRING",
        "[1, NULL] (1, x) 1.0 1.5",
    ),
    ("FORMAT('%T', b'abc\\x01')", "STRING", 'b"abc\\x01"'),
    ("FORMAT('%d', NULL)", "STRING", None),
    ("FORMAT('00-%t-00', NULL)", "STRING", "00-NULL-00"),
    ("FORMAT('%*.*f|', 10, 2, 3.14159)", "STRING", "      3.14|"),
    ('FORMAT("%\'P", JSON \'{"a":"str", "b":2}\')', "STRING", '{\n  "a": "str",\n  "b": 2\n}'),
    ("SAFE.FORMAT('%s', 1)", "STRING", None),
    ("NORMALIZE('\\u00ea') = NORMALIZE('\\u0065\\u0302')", "BOOL", True),
    ("NORMALIZE_AND_CASEFOLD('ÄB', NFKC)", "STRING", "äb"),
]

REFUSED: list[tuple[str, type[Exception]]] = [
    ("SUBSTR('apple', 2, -1)", exceptions.OutOfRange),
    ("TRIM(b' a')", exceptions.InvalidArgument),
    ("LPAD('abc', -1)", exceptions.OutOfRange),
    ("LPAD('abc', 5, '')", exceptions.OutOfRange),
    ("CONCAT('a', 1)", exceptions.InvalidArgument),
    ("REPEAT('ab', -1)", exceptions.OutOfRange),
    ("FROM_HEX('zz')", exceptions.OutOfRange),
    ("CODE_POINTS_TO_STRING([-1])", exceptions.OutOfRange),
    ("CODE_POINTS_TO_BYTES([256])", exceptions.OutOfRange),
    ("REGEXP_CONTAINS('s', ')')", exceptions.OutOfRange),
    ("REGEXP_EXTRACT('ab', '(a)(b)')", exceptions.OutOfRange),
    ("REGEXP_REPLACE('abc', 'b', '\\\\2')", exceptions.OutOfRange),
    ("FORMAT('%s', 1)", exceptions.OutOfRange),
    ("FORMAT('%')", exceptions.OutOfRange),
    ("FORMAT('%d')", exceptions.OutOfRange),
    ("NET.HOST('x')", exceptions.MethodNotImplemented),
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
