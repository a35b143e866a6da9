"""Embedding models side by side on one field: their spaces, likeness, costs, and the pages seen differently."""
