"""What is known of tables: read from the schema, never guessed."""
