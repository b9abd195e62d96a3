"""What a table needs to be watchable, and what it has of it."""
