-- up
CREATE CHANGE STREAM SpannerWatcherStream FOR Singers OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES');
-- down
DROP CHANGE STREAM SpannerWatcherStream;
