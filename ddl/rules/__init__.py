"""What Spanner refuses, and what a step does to a schema."""
