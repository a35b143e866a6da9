"""memoryfield: open, search, study and curate memory that is plain data."""
