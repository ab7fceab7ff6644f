"""The decorator `@tool`, which marks functions in `tools.py` as tools."""

# All decorated functions in the order of decoration. The host reads this after it has loaded a
# module. It is a list, because two modules may have functions of the same name.
REGISTERED = []


def tool(function=None, **_ignored):
    """Mark a function as a tool: `@tool`, `@tool()` or `@tool(atomic=True)`.

    The keywords have no effect here, because SKILL.md declares the tools. The function is returned
    unchanged and can be called as usual.
    """

    def mark(marked):
        REGISTERED.append(marked)
        return marked

    return mark if function is None else mark(function)
