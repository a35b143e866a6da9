"""Learning about a field and about models: maps and figures."""
