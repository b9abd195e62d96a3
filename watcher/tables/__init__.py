"""What is known of tables: found in the schema, never guessed."""
