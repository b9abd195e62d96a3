"""The tables and views of pg_catalog that Spanner's PostgreSQL dialect has, with their columns."""

from __future__ import annotations

from emulator.values.columns import View, parse_columns

PG_CATALOG_TABLES: dict[str, View] = {
    "PG_CATALOG.PG_AM": parse_columns("oid O, amname S, amtype S"),
    "PG_CATALOG.PG_ATTRDEF": parse_columns("oid O, adrelid O, adnum I, adbin S"),
    "PG_CATALOG.PG_ATTRIBUTE": parse_columns(
        "attrelid O, attname S, atttypid O, attstattarget I, attlen I, attnum I, attndims I, "
        "attcacheoff I, atttypmod I, attbyval B, attalign S, attstorage S, attcompression S, "
        "attnotnull B, atthasdef B, atthasmissing B, attidentity S, attgenerated S, "
        "attisdropped B, attislocal B, attinhcount I, attcollation O, attoptions S, "
        "attfdwoptions S"
    ),
    "PG_CATALOG.PG_AVAILABLE_EXTENSION_VERSIONS": parse_columns(
        "name S, version S, installed B, superuser B, trusted B, relocatable B, schema S, "
        "requires SS, comment S"
    ),
    "PG_CATALOG.PG_AVAILABLE_EXTENSIONS": parse_columns(
        "name S, default_version S, installed_version S, comment S"
    ),
    "PG_CATALOG.PG_BACKEND_MEMORY_CONTEXTS": parse_columns(
        "name S, ident S, parent S, level I, total_bytes I, total_nblocks I, free_bytes I, "
        "free_chunks I, used_bytes I"
    ),
    "PG_CATALOG.PG_CLASS": parse_columns(
        "oid O, relname S, relnamespace O, reltype O, reloftype O, relowner O, relam O, "
        "relfilenode O, reltablespace O, relpages I, reltuples F, relallvisible I, "
        "reltoastrelid O, relhasindex B, relisshared B, relpersistence S, relkind S, relnatts "
        "I, relchecks I, relhasrules B, relhastriggers B, relhassubclass B, relrowsecurity B, "
        "relforcerowsecurity B, relispopulated B, relreplident S, relispartition B, "
        "relrewrite O, relfrozenxid I, relminmxid I, reloptions S, relpartbound S"
    ),
    "PG_CATALOG.PG_COLLATION": parse_columns(
        "oid O, collname S, collnamespace O, collowner O, collprovider S, collisdeterministic "
        "B, collencoding I, collcollate S, collctype S, colliculocale S, collversion S"
    ),
    "PG_CATALOG.PG_CONFIG": parse_columns("name S, setting S"),
    "PG_CATALOG.PG_CONSTRAINT": parse_columns(
        "oid O, conname S, connamespace O, contype S, condeferrable B, condeferred B, "
        "convalidated B, conrelid O, contypid O, conindid O, conparentid O, confrelid O, "
        "confupdtype S, confdeltype S, confmatchtype S, conislocal B, coninhcount I, "
        "connoinherit B, conkey II, confkey II, conpfeqop OO, conppeqop OO, conffeqop OO, "
        "conexclop OO, conbin S"
    ),
    "PG_CATALOG.PG_CURSORS": parse_columns(
        "name S, statement S, is_holdable B, is_binary B, is_scrollable B, creation_time T"
    ),
    "PG_CATALOG.PG_DESCRIPTION": parse_columns("objoid O, classoid O, objsubid I, description S"),
    "PG_CATALOG.PG_ENUM": parse_columns("oid O, enumtypid O, enumsortorder F, enumlabel S"),
    "PG_CATALOG.PG_EXTENSION": parse_columns(
        "oid O, extname S, extowner O, extnamespace O, extrelocatable B, extversion S, "
        "extconfig OO, extcondition SS"
    ),
    "PG_CATALOG.PG_FILE_SETTINGS": parse_columns(
        "sourcefile S, sourceline I, seqno I, name S, setting S, applied B, error S"
    ),
    "PG_CATALOG.PG_HBA_FILE_RULES": parse_columns(
        "line_number I, type S, database SS, user_name SS, address S, netmask S, auth_method "
        "S, options SS, error S"
    ),
    "PG_CATALOG.PG_INDEX": parse_columns(
        "indexrelid O, indrelid O, indnatts I, indnkeyatts I, indisunique B, indisprimary B, "
        "indisexclusion B, indimmediate B, indisclustered B, indisvalid B, indcheckxmin B, "
        "indisready B, indislive B, indisreplident B, indkey II, indcollation II, indclass "
        "II, indoption II, indexprs S, indpred S"
    ),
    "PG_CATALOG.PG_INDEXES": parse_columns(
        "schemaname S, tablename S, indexname S, tablespace S, indexdef S"
    ),
    "PG_CATALOG.PG_LANGUAGE": parse_columns(
        "oid O, lanname S, lanowner O, lanispl B, lanpltrusted B, lanplcallfoid O, laninline "
        "O, lanvalidator O, lanacl S"
    ),
    "PG_CATALOG.PG_MATVIEWS": parse_columns(
        "schemaname S, matviewname S, matviewowner S, tablespace S, hasindexes B, ispopulated "
        "B, definition S"
    ),
    "PG_CATALOG.PG_NAMESPACE": parse_columns("oid O, nspname S, nspowner O"),
    "PG_CATALOG.PG_POLICIES": parse_columns(
        "schemaname S, tablename S, policyname S, permissive S, roles SS, cmd S, qual S, "
        "with_check S"
    ),
    "PG_CATALOG.PG_PREPARED_XACTS": parse_columns(
        "transaction I, gid S, prepared T, owner S, database S"
    ),
    "PG_CATALOG.PG_PROC": parse_columns(
        "oid O, proname S, pronamespace O, proowner O, prolang O, procost F, prorows F, "
        "provariadic O, prokind S, prosecdef B, proleakproof B, proisstrict B, proretset B, "
        "provolatile S, proparallel S, pronargs I, pronargdefaults I, prorettype O, "
        "proargtypes OO, proallargtypes OO, proargmodes SS, proargnames SS, proargdefaults S, "
        "protrftypes OO, prosrc S, probin S, prosqlbody S, proconfig SS"
    ),
    "PG_CATALOG.PG_PUBLICATION_TABLES": parse_columns("pubname S, schemaname S, tablename S"),
    "PG_CATALOG.PG_RANGE": parse_columns(
        "rngtypid O, rngsubtype O, rngmultitypid O, rngcollation O, rngsubopc O, rngcanonical "
        "I, rngsubdiff I"
    ),
    "PG_CATALOG.PG_ROLES": parse_columns(
        "rolname S, rolsuper B, rolinherit B, rolcreaterole B, rolcreatedb B, rolcanlogin B, "
        "rolreplication B, rolconnlimit I, rolpassword S, rolvaliduntil T, rolbypassrls B, "
        "rolconfig SS, oid O"
    ),
    "PG_CATALOG.PG_RULES": parse_columns("schemaname S, tablename S, rulename S, definition S"),
    "PG_CATALOG.PG_SEQUENCE": parse_columns(
        "seqrelid O, seqtypid O, seqstart I, seqincrement I, seqmax I, seqmin I, seqcache I, "
        "seqcycle B"
    ),
    "PG_CATALOG.PG_SEQUENCES": parse_columns(
        "schemaname S, sequencename S, sequenceowner S, start_value I, min_value I, max_value "
        "I, increment_by I, cycle B, cache_size I, last_value I"
    ),
    "PG_CATALOG.PG_SETTINGS": parse_columns(
        "name S, setting S, unit S, category S, short_desc S, extra_desc S, context S, "
        "vartype S, source S, min_val S, max_val S, enumvals SS, boot_val S, reset_val S, "
        "sourcefile S, sourceline I, pending_restart B"
    ),
    "PG_CATALOG.PG_SHMEM_ALLOCATIONS": parse_columns("name S, off I, size I, allocated_size I"),
    "PG_CATALOG.PG_TABLES": parse_columns(
        "schemaname S, tablename S, tableowner S, tablespace S, hasindexes B, hasrules B, "
        "hastriggers B, rowsecurity B"
    ),
    "PG_CATALOG.PG_TYPE": parse_columns(
        "oid O, typname S, typnamespace O, typowner O, typlen I, typbyval B, typtype S, "
        "typcategory S, typispreferred B, typisdefined B, typdelim S, typrelid O, typelem O, "
        "typarray O, typalign S, typstorage S, typnotnull B, typbasetype O, typtypmod I, "
        "typndims I, typcollation O, typdefaultbin S, typdefault S"
    ),
    "PG_CATALOG.PG_VIEWS": parse_columns("schemaname S, viewname S, viewowner S, definition S"),
}
