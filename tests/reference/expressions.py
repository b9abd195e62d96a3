"""Random expressions of Spanner's operators and functions, with types that fit.

In a template ``<i>`` stands for an expression of the type ``i``; the columns and literals
are those of ``leaves.py``.
"""

from __future__ import annotations

import random
import re

from reference.leaves import COLUMNS, LIMITS, LITERALS
from reference.rarer_templates import RARER, items

KINDS = {
    "i": "INT64",
    "f": "FLOAT64",
    "g": "FLOAT32",
    "n": "NUMERIC",
    "s": "STRING",
    "y": "BYTES",
    "b": "BOOL",
    "d": "DATE",
    "t": "TIMESTAMP",
    "j": "JSON",
    "v": "INTERVAL",
    "u": "UUID",
    "l": "ARRAY<INT64>",
    "w": "ARRAY<STRING>",
    "x": "ARRAY<FLOAT64>",
    "e": "ARRAY<NUMERIC>",
    "h": "ARRAY<DATE>",
    "m": "ARRAY<JSON>",
    "q": "ARRAY<BYTES>",
}
HOLE = re.compile(r"<(\w)>")
EDGES = 0.15
"""How often a literal is an edge of its type; more of them, and most expressions overflow."""
LEAF = 0.3


TEMPLATES = {
    "i": items(
        r"""
        <i> + <i>; <i> - <i>; <i> * <i>; -(<i>); DIV(<i>, <i>); MOD(<i>, <i>); <i> & <i>;
        <i> | <i>; <i> ^ <i>; ~<i>; <i> << 3; <i> >> 2; <i> << <i>; ABS(<i>); SIGN(<i>);
        BIT_COUNT(<i>); BIT_COUNT(<y>); SAFE_ADD(<i>, <i>);
        SAFE_SUBTRACT(<i>, <i>); SAFE_MULTIPLY(<i>, <i>); SAFE_NEGATE(<i>);
        GREATEST(<i>, <i>, <i>); LEAST(<i>, <i>); LENGTH(<s>); LENGTH(<y>); BYTE_LENGTH(<s>);
        CHAR_LENGTH(<s>); STRPOS(<s>, <s>); OCTET_LENGTH(<s>); CHARACTER_LENGTH(<s>);
        STRPOS(<y>, <y>); CAST(<f> AS INT64); CAST(<n> AS INT64); CAST(<s> AS INT64);
        CAST(<b> AS INT64); SAFE_CAST(<s> AS INT64); SAFE_CAST(<f> AS INT64); CAST(<g> AS INT64);
        UNIX_SECONDS(<t>); UNIX_MILLIS(<t>); UNIX_MICROS(<t>); UNIX_DATE(<d>);
        EXTRACT(YEAR FROM <d>); EXTRACT(DAYOFWEEK FROM <d>); EXTRACT(WEEK FROM <d>);
        EXTRACT(ISOWEEK FROM <d>); EXTRACT(ISOYEAR FROM <d>); EXTRACT(QUARTER FROM <d>);
        EXTRACT(DAYOFYEAR FROM <d>); EXTRACT(HOUR FROM <t>);
        EXTRACT(NANOSECOND FROM <t>); EXTRACT(MILLISECOND FROM <t>);
        EXTRACT(DAY FROM <t> AT TIME ZONE 'Asia/Tokyo'); EXTRACT(MINUTE FROM <t>);
        EXTRACT(MONTH FROM <v>); EXTRACT(DAY FROM <v>); EXTRACT(SECOND FROM <v>);
        DATE_DIFF(<d>, <d>, DAY); DATE_DIFF(<d>, <d>, MONTH); DATE_DIFF(<d>, <d>, WEEK);
        DATE_DIFF(<d>, <d>, ISOYEAR); DATE_DIFF(<d>, <d>, QUARTER);
        TIMESTAMP_DIFF(<t>, <t>, SECOND); TIMESTAMP_DIFF(<t>, <t>, HOUR);
        TIMESTAMP_DIFF(<t>, <t>, MILLISECOND); TIMESTAMP_DIFF(<t>, <t>, DAY); ARRAY_LENGTH(<l>);
        ARRAY_LENGTH(<w>); <l>[SAFE_OFFSET(<i>)]; <l>[OFFSET(0)]; <l>[ORDINAL(1)];
        <l>[SAFE_ORDINAL(<i>)]; ARRAY_FIRST(<l>); ARRAY_LAST(<l>); ARRAY_MIN(<l>); ARRAY_MAX(<l>);
        FARM_FINGERPRINT(<s>); FARM_FINGERPRINT(<y>); IF(<b>, <i>, <i>); COALESCE(<i>, <i>);
        IFNULL(<i>, <i>); NULLIF(<i>, <i>); CASE <i> WHEN <i> THEN <i> ELSE <i> END;
        CASE WHEN <b> THEN <i> WHEN <b> THEN <i> END; CASE <s> WHEN <s> THEN <i> END; INT64(<j>);
        LAX_INT64(<j>); SAFE.INT64(<j>); (SELECT SUM(e) FROM UNNEST(<l>) AS e);
        (SELECT COUNT(*) FROM UNNEST(<w>) AS e); (SELECT COUNT(DISTINCT e) FROM UNNEST(<l>) AS e);
        (SELECT MAX(e) FROM UNNEST(<l>) AS e); (SELECT BIT_XOR(e) FROM UNNEST(<l>) AS e);
        (SELECT BIT_AND(e) FROM UNNEST(<l>) AS e);
        (SELECT COUNTIF(e > <i>) FROM UNNEST(<l>) AS e);
        WITH(a AS <i>, b AS a + 1, a * b); NET.IPV4_TO_INT64(NET.SAFE_IP_FROM_STRING('10.0.0.7'));
        STRUCT(<i> AS a, <s> AS b).a; TO_CODE_POINTS(<s>)[SAFE_OFFSET(<i>)]; SAFE.LENGTH(<s>);
        DOT_PRODUCT([1, 2], [3, 4])
        """
    ),
    "f": items(
        r"""
        <f> + <f>; <f> - <f>; <f> * <f>; <f> / <f>; -<f>; <i> / <i>; <f> + <i>; ABS(<f>);
        SIGN(<f>); SQRT(ABS(<f>)); POW(<f>, 2); POWER(<f>, <f>); EXP(<f>); LN(ABS(<f>));
        LOG(ABS(<f>)); LOG(ABS(<f>), 2); LOG10(ABS(<f>)); ROUND(<f>); ROUND(<f>, 1); TRUNC(<f>);
        TRUNC(<f>, <i>); CEIL(<f>); FLOOR(<f>); CEILING(<f>); ROUND(<f>, -1);
        IEEE_DIVIDE(<f>, <f>); SAFE_DIVIDE(<f>, <f>); SIN(<f>); COS(<f>); TAN(<f>); ASIN(<f>);
        ACOS(<f>); ATAN(<f>); ATAN2(<f>, <f>); SINH(<f>); COSH(<f>); TANH(<f>); ASINH(<f>);
        ACOSH(<f>); ATANH(<f>); SAFE.SQRT(<f>); SAFE.LN(<f>); SAFE.ACOS(<f>); SAFE.EXP(<f>);
        CAST(<i> AS FLOAT64); CAST(<n> AS FLOAT64); CAST(<g> AS FLOAT64); CAST(<s> AS FLOAT64);
        SAFE_CAST(<s> AS FLOAT64); GREATEST(<f>, <f>); LEAST(<f>, <f>, <i>); IF(<b>, <f>, <f>);
        COALESCE(<f>, <f>); NULLIF(<f>, <f>); IFNULL(<f>, <i>); FLOAT64(<j>); LAX_FLOAT64(<j>);
        SAFE.FLOAT64(<j>); <g> + <f>; <g> * <f>; SAFE_ADD(<f>, <f>); SAFE_MULTIPLY(<f>, <f>);
        SAFE_SUBTRACT(<f>, <f>); (SELECT AVG(e) FROM UNNEST(<l>) AS e);
        (SELECT STDDEV(e) FROM UNNEST(<x>) AS e); (SELECT VARIANCE(e) FROM UNNEST(<x>) AS e);
        (SELECT SUM(e) FROM UNNEST(<x>) AS e); <x>[SAFE_OFFSET(0)];
        EUCLIDEAN_DISTANCE([1.0, 2.0], [3.5, 4.0]); COSINE_DISTANCE([1.0, 2.0], [3.5, 4.0]);
        DOT_PRODUCT([1.0, 2.0], [3.5, 4.0])
        """
    ),
    "g": items(
        r"""
        <g> + <g>; <g> * <g>; -<g>; CAST(<f> AS FLOAT32); CAST(<i> AS FLOAT32); ABS(<g>);
        COALESCE(<g>, <g>); GREATEST(<g>, <g>); IF(<b>, <g>, <g>); CAST(<n> AS FLOAT32)
        """
    ),
    "n": items(
        r"""
        <n> + <n>; <n> - <n>; <n> * <n>; <n> / <n>; -<n>; <n> + <i>; <i> * <n>; ABS(<n>);
        SIGN(<n>); ROUND(<n>); ROUND(<n>, 2); TRUNC(<n>, 1); CEIL(<n>); FLOOR(<n>); DIV(<n>, <n>);
        MOD(<n>, <n>); POW(<n>, 2); SQRT(ABS(<n>)); CAST(<i> AS NUMERIC); CAST(<f> AS NUMERIC);
        CAST(<s> AS NUMERIC); SAFE_CAST(<s> AS NUMERIC); SAFE_DIVIDE(<n>, <n>);
        SAFE_MULTIPLY(<n>, <n>); GREATEST(<n>, <n>); COALESCE(<n>, <i>); IF(<b>, <n>, <n>);
        NULLIF(<n>, <n>); LN(ABS(<n>)); EXP(<n>); LOG10(ABS(<n>)); ROUND(<n>, <i>);
        (SELECT SUM(CAST(e AS NUMERIC)) FROM UNNEST(<l>) AS e);
        (SELECT AVG(CAST(e AS NUMERIC)) FROM UNNEST(<l>) AS e)
        """
    ),
    "s": items(
        r"""
        <s> || <s>; CONCAT(<s>, <s>, <s>); SUBSTR(<s>, <i>); SUBSTR(<s>, <i>, 2);
        SUBSTRING(<s>, 1, <i>); UPPER(<s>); LOWER(<s>); REVERSE(<s>);
        REPEAT(<s>, 3); TRIM(<s>); TRIM(<s>, <s>); LTRIM(<s>); RTRIM(<s>); LTRIM(<s>, <s>);
        RTRIM(<s>, <s>); LPAD(<s>, 5); LPAD(<s>, 7, <s>); RPAD(<s>, 4); RPAD(<s>, <i>, <s>);
        REPLACE(<s>, <s>, <s>); REGEXP_REPLACE(<s>, '[a-c]', '<\\0>');
        REGEXP_EXTRACT(<s>, '(.)b');
        REGEXP_EXTRACT(<s>, 'a|b'); REGEXP_REPLACE(<s>, r'\d', <s>);
        REGEXP_REPLACE(<s>, '', '-'); SOUNDEX(<s>);         CAST(<i> AS STRING);
        CAST(<f> AS STRING); CAST(<n> AS STRING);
        CAST(<b> AS STRING); CAST(<d> AS STRING); CAST(<t> AS STRING); CAST(<y> AS STRING);
        CAST(<g> AS STRING); CAST(<v> AS STRING); CAST(<u> AS STRING); SAFE_CAST(<y> AS STRING);
        STRING(<t>); STRING(<t>, 'Europe/Berlin'); STRING(<j>); LAX_STRING(<j>); TO_HEX(<y>);
        TO_BASE64(<y>); TO_BASE32(<y>); SAFE_CONVERT_BYTES_TO_STRING(<y>);
        CODE_POINTS_TO_STRING([97, 98, <i>]); ARRAY_TO_STRING(<w>, '-');
        ARRAY_TO_STRING(<w>, ',', 'none'); <w>[SAFE_OFFSET(<i>)]; SPLIT(<s>, ',')[SAFE_OFFSET(1)];
        FORMAT('%d', <i>); FORMAT('%5d|%-5d|%05d', <i>, <i>, <i>);
        FORMAT('%x|%X|%o', <i>, <i>, <i>); FORMAT('%s|%10s|%-4s', <s>, <s>, <s>);
        FORMAT('%f', <f>); FORMAT('%.2f', <f>); FORMAT('%e', <f>); FORMAT('%g', <f>);
        FORMAT('%.3g', <f>); FORMAT('%t', <d>); FORMAT('%T', <s>); FORMAT('%t', <l>);
        FORMAT('%T', <w>); FORMAT('%T', <t>); FORMAT('%T', <y>); FORMAT('%t', <n>);
        FORMAT('%T', <f>); FORMAT('%t', <f>); FORMAT('%+d', <i>); FORMAT("%'d", <i>);
        FORMAT('%.3f', <n>); FORMAT('%T', <j>); FORMAT('%T', STRUCT(<i>, <s>));
        FORMAT('%t', STRUCT(<b>, <d>)); FORMAT('%%%s', <s>); FORMAT('%p', <j>); FORMAT('%P', <j>);
        FORMAT('%T', <v>); FORMAT('%i', <i>); FORMAT_DATE('%Y-%m-%d', <d>);
        FORMAT_DATE('%A %B %e', <d>); FORMAT_DATE('%j %U %V %G', <d>); FORMAT_DATE('%x', <d>);
        FORMAT_DATE('%y%b%Q', <d>); FORMAT_DATE('%D', <d>); FORMAT_TIMESTAMP('%F %T', <t>);
        FORMAT_TIMESTAMP('%c', <t>, 'UTC');
        FORMAT_TIMESTAMP('%E3S %I %p %Z', <t>, 'Asia/Kolkata');
        FORMAT_TIMESTAMP('%s %z', <t>); FORMAT_TIMESTAMP('%E*S', <t>);
        FORMAT_TIMESTAMP('%R %Ez', <t>, '+05:30'); JSON_VALUE(<j>, '$.a'); JSON_VALUE(<j>);
        JSON_VALUE(<j>, '$.b[1].c'); JSON_VALUE(<s>, '$[0]'); JSON_QUERY(<s>, '$');
        TO_JSON_STRING(<j>);                 JSON_TYPE(<j>);         GREATEST(<s>, <s>);
        LEAST(<s>, <s>); COALESCE(<s>, <s>); IF(<b>, <s>, <s>);
        IFNULL(<s>, <s>); NULLIF(<s>, <s>); CASE WHEN <b> THEN <s> ELSE <s> END;
        NET.HOST('https://user@Example.com:80/x');
        NET.IP_TO_STRING(NET.SAFE_IP_FROM_STRING('::1'));
        (SELECT STRING_AGG(e, '+' ORDER BY e) FROM UNNEST(<w>) AS e);
        STRUCT(<i> AS a, <s> AS b).b;
        (SELECT MIN(e) FROM UNNEST(<w>) AS e); ARRAY_FIRST(<w>); SAFE.SUBSTR(<s>, <i>, <i>)
        """
    ),
    "y": items(
        r"""
        <y> || <y>; CAST(<s> AS BYTES); SUBSTR(<y>, <i>, 2); REVERSE(<y>); REPEAT(<y>, 2);
        MD5(<s>); SHA1(<y>); SHA256(<s>); SHA512(<y>); FROM_HEX('00ff0a'); FROM_HEX(TO_HEX(<y>));
        FROM_BASE64(TO_BASE64(<y>)); FROM_BASE32(TO_BASE32(<y>)); LPAD(<y>, 4); TRIM(<y>, b'a');
        REPLACE(<y>, <y>, b'z'); CODE_POINTS_TO_BYTES([65, 98, 255]); REGEXP_EXTRACT(<y>, b'b.');
        REGEXP_REPLACE(<y>, b'[ab]', b''); UPPER(<y>); LOWER(<y>); COALESCE(<y>, <y>); <y> & <y>;
        ~<y>; <y> << 3; NET.IP_FROM_STRING('1.2.3.4'); NET.IP_NET_MASK(4, 20);
        NET.IPV4_FROM_INT64(<i>); IF(<b>, <y>, <y>); RPAD(<y>, 3, b'-'); SAFE.FROM_HEX(<s>);
        CAST(<u> AS BYTES)
        """
    ),
    "b": items(
        r"""
        <i> = <i>; <f> < <f>; <n> >= <n>; <s> <> <s>; <y> < <y>; <d> <= <d>; <t> > <t>; <b> = <b>;
        <i> < <f>; <n> = <i>; <v> < <v>; <u> = <u>; <g> = <f>; <f> != <f>; <b> AND <b>;
        <b> OR <b>;
        NOT <b>; <i> IS NULL; <s> IS NOT NULL; <j> IS NULL; <b> IS TRUE; <b> IS NOT FALSE;
        <b> IS NOT TRUE; <b> IS FALSE; <l> IS NULL; <i> IN (<i>, <i>, <i>); <i> NOT IN (<i>, <i>);
        <s> IN (<s>, <s>); <i> IN UNNEST(<l>); <s> NOT IN UNNEST(<w>); <i> BETWEEN <i> AND <i>;
        <s> NOT BETWEEN <s> AND <s>; <s> LIKE <s>; <s> LIKE '%b%'; <s> NOT LIKE 'a_c';
        <y> LIKE b'a%'; <d> IN (<d>, <d>); STARTS_WITH(<s>, <s>); ENDS_WITH(<s>, <s>);
        STARTS_WITH(<y>, <y>); REGEXP_CONTAINS(<s>, '^a|c$'); REGEXP_CONTAINS(<s>, r'\p{Lu}');
        REGEXP_CONTAINS(<y>, b'a'); REGEXP_CONTAINS(<s>, '(?i)B'); IS_NAN(<f>); IS_INF(<f>);
        CAST(<s> AS BOOL); CAST(<i> AS BOOL); SAFE_CAST(<s> AS BOOL); BOOL(<j>); LAX_BOOL(<j>);
        SAFE.BOOL(<j>); EXISTS(SELECT 1 FROM UNNEST(<l>) AS e WHERE e > <i>);
        <i> = (SELECT MAX(e) FROM UNNEST(<l>) e); <i> IN (SELECT e FROM UNNEST(<l>) AS e);
        ARRAY_INCLUDES(<l>, <i>); ARRAY_IS_DISTINCT(<l>); ARRAY_INCLUDES_ANY(<w>, <w>);
        ARRAY_INCLUDES_ALL(<l>, <l>); ARRAY_INCLUDES(<l>, e -> e > <i>);
        STRUCT(<i>, <s>) = STRUCT(<i>, <s>); (<i>, <s>) IN ((<i>, <s>), (1, 'a'));
        IF(<b>, <b>, <b>); COALESCE(<b>, <b>); (SELECT LOGICAL_AND(e > 0) FROM UNNEST(<l>) AS e);
        (SELECT LOGICAL_OR(e > 1) FROM UNNEST(<l>) AS e);         JSON_CONTAINS(<j>, <j>);
        <l> = <l>
        """
    ),
    "d": items(
        r"""
        DATE_ADD(<d>, INTERVAL <i> DAY); DATE_SUB(<d>, INTERVAL 1 MONTH);
        DATE_ADD(<d>, INTERVAL 1 YEAR); DATE_ADD(<d>, INTERVAL 2 WEEK);
        DATE_SUB(<d>, INTERVAL <i> QUARTER); DATE_TRUNC(<d>, MONTH); DATE_TRUNC(<d>, WEEK);
        DATE_TRUNC(<d>, ISOYEAR); DATE_TRUNC(<d>, QUARTER);
        DATE_TRUNC(<d>, YEAR); DATE(2024, 2, 29); DATE(<t>); DATE(<t>, 'Asia/Tokyo');
        DATE_FROM_UNIX_DATE(<i>); PARSE_DATE('%Y-%m-%d', '2024-03-01');
        PARSE_DATE('%e %b %Y', ' 7 Mar 1999'); CAST(<t> AS DATE); CAST(<s> AS DATE);
        SAFE_CAST(<s> AS DATE); EXTRACT(DATE FROM <t>); EXTRACT(DATE FROM <t> AT TIME ZONE '+08');
        GREATEST(<d>, <d>); COALESCE(<d>, <d>); IF(<b>, <d>, <d>); NULLIF(<d>, <d>);
        SAFE.PARSE_DATE('%Y-%m-%d', <s>)
        """
    ),
    "t": items(
        r"""
        TIMESTAMP_ADD(<t>, INTERVAL <i> SECOND); TIMESTAMP_SUB(<t>, INTERVAL <i> HOUR);
        TIMESTAMP_ADD(<t>, INTERVAL <i> MICROSECOND); TIMESTAMP_ADD(<t>, INTERVAL 1 DAY);
        TIMESTAMP_TRUNC(<t>, DAY); TIMESTAMP_TRUNC(<t>, HOUR, 'Asia/Kolkata');
        TIMESTAMP_TRUNC(<t>, MILLISECOND); TIMESTAMP_TRUNC(<t>, MONTH);
        TIMESTAMP_TRUNC(<t>, ISOWEEK, 'UTC'); TIMESTAMP_TRUNC(<t>, YEAR); TIMESTAMP_SECONDS(<i>);
        TIMESTAMP_MILLIS(<i>); TIMESTAMP_MICROS(<i>); TIMESTAMP(<d>);
        TIMESTAMP(<d>, 'Asia/Tokyo');
        TIMESTAMP('2024-01-01 10:00:00'); CAST(<d> AS TIMESTAMP);
        TIMESTAMP('2024-06-01T10:00:00.25Z'); CAST('2024-1-2 3:4:5+6' AS TIMESTAMP); <t> + <v>;
        PARSE_TIMESTAMP('%Y-%m-%d %H:%M:%S', '2024-05-06 07:08:09'); SAFE_CAST(<s> AS TIMESTAMP);
        PARSE_TIMESTAMP('%s', '1700000000');
        PARSE_TIMESTAMP('%Y-%m-%d %H:%M:%S %z', '2024-05-06 07:08:09 +0200'); COALESCE(<t>, <t>);
        GREATEST(<t>, <t>); IF(<b>, <t>, <t>); <t> - <v>
        """
    ),
    "j": items(
        r"""
        TO_JSON(<i>); TO_JSON(<s>); TO_JSON(<f>); TO_JSON(<l>); TO_JSON(<d>); TO_JSON(<t>);
        TO_JSON(STRUCT(<i> AS a, <w> AS b)); PARSE_JSON('{"a": [1, 2.50, "x"]}'); TO_JSON(<n>);
        JSON_QUERY(<j>, '$.b'); JSON_QUERY(<j>, '$[0]'); <j>.a; <j>[0]; <j>['b']; <j>.b[1].c;
        JSON_ARRAY(<i>, <s>, <b>); JSON_ARRAY(); JSON_OBJECT('a', <i>, 'b', <s>); JSON_OBJECT();
        JSON_SET(<j>, '$.a', <i>); JSON_SET(<j>, '$.z.y', <s>); JSON_SET(<j>, '$[5]', <i>);
        JSON_REMOVE(<j>, '$.a'); JSON_REMOVE(<j>, '$[0]'); JSON_STRIP_NULLS(<j>);
        JSON_ARRAY_APPEND(<j>, '$', <i>); JSON_ARRAY_INSERT(<j>, '$[1]', <s>); COALESCE(<j>, <j>);
        SAFE_TO_JSON(<f>); SAFE.PARSE_JSON(<s>); IF(<b>, <j>, <j>); TO_JSON(<j>); TO_JSON(<y>);
        JSON_OBJECT(['a', 'b'], [<i>, <i>]); PARSE_JSON(<s>)
        """
    ),
    "v": items(
        r"""
        MAKE_INTERVAL(1, 2, 3, 4, 5, 6); MAKE_INTERVAL(year => <i>); <v> + <v>; <v> - <v>; -<v>;
        <v> * 2; <v> / 3; JUSTIFY_HOURS(<v>); JUSTIFY_DAYS(<v>); JUSTIFY_INTERVAL(<v>);
        INTERVAL <i> HOUR; INTERVAL <i> DAY; CAST('1-2 3 4:5:6' AS INTERVAL); <t> - <t>;
        COALESCE(<v>, <v>); CAST('P1Y2M3DT4H' AS INTERVAL); <d> - <d>
        """
    ),
    "u": items(
        r"""
        COALESCE(<u>, <u>); IF(<b>, <u>, <u>); CAST(CAST(<u> AS STRING) AS UUID);
        GREATEST(<u>, <u>)
        """
    ),
    "l": items(
        r"""
        [<i>, <i>]; ARRAY_CONCAT(<l>, <l>); ARRAY_REVERSE(<l>); <l> || <l>; ARRAY<INT64>[<i>];
        GENERATE_ARRAY(1, 5, 2); GENERATE_ARRAY(3, 1, -1); TO_CODE_POINTS(<s>);
        TO_CODE_POINTS(<y>); ARRAY(SELECT e FROM UNNEST(<l>) AS e ORDER BY e);
        ARRAY(SELECT e + 1 FROM UNNEST(<l>) AS e WITH OFFSET o ORDER BY o);
        ARRAY_SLICE(<l>, 0, 1);
        ARRAY_FILTER(<l>, e -> e > <i>); ARRAY_TRANSFORM(<l>, (e, o) -> e + o);
        ARRAY(SELECT DISTINCT e FROM UNNEST(<l>) AS e ORDER BY e DESC); COALESCE(<l>, <l>);
        IF(<b>, <l>, <l>); INT64_ARRAY(JSON '[1, 2]');
        ARRAY(SELECT LENGTH(e) FROM UNNEST(<w>) AS e WITH OFFSET o ORDER BY o);
        (SELECT ARRAY_AGG(e ORDER BY e LIMIT 2) FROM UNNEST(<l>) AS e);
        (SELECT ARRAY_AGG(e IGNORE NULLS ORDER BY e DESC) FROM UNNEST(<l>) AS e)
        """
    ),
    "w": items(
        r"""
        SPLIT(<s>); SPLIT(<s>, ''); SPLIT(<s>, <s>); [<s>, <s>]; ARRAY_CONCAT(<w>, <w>);
        REGEXP_EXTRACT_ALL(<s>, '.'); REGEXP_EXTRACT_ALL(<s>, '(a)|b'); JSON_VALUE_ARRAY(<j>);
        JSON_KEYS(<j>); STRING_ARRAY(JSON '["a", "b"]'); ARRAY_REVERSE(<w>);
        JSON_VALUE_ARRAY(<j>, '$.b');
        ARRAY(SELECT UPPER(e) FROM UNNEST(<w>) AS e WITH OFFSET o ORDER BY o);
        ARRAY_FILTER(<w>, e -> e LIKE 'a%');
        (SELECT ARRAY_AGG(DISTINCT e ORDER BY e) FROM UNNEST(<w>) AS e)
        """
    ),
    "x": items(
        r"""
        [<f>, <f>]; ARRAY_CONCAT(<x>, [<f>]); GENERATE_ARRAY(0.5, 2.5); ARRAY_REVERSE(<x>);
        ARRAY_TRANSFORM(<l>, e -> e / 2); FLOAT64_ARRAY(JSON '[1, 2.5]')
        """
    ),
}


EVERY_TEMPLATE = {kind: (*TEMPLATES.get(kind, ()), *RARER.get(kind, ())) for kind in KINDS}


def make_expression(choice: random.Random, kind: str, depth: int, columns: bool = True) -> str:
    """An expression of a type. Without ``columns`` it is constant."""
    if depth == 0 or choice.random() < LEAF or not EVERY_TEMPLATE[kind]:
        return make_leaf(choice, kind, columns)
    template = choice.choice(EVERY_TEMPLATE[kind])
    filled = HOLE.sub(lambda hole: make_expression(choice, hole[1], depth - 1, columns), template)
    return f"({filled})"


def make_leaf(choice: random.Random, kind: str, columns: bool) -> str:
    """A column or a literal."""
    if columns and kind in COLUMNS and choice.random() < 0.6:
        return choice.choice(COLUMNS[kind])
    if kind in LIMITS and choice.random() < EDGES:
        return choice.choice(LIMITS[kind])
    return choice.choice(LITERALS[kind])
