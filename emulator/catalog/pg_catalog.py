"""The rows of pg_catalog in the PostgreSQL dialect: what is there of the user's own objects."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

from emulator.catalog import constraints, tables
from emulator.values.served_types import SERVED_TYPES, PgType
from spanner_schema.model import names
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Column, ForeignKey, Index, OnDelete, Schema, Table
from spanner_schema.syntax import sequences
from spanner_schema.syntax.references import find_referenced_columns
from spanner_schema.syntax.views import list_views, read_view

Fields = dict[str, object]
OWNERS = {
    "pg_catalog": 11,
    "public": 2200,
    "information_schema": 75003,
    "spanner_sys": 75004,
    "spanner": 75001,
}
"""The oids of the schemas that every database has."""
OID_FIRST = 100_000
OID_RANGE = 2**30
INDEX_METHOD = 75002
TABLE_METHOD = 75001
TYPES = {
    code: served.postgresql
    for code, served in SERVED_TYPES.items()
    if served.postgresql is not None
}
TEXT = PgType(25, "text", -1, "S", 1009)
LETTERS = {OnDelete.CASCADE: "c"}
MAX_INDEX_KEYS = "16"


def split_name(name: str) -> tuple[str, str]:
    """A name as schema and object."""
    owner, last = names.split_name(name)
    return owner or "public", last


class Oids:
    """The oids of a schema's objects: always the same for the same name, each of one object."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}
        self._taken: set[int] = set()

    def of(self, kind: str, name: str) -> int:
        """The oid of an object."""
        key = f"{kind} {name}"
        if key not in self._given:
            oid = OID_FIRST + zlib.crc32(key.encode()) % OID_RANGE
            while oid in self._taken:
                oid += 1
            self._given[key] = oid
            self._taken.add(oid)
        return self._given[key]

    def owner(self, name: str) -> int:
        """The oid of a schema."""
        return OWNERS.get(name) or self.of("schema", name)

    def relation(self, name: str) -> int:
        """The oid of a table, a view, an index or a sequence."""
        return self.of("relation", name)


def given(schema: Schema) -> Oids:
    """The oids of a schema, drawn in the same order each time."""
    oids = Oids()
    for name in schema.named_schemas:
        oids.owner(name)
    for table in schema.tables:
        oids.relation(table.name)
    for table, index in index_list(schema):
        oids.relation(index_name(table, index))
    for item in schema.verbatim:
        oids.relation(item.name)
    return oids


def type_oid(type_: Type) -> int:
    """The oid of a type."""
    if type_.element is not None:
        return TYPES[type_.element.code].arrays if type_.element.code in TYPES else 0
    return TYPES[type_.code].oid if type_.code in TYPES else 0


def index_list(schema: Schema) -> Iterator[tuple[Table, Index]]:
    """Every index with its table, primary keys too."""
    for table, index, _ in tables.all_indexes(schema):
        yield table, index


def index_name(table: Table, index: Index) -> str:
    """The name of an index as a relation, with its schema."""
    owner, last = names.split_name(table.name)
    if index.name == "PRIMARY_KEY":
        return names.join_name(owner, f"PK_{last}")
    return index.name if "." in index.name else names.join_name(owner, index.name)


def namespace_rows(schema: Schema) -> Iterator[Fields]:
    """pg_namespace: the schemas."""
    oids = given(schema)
    for name in (*OWNERS, *schema.named_schemas):
        yield {"oid": oids.owner(name), "nspname": name}


def class_rows(schema: Schema) -> Iterator[Fields]:
    """pg_class: tables, views, indexes and sequences."""
    oids = given(schema)
    indexed = {table.name for table, index in index_list(schema) if index.name != "PRIMARY_KEY"}
    for table in schema.tables:
        yield relation(oids, table.name, "r") | {
            "relam": TABLE_METHOD,
            "relhasindex": int(table.name in indexed),
            "relnatts": len(table.columns),
            "relchecks": len(table.checks),
        }
    for table, index in index_list(schema):
        yield relation(oids, index_name(table, index), "i") | {
            "relam": INDEX_METHOD,
            "relnatts": len(index.parts) + len(index.storing),
        }
    for view in list_views(schema):
        yield relation(oids, view.name, "v")
    for name in sequences.read_sequences(schema):
        yield relation(oids, name, "S")


def relation(oids: Oids, name: str, kind: str) -> Fields:
    """What all relations have."""
    owner, last = split_name(name)
    return {
        "oid": oids.relation(name),
        "relname": last,
        "relnamespace": oids.owner(owner),
        "relam": 0,
        "relhasindex": 0,
        "relpersistence": "p",
        "relkind": kind,
        "relchecks": 0,
        "relispopulated": 1,
        "relispartition": 0,
    }


def attribute_rows(schema: Schema) -> Iterator[Fields]:
    """pg_attribute: the columns of tables and of indexes."""
    oids = given(schema)
    for table in schema.tables:
        for number, column in enumerate(table.columns, 1):
            yield attribute(oids.relation(table.name), column, number)
    for table, index in index_list(schema):
        names = [*(part.column for part in index.parts), *index.storing]
        for number, name in enumerate(names, 1):
            found = table.column(name)
            if found is not None:
                bare = Column(found.name, found.type)
                yield attribute(oids.relation(index_name(table, index)), bare, number)


