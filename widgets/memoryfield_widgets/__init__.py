"""Notebook widgets for a memoryfield.

They speak to :class:`memoryfield.MemoryField` and to nothing below it. There are none yet: this release brings the
library, the command line and an example field.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
