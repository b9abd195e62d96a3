"""The live page of operators: HTTP over what ``watcher.overview`` reads, and commands."""
