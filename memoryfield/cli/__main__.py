"""``python -m memoryfield.cli``."""

import sys

from memoryfield.cli import main

sys.exit(main())
