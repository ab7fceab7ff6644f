"""See `gaia.agents.base.tools`."""
