"""The leaves of random expressions, by their types: columns of the tables, and literals."""

from __future__ import annotations

from reference.rarer_templates import items

COLUMNS = {
    "i": ("I", "K"),
    "f": ("F",),
    "g": ("G",),
    "n": ("N",),
    "s": ("S", "S2"),
    "y": ("Y",),
    "b": ("B",),
    "d": ("D",),
    "t": ("T",),
    "j": ("J",),
    "u": ("U",),
    "l": ("L",),
    "w": ("W",),
}

LITERALS = {
    "i": items(
        r"""
        0; 1; 2; -1; 3; 7; -12; 100; 0x1F; CAST(NULL AS INT64)
        """
    ),
    "f": items(
        r"""
        0.0; 1.5; -2.25; 0.1; 1e3; 3.; .5; 100.0; CAST(NULL AS FLOAT64)
        """
    ),
    "g": items(r"""CAST(1.5 AS FLOAT32); CAST(0.1 AS FLOAT32); CAST(-7 AS FLOAT32)"""),
    "n": items(
        r"""
        NUMERIC '1.5'; NUMERIC '-0.000000001'; NUMERIC '12345.678'; NUMERIC '0'
        """
    ),
    "s": items(
        r"""
        ''; 'a'; 'abc'; 'ABC abc'; 'a,b,,c'; '12'; ' x '; 'Straße'; '日本語'; '1.5'; '2024-02-29';
        'true'; r'a.c'; '[1, 2]'; 'é'; CAST(NULL AS STRING)
        """
    ),
    "y": items(
        r"""
        b''; b'abc'; b'\x00\xff'; b'a,b'; CAST(NULL AS BYTES)
        """
    ),
    "b": items(r"""TRUE; FALSE; CAST(NULL AS BOOL)"""),
    "d": items(
        r"""
        DATE '2024-02-29'; DATE '1999-12-31'; DATE '2020-01-01'; DATE '1970-01-01'
        """
    ),
    "t": items(
        r"""
        TIMESTAMP '2024-02-29 12:34:56.789012345+00'; TIMESTAMP '1970-01-01 00:00:00+00';
        TIMESTAMP '2020-03-08 10:30:00+00'; TIMESTAMP '2021-11-07 01:30:00 America/New_York'
        """
    ),
    "j": items(
        r"""
        JSON '1'; JSON 'null'; JSON '"x"'; JSON 'true'; JSON '[1, "a", null]';
        JSON '{"a": 1, "b": [true, {"c": "d"}]}'; JSON '{}'; JSON '2.50'
        """
    ),
    "v": items(
        r"""
        INTERVAL 1 MONTH; INTERVAL -3 DAY; INTERVAL '1:30' HOUR TO MINUTE; INTERVAL 5 SECOND
        """
    ),
    "u": items(r"""CAST('00112233-4455-6677-8899-aabbccddeeff' AS UUID)"""),
    "l": items(
        r"""
        [1, 2, 3]; ARRAY<INT64>[]; [5, NULL, -1]; CAST(NULL AS ARRAY<INT64>)
        """
    ),
    "w": items(r"""['a', 'b']; ['b', NULL, 'a', 'a']; ARRAY<STRING>[]"""),
    "x": items(r"""[1.5, 2.0]; [0.5, -1.0]; [3.0, 4.0]"""),
    "e": items(r"""[NUMERIC '1.5', NUMERIC '-2']; CAST(NULL AS ARRAY<NUMERIC>)"""),
    "h": items(r"""[DATE '2020-01-31', NULL]; [DATE '2024-02-29']; ARRAY<DATE>[]"""),
    "m": items(r"""[JSON '1', JSON 'null', NULL]; [JSON '{"a": [1]}']"""),
    "q": items(r"""[b'a', b'\xff']; [b'', NULL, b'a']; ARRAY<BYTES>[]"""),
}

LIMITS = {
    "i": items(r"""9223372036854775807; -9223372036854775808; 2147483648"""),
    "f": items(
        r"""
        1.7976931348623157e308; 5e-324; CAST('nan' AS FLOAT64); CAST('-inf' AS FLOAT64); -0.0
        """
    ),
    "g": items(r"""CAST(3.4028234e38 AS FLOAT32); CAST('nan' AS FLOAT32)"""),
    "n": items(r"""NUMERIC '99999999999999999999999999999.999999999'; NUMERIC '1e-9'"""),
    "s": items(
        r"""
        '\x00'; '%_'; '\U0001f600x'; 'a\nb'; '\u0301'
        """
    ),
    "y": items(r"""b'\xf0\x9f\x98\x80'"""),
    "d": items(r"""DATE '0001-01-01'; DATE '9999-12-31'"""),
    "t": items(
        r"""
        TIMESTAMP '0001-01-01 00:00:00+00'; TIMESTAMP '9999-12-31 23:59:59.999999999+00'
        """
    ),
    "j": items(r"""JSON '18446744073709551615'; JSON '1e400'; JSON '"\\u0041\\n"'"""),
    "v": items(r"""INTERVAL 10000 YEAR; INTERVAL '1-2 3 4:5:6.789' YEAR TO SECOND"""),
}
