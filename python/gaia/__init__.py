"""The part of GAIA's Python package that the tools of skills import."""
