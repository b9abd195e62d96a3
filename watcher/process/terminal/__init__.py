"""What every command of the project shares of the terminal: consoles, tables, help, exit codes."""
