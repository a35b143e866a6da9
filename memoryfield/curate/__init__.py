"""Keeping a field clean: what is said twice, and what to do about it."""
