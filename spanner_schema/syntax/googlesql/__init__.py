"""GoogleSQL: how statements are read and written."""
