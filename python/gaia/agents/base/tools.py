"""The decorator that makes a function of `tools.py` a tool."""

# Every decorated function in the order of decoration. The host looks here after it has loaded a
# module; a list, because two modules may each have a function of the same name.
REGISTERED = []


def tool(function=None, **_ignored):
    """Mark a function as a tool: `@tool`, `@tool()` or `@tool(atomic=True)`.

    SKILL.md is what declares a tool, so keywords change nothing here. The function is returned as
    it is and can be called like any other.
    """

    def mark(marked):
        REGISTERED.append(marked)
        return marked

    return mark if function is None else mark(function)
