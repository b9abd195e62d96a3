"""Hours of load with kills and schema changes: nothing is lost, and nothing grows."""
