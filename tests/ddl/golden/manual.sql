-- up
ALTER TABLE Singers ADD COLUMN ShardId INT64 AS (MOD(MOD(FARM_FINGERPRINT(CAST(SingerId AS STRING)), 19) + 19, 19));
CREATE NULL_FILTERED INDEX SingersByShardAndTime ON Singers(ShardId, LastModified);
-- down
DROP INDEX SingersByShardAndTime;
ALTER TABLE Singers DROP COLUMN ShardId;
-- clearing, by partitioned DML
UPDATE `Singers` SET `LastModified` = NULL WHERE `ShardId` IS NOT NULL AND `LastModified` <= @safe;
