"""Tools of skills for agent frameworks. Each module needs the framework of its name."""
