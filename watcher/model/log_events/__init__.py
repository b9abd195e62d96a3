"""Every event that the product logs, as values: operators may alert on their names."""
