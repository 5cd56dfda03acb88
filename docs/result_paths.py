"""Where the pages of results stand."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "outputs" / "reference"
