"""Jobs that read first rows with Spark, each a process as a user would start it, with the moments
at which it was where."""
