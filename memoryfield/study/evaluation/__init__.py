"""Does search find the right page: metrics, intervals, differences, misses, as tables, pictures and files."""
