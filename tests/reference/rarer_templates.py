"""Templates of the functions and forms of Spanner that are met less often, by their types."""

from __future__ import annotations


def items(text: str) -> tuple[str, ...]:
    """Pieces of SQL that stand between semicolons, over any number of lines."""
    return tuple(" ".join(each.split()) for each in text.split(";"))


RARER = {
    "i": items(
        r"""
        +<i>; CAST(CAST(<i> AS STRING) AS INT64); EXTRACT(YEAR FROM <t>);
        EXTRACT(QUARTER FROM <t>); EXTRACT(DAYOFYEAR FROM <t> AT TIME ZONE 'Europe/Berlin');
        EXTRACT(ISOWEEK FROM <t>); EXTRACT(ISOYEAR FROM <t> AT TIME ZONE 'UTC');
        EXTRACT(WEEK FROM <t>); EXTRACT(DAYOFWEEK FROM <t> AT TIME ZONE '+09');
        EXTRACT(MICROSECOND FROM <t>); EXTRACT(YEAR FROM <v>); EXTRACT(HOUR FROM <v>);
        EXTRACT(MINUTE FROM <v>); EXTRACT(NANOSECOND FROM <v>); DATE_DIFF(<d>, <d>, YEAR);
        DATE_DIFF(<d>, <d>, ISOWEEK); TIMESTAMP_DIFF(<t>, <t>, MICROSECOND);
        TIMESTAMP_DIFF(<t>, <t>, MINUTE); ARRAY_LENGTH(<x>); ARRAY_LENGTH(<e>); ARRAY_LENGTH(<h>);
        ARRAY_LENGTH(<m>); ARRAY_MAX(TO_CODE_POINTS(<s>)); <l>[ORDINAL(<i>)]; <l>[OFFSET(<i>)];
        SAFE.DIV(<i>, <i>); SAFE.MOD(<i>, <i>); SAFE.UNIX_MICROS(<t>); LEAST(<i>, <i>, <i>);
        LENGTH(TO_HEX(<y>)); CAST(CAST(<b> AS STRING) = 'true' AS INT64); IF(<b>, <i>, NULL);
        COALESCE(NULL, <i>, <i>); CASE <d> WHEN <d> THEN <i> WHEN <d> THEN <i> ELSE <i> END;
        NULLIF(<i>, ABS(<i>)); CASE <n> WHEN <n> THEN <i> ELSE <i> END;
        CASE WHEN <b> AND <b> THEN <i> ELSE <i> END;
        (SELECT SUM(DISTINCT e) FROM UNNEST(<l>) AS e); (SELECT MIN(e) FROM UNNEST(<l>) AS e);
        (SELECT BIT_OR(e) FROM UNNEST(<l>) AS e); (SELECT COUNT(e) FROM UNNEST(<w>) AS e);
        (SELECT MAX(o) FROM UNNEST(<w>) AS e WITH OFFSET o WHERE e > <s>);
        (SELECT e FROM UNNEST(<l>) AS e WITH OFFSET o ORDER BY e DESC, o LIMIT 1);
        (SELECT COUNT(*) FROM UNNEST(<l>) AS e JOIN UNNEST(<l>) AS f ON e = f);
        (SELECT COUNT(*) FROM UNNEST(<w>) AS e LEFT JOIN UNNEST(<w>) AS f ON e < f);
        (SELECT COUNT(*) FROM (SELECT e FROM UNNEST(<l>) AS e EXCEPT DISTINCT SELECT <i>));
        (SELECT MAX(e HAVING MIN o) FROM UNNEST(<l>) AS e WITH OFFSET o); INT64(TO_JSON(<i>));
        LAX_INT64(TO_JSON(<f>)); LAX_INT64(TO_JSON(<s>));
        SAFE_CAST(JSON_VALUE(<j>, '$.a') AS INT64); STRUCT(<i>, <i> AS z).z;
        [STRUCT(<i> AS p, <s> AS q)][OFFSET(0)].p; BYTE_LENGTH(CAST(<s> AS BYTES));
        STRPOS(TO_BASE64(<y>), <s>); BIT_COUNT(<i> ^ <i>); <i> >> <i>; (<i> | <i>) & <i>;
        NET.IPV4_TO_INT64(NET.IP_TRUNC(NET.IP_FROM_STRING('10.1.2.3'), 12));
        ARRAY_LENGTH(REGEXP_EXTRACT_ALL(<s>, '[a-c]')); ARRAY_LENGTH(SPLIT(<s>, <s>));
        ARRAY_LENGTH(GENERATE_DATE_ARRAY(<d>, DATE '2020-03-01', INTERVAL 7 DAY))
        """
    ),
    "f": items(
        r"""
        +<f>; <n> + <f>; <f> / <i>; <i> * <f>; LOG(<f>, <f>); LEAST(<f>, <n>); CEIL(<i>);
        ROUND(<i>, -1); FLOOR(<f> / 3); POW(<i>, <i>); SAFE.POW(<f>, <f>); SAFE.LOG(<f>, <f>);
        ATAN2(<i>, <f>); COSINE_DISTANCE(<x>, <x>); EUCLIDEAN_DISTANCE(<x>, <x>);
        DOT_PRODUCT(<x>, <x>); DOT_PRODUCT(<l>, <l>); (SELECT AVG(DISTINCT e) FROM UNNEST(<x>) e);
        (SELECT STDDEV_SAMP(e) FROM UNNEST(<l>) AS e); (SELECT VAR_SAMP(e) FROM UNNEST(<x>) AS e);
        (SELECT MIN(e) FROM UNNEST(<x>) AS e); (SELECT MAX(e) FROM UNNEST(<x>) AS e);
        ARRAY_MIN(<x>); ARRAY_MAX(<x>); ARRAY_FIRST(<x>); CAST(CAST(<f> AS STRING) AS FLOAT64);
        SAFE_CAST(FORMAT('%.17g', <f>) AS FLOAT64); LAX_FLOAT64(TO_JSON(<f>)); IF(<b>, <i>, <f>);
        CASE WHEN <b> THEN <i> ELSE <f> END; COALESCE(<i>, <f>); GREATEST(<g>, <f>); <g> / <g>;
        SAFE_DIVIDE(<i>, <i>); SAFE_DIVIDE(<i>, <f>); IEEE_DIVIDE(<i>, <i>); SAFE_NEGATE(<f>);
        IEEE_DIVIDE(<n>, <f>); FLOAT64(TO_JSON(<i>)); <x>[SAFE_ORDINAL(<i>)]; SIGN(<f>) * <f>
        """
    ),
    "g": items(
        r"""
        -<g>; SIGN(<g>); LEAST(<g>, <g>); NULLIF(<g>, <g>); IFNULL(<g>, <g>); FLOAT32(<j>);
        CAST(<s> AS FLOAT32); SAFE_CAST(<s> AS FLOAT32); CASE WHEN <b> THEN <g> ELSE 1 END;
        SAFE_CAST(<f> AS FLOAT32); ARRAY<FLOAT32>[<g>, 1, 2.5][SAFE_OFFSET(<i>)];
        COALESCE(<g>, 1.5)
        """
    ),
    "n": items(
        r"""
        +<n>; <n> * <i>; <i> - <n>; <n> / <i>; SAFE_ADD(<n>, <n>); SAFE_SUBTRACT(<n>, <i>);
        SAFE_NEGATE(<n>); SAFE_DIVIDE(<n>, <i>); TRUNC(<n>); TRUNC(<n>, <i>); CEILING(<n>);
        LEAST(<n>, <i>); IFNULL(<n>, 1.25); GREATEST(<n>, 0.5); COALESCE(<n>, 2.5); <n> + 0;
        CASE WHEN <b> THEN <n> ELSE <i> END; DIV(<n>, <i>); MOD(<i>, <n>); MOD(<n>, 1.5);
        ARRAY_MIN(<e>); ARRAY_MAX(<e>); <e>[SAFE_OFFSET(<i>)]; ARRAY_LAST(<e>);
        (SELECT SUM(e) FROM UNNEST(<e>) AS e); (SELECT AVG(e) FROM UNNEST(<e>) AS e);
        (SELECT MAX(e) FROM UNNEST(<e>) AS e); CAST(FORMAT('%.3f', <n>) AS NUMERIC);
        CAST(CAST(<n> AS STRING) AS NUMERIC); SQRT(<n>); POW(<n>, 3); SAFE.LN(<n>); SAFE.SQRT(<n>)
        """
    ),
    "s": items(
        r"""
        NORMALIZE(<s>); SPLIT_SUBSTR(<s>, ',', <i>); SPLIT_SUBSTR(<s>, 'b', 1, <i>);
        ARRAY_TO_STRING(SPLIT(<s>, 'a'), <s>); ARRAY_TO_STRING(<w>, <s>, <s>);
        CAST(CAST(<s> AS BYTES) AS STRING); SUBSTR(<s>, <i>, <i>); REGEXP_EXTRACT(<s>, '[^a]+');
        REGEXP_EXTRACT(<s>, r'(\w)\b'); REGEXP_REPLACE(<s>, '^.', <s>);
        REGEXP_REPLACE(<s>, r'(\w)(\w)', r'\2\1'); REGEXP_REPLACE(<s>, '(?i)A|$', '.');
        REPLACE(<s>, 'a', <s>); TRIM(<s>, 'ab '); LPAD(<s>, <i>, <s>); RPAD(<s>, 6, 'xy');
        REPEAT(<s>, ABS(MOD(<i>, 5))); FORMAT('%t|%T', <b>, <b>); FORMAT('%t|%T', <v>, <j>);
        FORMAT('%t', <x>); FORMAT('%T', <x>); FORMAT('%T', <e>); FORMAT('%t', <h>);
        FORMAT('%T', <m>); FORMAT('%*d', 6, <i>); FORMAT('%.*f', 3, <f>); FORMAT('%-12s|', <s>);
        FORMAT('%10.3e|', <f>); FORMAT('%G', <f>); FORMAT('%t', STRUCT(<n>, <y>));
        FORMAT('%T', STRUCT(<f> AS a, <t> AS b)); FORMAT('%T', [STRUCT(<i> AS a)]);
        FORMAT('%08.2f', <n>); FORMAT('%+.1f|% d', <f>, <i>);
        FORMAT_DATE('%C %g %h %m %n %t %u %w %W', <d>); FORMAT_DATE('%E4Y/%d %%', <d>);
        FORMAT_DATE('%a, %d %b %Y', <d>); FORMAT_TIMESTAMP('%I:%M %p', <t>, 'UTC');
        FORMAT_TIMESTAMP('%a %j %U %W %V %u', <t>, 'Asia/Tokyo');
        FORMAT_TIMESTAMP('%E6S %I %r', <t>, 'America/New_York'); FORMAT_TIMESTAMP('%Q %G %g', <t>);
        JSON_VALUE(<s>); JSON_VALUE(<s>, '$.a'); JSON_QUERY(<s>, '$[1]');
        TO_JSON_STRING(TO_JSON(STRUCT(<i> AS a, <f> AS b)));
        TO_JSON_STRING(JSON_QUERY(<j>, '$.b')); LAX_STRING(TO_JSON(<n>)); LAX_STRING(TO_JSON(<f>));
        STRING(TO_JSON(<s>)); CAST(<i> AS STRING) || <s>; SAFE.REPEAT(<s>, <i>);
        CASE <b> WHEN TRUE THEN <s> WHEN FALSE THEN <s> ELSE <s> END; <w>[SAFE_ORDINAL(<i>)];
        IF(<s> < <s>, <s>, <s>); ARRAY_LAST(<w>); ARRAY_MIN(<w>); ARRAY_MAX(<w>);
        (SELECT MAX(e) FROM UNNEST(<w>) AS e WHERE e LIKE '%a%');
        (SELECT STRING_AGG(DISTINCT e, '') FROM UNNEST([<s>]) AS e);
        (SELECT STRING_AGG(e ORDER BY o DESC) FROM UNNEST(<w>) AS e WITH OFFSET o);
        (SELECT STRING_AGG(CAST(e AS STRING), ';
        ' ORDER BY e, o) FROM UNNEST(<l>) e WITH OFFSET o);
        (SELECT ANY_VALUE(e) FROM UNNEST([<s>]) AS e); CODE_POINTS_TO_STRING(TO_CODE_POINTS(<s>));
        NET.IP_TO_STRING(NET.IP_TRUNC(NET.IP_FROM_STRING('2001:db8::ff00:42'), 40)); NET.HOST(<s>);
        NET.HOST('//' || <s> || '/a'); TO_HEX(SHA256(<s>)); TO_HEX(SHA512(<y>))
        """
    ),
    "y": items(
        r"""
        CONCAT(<y>, <y>); SUBSTR(<y>, <i>); <y> | <y>; <y> ^ <y>; <y> >> 5; <y> << <i>;
        LTRIM(<y>, b'a'); RTRIM(<y>, <y>); LPAD(<y>, <i>, <y>); REPLACE(<y>, b'a', <y>);
        SPLIT(<y>, b',')[OFFSET(0)]; REGEXP_REPLACE(<y>, b'(b)', b'[\\\\1]');
        CODE_POINTS_TO_BYTES(TO_CODE_POINTS(<y>)); MD5(<y>); SHA1(<s>);
        NET.IP_TRUNC(NET.IP_FROM_STRING('1.2.3.4'), ABS(MOD(<i>, 33))); NULLIF(<y>, <y>);
        CASE WHEN <b> THEN <y> END; FROM_BASE64(TO_BASE64(CAST(<s> AS BYTES))); GREATEST(<y>, <y>);
        ARRAY_MAX(<q>); <q>[SAFE_OFFSET(<i>)]; (SELECT MIN(e) FROM UNNEST(<q>) AS e);
        LEAST(<y>, b'b'); ARRAY_TO_STRING(<q>, b'-'); ARRAY_TO_STRING(<q>, <y>, b'?');
        SAFE.FROM_BASE64(<s>); (SELECT STRING_AGG(e, b'+' ORDER BY e) FROM UNNEST(<q>) AS e);
        NET.SAFE_IP_FROM_STRING(<s>)
        """
    ),
    "b": items(
        r"""
        <i> < <n>; <n> <= <f>; <g> >= <i>; <g> = <g>; <d> = '2024-02-29'; <t> > '2020-01-01';
        <d> BETWEEN '2000-01-01' AND <d>; <v> = <v>; <v> BETWEEN <v> AND <v>; <u> IN (<u>, <u>);
        <n> IN (<n>, <i>); <f> IN (<f>, <i>, <n>); <i> IN (<n>, <f>); <i> IN UNNEST([<i>, <i>]);
        <f> IN UNNEST(<x>); <n> IN UNNEST(<e>); <d> IN UNNEST(<h>); <y> IN UNNEST(<q>);
        <t> IN (<t>, <t>); <b> IN (TRUE, <b>); <b> <> <b>; <b> IS NULL; <f> BETWEEN <i> AND <n>;
        <s> LIKE <s> || '%'; <y> LIKE <y>; REGEXP_CONTAINS(<s>, r'^\s*\w'); <w> IS NOT NULL;
        REGEXP_CONTAINS(<s>, r'[^\x00-\x7f]'); ENDS_WITH(<y>, <y>); SAFE.BOOL(TO_JSON(<b>));
        (<i>, <i>) = (<i>, <i>); (<i>, <s>, <b>) <> (1, 'a', TRUE); ARRAY_INCLUDES(<w>, <s>);
        STRUCT(<f> AS a) = STRUCT(<f>); (<d>, <n>) IN ((<d>, <n>), (DATE '2020-01-01', 1.5));
        ARRAY_INCLUDES_ANY(<l>, [<i>]); ARRAY_IS_DISTINCT(<w>); ARRAY_IS_DISTINCT(<x>);
        NOT EXISTS(SELECT 1 FROM UNNEST(<w>) AS e WHERE e = <s>); LAX_BOOL(TO_JSON(<i>));
        <s> IN (SELECT e FROM UNNEST(<w>) AS e); <s> NOT IN (SELECT e FROM UNNEST(<w>) AS e);
        <i> < (SELECT AVG(e) FROM UNNEST(<l>) AS e); JSON_CONTAINS(<j>, TO_JSON(<i>));
        (SELECT LOGICAL_AND(e) FROM UNNEST([<b>, <b>]) AS e); BOOL(TO_JSON(<b>)); NOT (<b> OR <b>);
        CASE WHEN <b> THEN <b> ELSE <b> END; NULLIF(<b>, <b>); (<b> AND <b>) IS NULL
        """
    ),
    "d": items(
        r"""
        DATE_ADD(<d>, INTERVAL 1 QUARTER); DATE_SUB(<d>, INTERVAL <i> WEEK);
        DATE_SUB(<d>, INTERVAL <i> YEAR); LEAST(<d>, <d>); DATE_TRUNC(<d>, DAY);
        DATE_TRUNC(<d>, ISOWEEK); DATE(<i>, 2, 28); DATE(2020, <i>, 1); DATE(<t>, '+05:30');
        PARSE_DATE('%Y %j', '2023 45'); PARSE_DATE('%U %Y', '7 2022');
        PARSE_DATE('%d/%m/%y', '31/12/68'); SAFE.PARSE_DATE('%m/%d/%y', <s>);
        SAFE.DATE(<i>, <i>, <i>); <h>[SAFE_OFFSET(<i>)]; ARRAY_MAX(<h>); ARRAY_MIN(<h>);
        (SELECT MIN(e) FROM UNNEST(<h>) AS e); CAST(CAST(<d> AS STRING) AS DATE);
        CASE WHEN <b> THEN <d> ELSE '2020-01-01' END; IFNULL(<d>, '2021-01-01');
        SAFE.DATE_ADD(<d>, INTERVAL <i> YEAR); SAFE_CAST(FORMAT_DATE('%F', <d>) AS DATE)
        """
    ),
    "t": items(
        r"""
        TIMESTAMP_ADD(<t>, INTERVAL <i> MILLISECOND); TIMESTAMP_SUB(<t>, INTERVAL <i> DAY);
        TIMESTAMP_ADD(<t>, INTERVAL <i> NANOSECOND); TIMESTAMP_SUB(<t>, INTERVAL <i> MINUTE);
        TIMESTAMP_TRUNC(<t>, QUARTER, 'UTC'); TIMESTAMP_TRUNC(<t>, WEEK, 'Asia/Tokyo');
        LEAST(<t>, <t>); TIMESTAMP_TRUNC(<t>, MINUTE); TIMESTAMP_TRUNC(<t>, SECOND);
        TIMESTAMP_TRUNC(<t>, MICROSECOND); TIMESTAMP_TRUNC(<t>, ISOYEAR);
        TIMESTAMP(CAST(<t> AS STRING)); <d> + <v>; <d> - <v>; <v> + <t>;
        CAST(STRING(<t>, 'Asia/Kolkata') AS TIMESTAMP); IFNULL(<t>, '2020-01-01 00:00:00');
        PARSE_TIMESTAMP('%H:%M %d.%m.%Y', '23:59 31.12.1999', 'Europe/Berlin');
        PARSE_TIMESTAMP('%c', FORMAT_TIMESTAMP('%c', <t>));
        TIMESTAMP(FORMAT_DATE('%F', <d>), 'UTC');
        PARSE_TIMESTAMP('%Y-%m-%d %H:%M:%E*S%Ez', FORMAT_TIMESTAMP('%Y-%m-%d %H:%M:%E*S%Ez', <t>));
        SAFE.TIMESTAMP(<s>); SAFE.TIMESTAMP_MICROS(<i>); CASE WHEN <b> THEN <t> END;
        (SELECT MAX(e) FROM UNNEST([<t>, <t>]) AS e); SAFE.PARSE_TIMESTAMP('%s', <s>)
        """
    ),
    "j": items(
        r"""
        TO_JSON(<b>); TO_JSON(<g>); TO_JSON(<v>); TO_JSON(<u>); TO_JSON(<w>); TO_JSON(<x>);
        TO_JSON(<e>); TO_JSON(<h>); TO_JSON(<m>); TO_JSON(<q>);
        TO_JSON(STRUCT(<b>, <n> AS x, STRUCT(<s> AS z) AS y));
        TO_JSON([STRUCT(<i> AS a, <l> AS b)]); TO_JSON(<i>, stringify_wide_numbers => TRUE);
        TO_JSON(<n>, stringify_wide_numbers => TRUE); PARSE_JSON(<s>, wide_number_mode => 'round');
        JSON_QUERY(<j>); JSON_QUERY(<j>, '$.b[1]'); <j>.b[<i>]; <j>[<s>]; <j>.`a`;
        SAFE.PARSE_JSON(<s>); JSON_ARRAY(<j>, <n>, <d>, <t>); JSON_ARRAY(<l>, <w>, <y>);
        JSON_OBJECT(<s>, <j>, 'x', <f>); JSON_OBJECT(<w>, [<i>, <i>]);
        JSON_OBJECT('a', STRUCT(<i> AS b), 'c', <l>); JSON_SET(<j>, '$.b[1].c', <f>);
        JSON_SET(<j>, '$', <s>); JSON_SET(<j>, '$[0]', <j>, '$[2]', <i>);
        JSON_SET(<j>, '$.a', <i>, create_if_missing => FALSE); JSON_SET(<j>, '$.n.m[1]', <b>);
        JSON_REMOVE(<j>, '$.b[0]', '$.a'); JSON_STRIP_NULLS(<j>, remove_empty => TRUE);
        JSON_STRIP_NULLS(<j>, include_arrays => FALSE); JSON_STRIP_NULLS(<j>, '$.b');
        JSON_ARRAY_APPEND(<j>, '$.b', <i>, '$', <s>);
        JSON_ARRAY_INSERT(<j>, '$[0]', <l>, '$[7]', <j>);
        JSON_ARRAY_APPEND(<j>, '$', <w>, append_each_element => FALSE); IFNULL(<j>, JSON '{}');
        <m>[SAFE_OFFSET(<i>)]; ARRAY_FIRST(<m>); ARRAY_LAST(<m>); JSON_QUERY(TO_JSON(<w>), '$[1]')
        """
    ),
    "v": items(
        r"""
        MAKE_INTERVAL(month => <i>, day => <i>); MAKE_INTERVAL(hour => <i>, second => <i>);
        <v> * <i>; <v> / <i>; INTERVAL <i> MONTH; INTERVAL <i> MINUTE; INTERVAL <i> QUARTER;
        INTERVAL <i> WEEK; IF(<b>, <v>, <v>); IFNULL(<v>, <v>);
        CAST(CAST(<v> AS STRING) AS INTERVAL); GREATEST(<v>, <v>);
        (SELECT SUM(e) FROM UNNEST([<v>, <v>]) AS e); (SELECT AVG(e) FROM UNNEST([<v>, <v>]) AS e);
        (SELECT MAX(e) FROM UNNEST([<v>, <v>]) AS e); JUSTIFY_INTERVAL(<t> - <t>); LEAST(<v>, <v>);
        SAFE_CAST(<s> AS INTERVAL); -JUSTIFY_HOURS(<v>); (<d> - <d>) + <v>;
        [<v>, <v>][SAFE_OFFSET(<i>)]
        """
    ),
    "u": items(
        r"""
        CAST(CAST(<u> AS BYTES) AS UUID); LEAST(<u>, <u>); NULLIF(<u>, <u>);
        SAFE_CAST(<s> AS UUID); CASE WHEN <b> THEN <u> END; IFNULL(<u>, <u>);
        CAST(UPPER(CAST(<u> AS STRING)) AS UUID); (SELECT MAX(e) FROM UNNEST([<u>, <u>]) AS e)
        """
    ),
    "l": items(
        r"""
        GENERATE_ARRAY(<i>, 5); GENERATE_ARRAY(0, 3, ABS(MOD(<i>, 3)) + 1);
        ARRAY_SLICE(<l>, <i>, <i>); ARRAY_CONCAT(<l>, [<i>], <l>);
        ARRAY_TRANSFORM(<w>, e -> LENGTH(e)); ARRAY<INT64>[<i>, NULL];
        ARRAY_TRANSFORM(<l>, e -> e * <i>); ARRAY_FILTER(<l>, (e, o) -> o > 0 AND e IS NOT NULL);
        ARRAY(SELECT e FROM UNNEST(<l>) AS e WHERE e <> <i> ORDER BY e DESC LIMIT 2);
        ARRAY(SELECT COUNT(*) FROM UNNEST(<w>) AS e GROUP BY e ORDER BY COUNT(*), MIN(e));
        ARRAY(SELECT e FROM UNNEST(<l>) AS e UNION DISTINCT SELECT <i> ORDER BY 1);
        ARRAY(SELECT e * f FROM UNNEST(<l>) AS e, UNNEST([<i>, 2]) AS f ORDER BY 1);
        ARRAY(SELECT EXTRACT(DAY FROM e) FROM UNNEST(<h>) AS e WITH OFFSET o ORDER BY o);
        (SELECT ARRAY_AGG(DISTINCT e IGNORE NULLS ORDER BY e) FROM UNNEST(<l>) AS e);
        (SELECT ARRAY_CONCAT_AGG(e.a ORDER BY e.b) FROM UNNEST([STRUCT(<l> AS a, 1 AS b), (<l>,
        2)]) AS e); INT64_ARRAY(TO_JSON(<l>)); CASE WHEN <b> THEN <l> END; IFNULL(<l>, [<i>])
        """
    ),
    "w": items(
        r"""
        ARRAY_CONCAT(<w>, SPLIT(<s>, ',')); ARRAY_SLICE(<w>, <i>, 2);
        ARRAY_TRANSFORM(<w>, (e, o) -> e || <s>); ARRAY_FILTER(<w>, (e, o) -> e > <s> OR o = 1);
        REGEXP_EXTRACT_ALL(<s>, r'(?i)[A-C]+'); REGEXP_EXTRACT_ALL(<s>, ''); JSON_QUERY_ARRAY(<s>);
        JSON_VALUE_ARRAY(<s>, '$'); JSON_KEYS(<j>, 1); JSON_KEYS(<j>, mode => 'lax');
        STRING_ARRAY(TO_JSON(<w>)); IF(<b>, <w>, <w>);
        ARRAY_TRANSFORM(<l>, e -> CAST(e AS STRING)); COALESCE(<w>, <w>); <w> || <w> || [<s>];
        ARRAY(SELECT DISTINCT e FROM UNNEST(<w>) AS e ORDER BY e);
        ARRAY(SELECT e FROM UNNEST(<w>) AS e INTERSECT DISTINCT SELECT f FROM UNNEST(<w>) AS f
        ORDER BY 1)
        """
    ),
    "x": items(
        r"""
        ARRAY_CONCAT(<x>, <x>); ARRAY_SLICE(<x>, 0, <i>); ARRAY<FLOAT64>[<i>, <f>, NULL];
        [<i>, <f>]; GENERATE_ARRAY(0, 1, 0.25); ARRAY_FILTER(<x>, e -> e > <f>);
        ARRAY_TRANSFORM(<x>, e -> e * 2); ARRAY(SELECT e FROM UNNEST(<x>) AS e ORDER BY e);
        FLOAT64_ARRAY(TO_JSON(<l>)); IF(<b>, <x>, <x>)
        """
    ),
    "e": items(
        r"""
        [<n>, <n>]; ARRAY<NUMERIC>[<n>, 1.5, <i>]; ARRAY_CONCAT(<e>, <e>); ARRAY_REVERSE(<e>);
        ARRAY_TRANSFORM(<l>, e -> CAST(e AS NUMERIC) / 3); ARRAY_SLICE(<e>, 0, <i>);
        IF(<b>, <e>, <e>); GENERATE_ARRAY(NUMERIC '0.5', 2, NUMERIC '0.5');
        ARRAY(SELECT e FROM UNNEST(<e>) AS e ORDER BY e)
        """
    ),
    "h": items(
        r"""
        [<d>, <d>]; ARRAY<DATE>[<d>, '2020-02-02', NULL]; ARRAY_REVERSE(<h>); [<d>, '2021-01-01'];
        GENERATE_DATE_ARRAY(DATE '2024-01-31', DATE '2024-05-31', INTERVAL 1 MONTH);
        GENERATE_DATE_ARRAY(DATE '2024-01-05', DATE '2024-01-01', INTERVAL -2 DAY);
        ARRAY_TRANSFORM(<h>, e -> DATE_ADD(e, INTERVAL 1 MONTH)); ARRAY_CONCAT(<h>, <h>);
        ARRAY(SELECT DISTINCT e FROM UNNEST(<h>) AS e ORDER BY e DESC)
        """
    ),
    "m": items(
        r"""
        [<j>, <j>]; JSON_QUERY_ARRAY(<j>); JSON_QUERY_ARRAY(<j>, '$.b'); ARRAY_CONCAT(<m>, [<j>]);
        ARRAY_REVERSE(<m>); ARRAY_TRANSFORM(<l>, e -> TO_JSON(e)); ARRAY_SLICE(<m>, 0, 1)
        """
    ),
    "q": items(
        r"""
        [<y>, <y>]; SPLIT(<y>, b','); SPLIT(<y>, <y>); REGEXP_EXTRACT_ALL(<y>, b'[a-c]');
        ARRAY_CONCAT(<q>, <q>); ARRAY_REVERSE(<q>); ARRAY<BYTES>[<y>, NULL];
        ARRAY(SELECT e FROM UNNEST(<q>) AS e ORDER BY e);
        ARRAY_TRANSFORM(<w>, e -> CAST(e AS BYTES))
        """
    ),
}
"""By the letters of ``expressions.KINDS``."""
