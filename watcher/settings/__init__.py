"""Settings of the Spark source and of a watcher: each one validated model."""
