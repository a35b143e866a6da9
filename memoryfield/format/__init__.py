"""The data: names, frontmatter, pages, directories and archives. Knows no vectors."""
