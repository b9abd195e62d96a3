"""Plans: ordered statements, their costs, the way back; run through the admin API."""