def attribute(relation_oid: int, column: Column, number: int) -> Fields:
    """A column of a relation."""
    type_, generated = column.type, column.generated is not None
    length = type_.length if type_.code is TypeCode.STRING else None
    known = TYPES.get(type_.code)
    return {
        "attrelid": relation_oid,
        "attname": column.name,
        "atttypid": type_oid(type_),
        "attlen": known.size if known else -1,
        "attnum": number,
        "attndims": int(type_.element is not None),
        "attcacheoff": -1,
        # PostgreSQL counts the four bytes before a text, too.
        "atttypmod": -1 if length is None else length + 4,
        "attnotnull": int(column.not_null),
        "atthasdef": int(column.default is not None or generated or column.identity is not None),
        "atthasmissing": 0,
        "attidentity": "d" if column.identity is not None else "",
        "attgenerated": ("s" if column.stored else "v") if generated else "",
        "attisdropped": 0,
        "attislocal": 1,
        "attinhcount": 0,
    }


def default_rows(schema: Schema) -> Iterator[Fields]:
    """pg_attrdef: defaults, and the expressions of generated columns."""
    oids = given(schema)
    for table in schema.tables:
        for number, column in enumerate(table.columns, 1):
            text = column.default if column.default is not None else column.generated
            if text is not None:
                yield {
                    "oid": oids.of("default", f"{table.name}.{column.name}"),
                    "adrelid": oids.relation(table.name),
                    "adnum": number,
                    "adbin": text,
                }


def places(table: Table | None, names: tuple[str, ...]) -> str:
    """The numbers of columns, as an array."""
    known = [column.name.casefold() for column in table.columns] if table is not None else []
    numbers = [known.index(n.casefold()) + 1 for n in names if n.casefold() in known]
    return f"[{','.join(map(str, numbers))}]"


def index_rows(schema: Schema) -> Iterator[Fields]:
    """pg_index."""
    oids = given(schema)
    for table, index in index_list(schema):
        keys = tuple(part.column for part in index.parts)
        columns = (*keys, *index.storing)
        where = " AND ".join(f"{name} IS NOT NULL" for name in index.where_not_null)
        options = (int(p.descending) | 2 * int(p.descending != p.other_nulls) for p in index.parts)
        yield {
            "indexrelid": oids.relation(index_name(table, index)),
            "indrelid": oids.relation(table.name),
            "indnatts": len(columns),
            "indnkeyatts": len(keys),
            "indisunique": int(index.unique),
            "indisprimary": int(index.name == "PRIMARY_KEY"),
            "indisexclusion": 0,
            "indisclustered": 0,
            "indisvalid": 1,
            "indcheckxmin": 0,
            "indisready": 1,
            "indislive": 1,
            "indisreplident": 0,
            "indkey": places(table, columns),
            "indoption": f"[{','.join(map(str, options))}]",
            "indpred": where or None,
        }


def constraint_rows(schema: Schema) -> Iterator[Fields]:
    """pg_constraint: primary keys, foreign keys and checks."""
    oids = given(schema)
    for table, name, clause in constraints.check_rows(schema):
        if not name.startswith("CK_IS_NOT_NULL_"):
            named = find_referenced_columns(clause, table, schema.dialect)
            key = places(table, named)
            yield constraint(oids, table, name, "c") | {"conkey": key, "conbin": clause}
    for table, name, kind, columns in constraints.constraint_rows(schema):
        if kind == "PRIMARY KEY":
            index = oids.relation(index_name(table, tables.primary_key(table)))
            key = places(table, columns)
            yield constraint(oids, table, name, "p") | {"conkey": key, "conindid": index}
    for table in schema.tables:
        for each in table.foreign_keys:
            yield foreign_key(oids, schema, table, each)


def foreign_key(oids: Oids, schema: Schema, table: Table, key: ForeignKey) -> Fields:
    """A foreign key."""
    target = schema.table(key.referenced_table)
    return constraint(oids, table, key.label, "f") | {
        "confrelid": oids.relation(target.name) if target is not None else 0,
        "confupdtype": "a",
        "confdeltype": LETTERS.get(key.on_delete or OnDelete.NO_ACTION, "a"),
        "confmatchtype": "s",
        "conkey": places(table, key.columns),
        "confkey": places(target, key.referenced_columns),
    }


def constraint(oids: Oids, table: Table, name: str, kind: str) -> Fields:
    """What all constraints have."""
    return {
        "oid": oids.of("constraint", f"{table.name}.{name}"),
        "conname": name,
        "connamespace": oids.owner(split_name(table.name)[0]),
        "contype": kind,
        "condeferrable": 0,
        "condeferred": 0,
        "convalidated": 1,
        "conrelid": oids.relation(table.name),
        "contypid": 0,
        "conindid": 0,
        "conparentid": 0,
        "confrelid": 0,
        "confupdtype": " ",
        "confdeltype": " ",
        "confmatchtype": " ",
        "conislocal": 1,
        "coninhcount": 0,
        "connoinherit": 0,
    }


