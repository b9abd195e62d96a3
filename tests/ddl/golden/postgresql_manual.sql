-- up
ALTER TABLE singers ADD COLUMN shard_id bigint GENERATED ALWAYS AS (mod(mod(spanner.farm_fingerprint(singerid::text), 19) + 19, 19)) VIRTUAL;
CREATE INDEX singers_by_shard_and_time ON singers (shard_id, last_modified) WHERE shard_id IS NOT NULL AND last_modified IS NOT NULL;
-- down
DROP INDEX singers_by_shard_and_time;
ALTER TABLE singers DROP COLUMN shard_id;
