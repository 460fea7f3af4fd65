"""Makes the sources importable, as the installed package is."""

import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SOURCES))
