-- up
CREATE TABLE change_sets (
  change_set_id character varying(36) NOT NULL,
  commit_timestamp spanner.commit_timestamp,
  PRIMARY KEY(change_set_id)
);
ALTER TABLE change_sets ADD COLUMN shard_id bigint GENERATED ALWAYS AS (mod(mod(spanner.farm_fingerprint(change_set_id), 16) + 16, 16)) VIRTUAL;
CREATE INDEX change_sets_by_shard_and_time ON change_sets (shard_id, commit_timestamp) WHERE shard_id IS NOT NULL AND commit_timestamp IS NOT NULL;
ALTER TABLE singers ADD COLUMN change_set_id character varying(36);
CREATE INDEX singers_by_change_set ON singers (change_set_id);
-- down
DROP INDEX singers_by_change_set;
ALTER TABLE singers DROP COLUMN change_set_id;
DROP INDEX change_sets_by_shard_and_time;
ALTER TABLE change_sets DROP COLUMN shard_id;
DROP TABLE change_sets;
