-- up
ALTER TABLE singers ADD COLUMN last_modified spanner.commit_timestamp;
ALTER TABLE singers ALTER COLUMN last_modified SET DEFAULT (SPANNER.PENDING_COMMIT_TIMESTAMP());
ALTER TABLE singers ALTER COLUMN last_modified SET ON UPDATE (SPANNER.PENDING_COMMIT_TIMESTAMP());
ALTER TABLE singers ADD COLUMN shard_id bigint GENERATED ALWAYS AS (mod(mod(spanner.farm_fingerprint(singerid::text), 16) + 16, 16)) VIRTUAL;
CREATE INDEX singers_by_shard_and_time ON singers (shard_id, last_modified) WHERE shard_id IS NOT NULL AND last_modified IS NOT NULL;
-- down
DROP INDEX singers_by_shard_and_time;
ALTER TABLE singers DROP COLUMN shard_id;
ALTER TABLE singers ALTER COLUMN last_modified DROP ON UPDATE;
ALTER TABLE singers ALTER COLUMN last_modified DROP DEFAULT;
ALTER TABLE singers DROP COLUMN last_modified;
