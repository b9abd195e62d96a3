"""Where changes go: functions, lines, files, queues, tables of other databases."""
