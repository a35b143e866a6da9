"""MemoryField: the one object people hold. Thin: it opens, remembers which model to use, and delegates.

The class is made of layers that follow the floors below: pages, indexes, curation, studies.
"""

from memoryfield.field.indexes import DEFAULT_RETRIEVER
from memoryfield.field.studying import FieldStudies

__all__ = ["DEFAULT_RETRIEVER", "MemoryField"]


class MemoryField(FieldStudies):
    """A field of pages with its caches, its search, its curation and its study. Made by ``open_field``."""
