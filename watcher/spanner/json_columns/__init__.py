"""Arrow columns -> columns of JSON texts, by vectors: the bytes that ``json`` writes by value."""
