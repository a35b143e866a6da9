"""Learning about a field and about models: maps, probes, evaluation, comparison, the report."""
