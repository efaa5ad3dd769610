"""``python -m minicompile``: the same as the command ``minicompile``."""

import sys

from minicompile.tools.cli import main

sys.exit(main())
