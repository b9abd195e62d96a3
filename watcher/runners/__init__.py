"""Takes windows from a source to a sink: on a schedule, or in Spark."""