def type_rows(schema: Schema) -> Iterator[Fields]:
    """pg_type: the types that columns and queries have, and their arrays."""
    for type_ in (*TYPES.values(), TEXT):
        yield {
            "oid": type_.oid,
            "typname": type_.name,
            "typnamespace": OWNERS["pg_catalog"],
            "typlen": type_.size,
            "typbyval": int(0 < type_.size <= 8),
            "typtype": "b",
            "typcategory": type_.category,
            "typispreferred": int(type_.name in {"bool", "float8", "oid", "text", "timestamptz"}),
            "typisdefined": 1,
            "typdelim": ",",
            "typrelid": 0,
            "typelem": 0,
            "typarray": type_.arrays,
        }
        yield {
            "oid": type_.arrays,
            "typname": f"_{type_.name}",
            "typnamespace": OWNERS["pg_catalog"],
            "typlen": -1,
            "typbyval": 0,
            "typtype": "b",
            "typcategory": "A",
            "typispreferred": 0,
            "typisdefined": 1,
            "typdelim": ",",
            "typrelid": 0,
            "typelem": type_.oid,
            "typarray": 0,
        }


def table_rows(schema: Schema) -> Iterator[Fields]:
    """pg_tables."""
    indexed = {table.name for table, index in index_list(schema) if index.name != "PRIMARY_KEY"}
    for table in schema.tables:
        owner, name = split_name(table.name)
        has = int(table.name in indexed)
        yield {"schemaname": owner, "tablename": name, "hasindexes": has}


def index_names(schema: Schema) -> Iterator[Fields]:
    """pg_indexes."""
    for table, index in index_list(schema):
        owner, name = split_name(table.name)
        _, last = split_name(index_name(table, index))
        yield {"schemaname": owner, "tablename": name, "indexname": last}


def view_rows(schema: Schema) -> Iterator[Fields]:
    """pg_views."""
    for item in list_views(schema):
        owner, name = split_name(item.name)
        query = read_view(item.text, schema.dialect).query
        yield {"schemaname": owner, "viewname": name, "definition": query}


def sequence_rows(schema: Schema) -> Iterator[Fields]:
    """pg_sequence."""
    oids = given(schema)
    for name, sequence in sequences.read_sequences(schema).items():
        yield {
            "seqrelid": oids.relation(name),
            "seqtypid": type_oid(Type(TypeCode.INT64)),
            "seqstart": sequence.start_with_counter,
            "seqcache": SEQUENCE_CACHE,
            "seqcycle": 0,
        }


SEQUENCE_CACHE = 1000
"""What Spanner tells for every sequence."""


def sequence_names(schema: Schema) -> Iterator[Fields]:
    """pg_sequences."""
    for name, sequence in sequences.read_sequences(schema).items():
        owner, last = split_name(name)
        yield {
            "schemaname": owner,
            "sequencename": last,
            "start_value": sequence.start_with_counter,
            "cycle": 0,
            "cache_size": SEQUENCE_CACHE,
        }


def method_rows(schema: Schema) -> Iterator[Fields]:
    """pg_am: how tables and indexes are read."""
    yield {"oid": TABLE_METHOD, "amname": "spanner_default", "amtype": "t"}
    yield {"oid": INDEX_METHOD, "amname": "spanner_default", "amtype": "i"}


def collation_rows(schema: Schema) -> Iterator[Fields]:
    """pg_collation: there is no other than these two."""
    for oid, name, provider, encoding in ((100, "default", "d", -1), (950, "C", "c", -1)):
        yield {
            "oid": oid,
            "collname": name,
            "collnamespace": OWNERS["pg_catalog"],
            "collprovider": provider,
            "collisdeterministic": 1,
            "collencoding": encoding,
        }


def setting_rows(schema: Schema) -> Iterator[Fields]:
    """pg_settings: the one that Spanner tells."""
    yield {
        "name": "max_index_keys",
        "category": "Preset Options",
        "short_desc": "Shows the maximum number of index keys.",
        "context": "internal",
        "vartype": "integer",
        "source": "default",
        "pending_restart": 0,
        **dict.fromkeys(("setting", "min_val", "max_val", "boot_val", "reset_val"), MAX_INDEX_KEYS),
    }


PG_CONTENTS: dict[str, Callable[[Schema], Iterator[Fields]]] = {
    "PG_AM": method_rows,
    "PG_ATTRDEF": default_rows,
    "PG_ATTRIBUTE": attribute_rows,
    "PG_CLASS": class_rows,
    "PG_COLLATION": collation_rows,
    "PG_CONSTRAINT": constraint_rows,
    "PG_INDEX": index_rows,
    "PG_INDEXES": index_names,
    "PG_NAMESPACE": namespace_rows,
    "PG_SEQUENCE": sequence_rows,
    "PG_SEQUENCES": sequence_names,
    "PG_SETTINGS": setting_rows,
    "PG_TABLES": table_rows,
    "PG_TYPE": type_rows,
    "PG_VIEWS": view_rows,
}
"""The tables that have rows; the others are there, and empty."""
