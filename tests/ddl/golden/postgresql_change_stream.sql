-- up
CREATE CHANGE STREAM spanner_watcher_stream FOR singers WITH (value_capture_type = 'NEW_ROW_AND_OLD_VALUES');
-- down
DROP CHANGE STREAM spanner_watcher_stream;
