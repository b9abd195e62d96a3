"""Plain values that all floors above share: requests, types, and the form of stored values.

The form in which a Spanner value is stored (``Stored``). SQL functions and the wire use it too:

========== =================  ======================================================================
Spanner    SQLite             form
========== =================  ======================================================================
BOOL       INTEGER            0 or 1
INT64      INTEGER
FLOAT64    REAL               NaN is the text 'NaN' (SQLite has none); infinities are REAL
FLOAT32    REAL               as FLOAT64, rounded to single precision
NUMERIC    TEXT               39 digits that sort as the number: '1' + 38 digits of v * 10**9, zero
                              padded, for v >= 0; '0' + 38 digits of 10**38 - |v| * 10**9 below 0
STRING     TEXT               compared by BINARY collation, that is by code point
BYTES      BLOB
DATE       TEXT               'YYYY-MM-DD'
TIMESTAMP  TEXT               'YYYY-MM-DDTHH:MM:SS.fffffffffZ', always nine digits, so that text
                              sorts as time
JSON       TEXT               Spanner's normal form (keys sorted, no blanks)
PG_NUMERIC TEXT               a key that sorts as the number, a colon, the number as it is printed
PG_JSONB   TEXT               PostgreSQL's normal form
UUID       TEXT               lower case with dashes
INTERVAL   TEXT               ISO 8601
PROTO      BLOB               the bytes of the message, as they were sent
ENUM       INTEGER
ARRAY      TEXT               JSON array of the elements' forms; BYTES and PROTO as base64, NULL as
                              null, FLOAT infinities as the strings 'Infinity' and '-Infinity'
STRUCT     TEXT               JSON array of the fields' forms (in query results only)
NULL       NULL               of any type
========== =================  ======================================================================
"""
