-- up
ALTER TABLE Singers ADD COLUMN LastModified TIMESTAMP OPTIONS (allow_commit_timestamp = true);
ALTER TABLE Singers ALTER COLUMN LastModified SET DEFAULT (PENDING_COMMIT_TIMESTAMP());
ALTER TABLE Singers ALTER COLUMN LastModified SET ON UPDATE (PENDING_COMMIT_TIMESTAMP());
ALTER TABLE Singers ADD COLUMN ShardId INT64 AS (MOD(MOD(FARM_FINGERPRINT(CAST(SingerId AS STRING)), 16) + 16, 16));
CREATE NULL_FILTERED INDEX SingersByShardAndTime ON Singers(ShardId, LastModified);
-- down
DROP INDEX SingersByShardAndTime;
ALTER TABLE Singers DROP COLUMN ShardId;
ALTER TABLE Singers ALTER COLUMN LastModified DROP ON UPDATE;
ALTER TABLE Singers ALTER COLUMN LastModified DROP DEFAULT;
ALTER TABLE Singers DROP COLUMN LastModified;
-- clearing, by partitioned DML
UPDATE `Singers` SET `LastModified` = NULL WHERE `ShardId` IS NOT NULL AND `LastModified` <= @safe;
