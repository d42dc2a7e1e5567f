"""Texts that look like filters, for properties that hold of any text."""

import tomllib
from pathlib import Path

from hypothesis import strategies as st

TABLES = tomllib.loads((Path(__file__).parents[1] / "fixtures/filters.toml").read_text())
_PIECES = st.sampled_from(TABLES["pieces"])
ANY_FILTER_TEXT = st.lists(_PIECES | st.text(max_size=3), max_size=10).map("".join)
