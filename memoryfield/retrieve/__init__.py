"""A question becomes ranked pages, or an honest nothing."""
