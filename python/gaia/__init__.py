"""A replacement for the part of GAIA's Python package that skills import in their tools.py."""
