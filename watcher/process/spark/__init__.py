"""Spark's own processes: its Java, its Python, what they import."""
