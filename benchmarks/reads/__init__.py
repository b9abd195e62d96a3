"""Tables of an embedded server, read by Spark and in one process."""
