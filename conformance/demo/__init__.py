"""The main job on one machine: embedded Spanner, a writer, Spark, Parquet, and a verdict."""
