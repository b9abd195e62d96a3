-- up
ALTER TABLE Singers ADD COLUMN LastModified TIMESTAMP OPTIONS (allow_commit_timestamp = true);
ALTER TABLE Singers ALTER COLUMN LastModified SET DEFAULT (PENDING_COMMIT_TIMESTAMP());
ALTER TABLE Singers ALTER COLUMN LastModified SET ON UPDATE (PENDING_COMMIT_TIMESTAMP());
ALTER TABLE Singers ADD COLUMN Processed BOOL;
ALTER TABLE Singers ADD COLUMN ShardId INT64 AS (CASE WHEN Processed THEN NULL ELSE MOD(FARM_FINGERPRINT(COALESCE(CAST(LENGTH(FirstName) AS STRING) || ':' || FirstName, '-') || CAST(LENGTH(LastName) AS STRING) || ':' || LastName), 19) END);
CREATE NULL_FILTERED INDEX SingersByShardAndTime ON Singers(ShardId, LastModified);
-- down
DROP INDEX SingersByShardAndTime;
ALTER TABLE Singers DROP COLUMN ShardId;
ALTER TABLE Singers DROP COLUMN Processed;
ALTER TABLE Singers ALTER COLUMN LastModified DROP ON UPDATE;
ALTER TABLE Singers ALTER COLUMN LastModified DROP DEFAULT;
ALTER TABLE Singers DROP COLUMN LastModified;
-- clearing, by partitioned DML
UPDATE `Singers` SET `Processed` = TRUE, `LastModified` = `LastModified` WHERE `ShardId` IS NOT NULL AND `LastModified` <= @safe;
