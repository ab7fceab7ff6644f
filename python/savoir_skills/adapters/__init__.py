"""Adapters that provide the tools of skills to agent frameworks. Each module needs its framework."""
