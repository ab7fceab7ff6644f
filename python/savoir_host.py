"""Hosts the Python tools of one skill and answers calls, one line of JSON each.

    python3 -I -B savoir_host.py --skill DIR --module tools.py
    python3 -I -B savoir_host.py --skill DIR --action NAME=PATH[:FUNCTION] ...

The first line of output is `{"ready":true,"python":"3.11.7","tools":[...]}`. If the skill cannot be
loaded, it is `{"ready":false,"error":{...}}`, and the host exits. After that, each request
`{"id","tool","args"}` gets the response `{"id","ok":true,"result"}` or
`{"id","ok":false,"error":{"type","message","at"}}`. The host exits when standard input ends.

The host uses only the standard library of Python 3.9 and later. The skill's module runs in this
process, so this file cannot defend against a malicious module: the sandbox around the process does.
This file only prevents accidents, such as the output of `print` that looks like a response.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# If an action names no function, these names are tried after the name of the action.
HANDLER_NAMES = ("handler", "main", "run")

# Longer error messages are cut off; the reader limits the length of a line, too.
MAX_MESSAGE = 8192


class HostError(Exception):
    """An error that the host reports, as opposed to an exception in the skill's code."""


class Wire:
    """Reads and writes lines of JSON over private copies of standard input and output.

    The original file descriptors are redirected: the module's standard input is empty, and its
    standard output goes to standard error.
    """

    def __init__(self):
        self._in = os.dup(0)
        self._out = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        # By default, Python would buffer prints until a block is full, because the output is a pipe.
        sys.stdout.reconfigure(line_buffering=True)
        self._rest = b""

    def lines(self):
        """The requests, until standard input ends."""
        parts = []
        while True:
            end = self._rest.find(b"\n")
            if end >= 0:
                parts.append(self._rest[:end])
                self._rest = self._rest[end + 1 :]
                yield b"".join(parts)
                parts = []
                continue
            # Parts are joined once per line: joining after each read would take quadratic time.
            parts.append(self._rest)
            self._rest = os.read(self._in, 1 << 16)
            if not self._rest:
                return

    def send(self, text):
        data = memoryview(text.encode("utf-8") + b"\n")
        while data:
            data = data[os.write(self._out, data) :]


def dump(value):
    # ASCII only: a lone surrogate is written as an escape sequence; UTF-8 could not encode it.
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def describe(error, skill):
    """Returns the exception's type and message, and the innermost line of the skill's code in its traceback."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001: the exception is the skill's, and so is its __str__
        message = ""
    described = {"type": type(error).__name__, "message": message[:MAX_MESSAGE]}
    place = None
    frame = error.__traceback__
    while frame is not None:
        place = place_in(skill, frame.tb_frame.f_code.co_filename, frame.tb_lineno) or place
        frame = frame.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        place = place_in(skill, error.filename, error.lineno or 1) or place
    if place:
        described["at"] = place
    return described


def place_in(skill, filename, line):
    if filename.startswith(skill + os.sep):
        return "%s:%d" % (os.path.relpath(filename, skill), line)
    return None


def import_path(skill):
    """Sets the search path for imports: the skill's folder, our folder, then Python's default path.

    `-I` already excludes the working directory, PYTHONPATH and the user's site-packages.
    """
    # Import this first, so that a folder `gaia` in the skill cannot replace it.
    sys.path.insert(0, HERE)
    import gaia.agents.base.tools  # noqa: F401

    inherited = [path for path in sys.path if path not in (HERE, skill)]
    sys.path[:] = [skill, HERE] + inherited


def load(path, name):
    """Executes a file of the skill as a module."""
    from importlib import util

    spec = util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise HostError("`%s` is not a Python module" % path)
    module = util.module_from_spec(spec)
    # Dataclasses and pickle look up their module in sys.modules, and `import tools` must not load it
    # a second time.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def inside(skill, path):
    """Returns the absolute path of a file. Raises `HostError` if the file is not inside the skill."""
    full = os.path.realpath(os.path.join(skill, path))
    if not full.startswith(skill + os.sep):
        raise HostError("`%s` is outside the skill" % path)
    if not os.path.isfile(full):
        raise HostError("`%s` is not in the skill" % path)
    return full


def module_name(path):
    return os.path.splitext(path)[0].replace(os.sep, ".").replace("/", ".")


def tools_of_module(skill, path):
    """Returns the functions with the decorator `@tool`, by their names in the module."""
    from gaia.agents.base.tools import REGISTERED

    module = load(inside(skill, path), module_name(path))
    own = vars(module)
    marked = {id(function) for function in REGISTERED}
    tools = {name: value for name, value in own.items() if id(value) in marked and callable(value)}
    for function in REGISTERED:
        # If there is another decorator above `@tool`, call the function that it returned.
        name = getattr(function, "__name__", None)
        if getattr(function, "__module__", None) == module.__name__ and callable(own.get(name)):
            tools.setdefault(name, own[name])
    return tools


def tools_of_actions(skill, actions):
    """Returns the handler functions of OpenClaw actions, by the name of the action."""
    tools, modules = {}, {}
    for action in actions:
        name, separator, handler = action.partition("=")
        if not separator or not name or not handler:
            raise HostError("`%s` is not NAME=PATH:FUNCTION" % action)
        path, function = split_handler(handler)
        full = inside(skill, path)
        if full not in modules:
            modules[full] = load(full, module_name(os.path.relpath(full, skill)))
        names = (function,) if function else (name, name.replace("-", "_")) + HANDLER_NAMES
        found = [getattr(modules[full], each, None) for each in names]
        found = [each for each in found if callable(each)]
        if not found:
            raise HostError("`%s` has no function `%s`" % (path, "`, `".join(names)))
        tools[name] = found[0]
    return tools


def split_handler(handler):
    """Splits `path:function` or `path#function`; the function is optional."""
    for mark in (":", "#"):
        path, separator, function = handler.rpartition(mark)
        if separator and path:
            return path, function
    return handler, ""


def caller(function):
    """Wraps a function so that all its arguments, even positional-only ones, can be passed by name."""
    code = getattr(function, "__code__", None)
    count = getattr(code, "co_posonlyargcount", 0)
    if not count:
        return lambda args: function(**args)
    names = code.co_varnames[:count]

    def call(args):
        args = dict(args)
        first = []
        for name in names:
            if name not in args:
                # If one positional argument is missing, later ones cannot be passed by position.
                break
            first.append(args.pop(name))
        return function(*first, **args)

    return call


class Loop:
    """Runs coroutines. All calls share one event loop, so that connections opened in one call stay usable."""

    def __init__(self):
        self._loop = None

    def result(self, value):
        """Awaits the value if it is a coroutine or another awaitable; otherwise returns it unchanged."""
        if not hasattr(value, "__await__"):
            return value
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)

        async def wait():
            return await value

        return self._loop.run_until_complete(wait())


def answer(line, tools, skill, loop):
    """Calls the requested tool and returns the response as a line of JSON."""
    ident = None
    try:
        request = json.loads(line)
        ident = request.get("id")
        call = tools.get(request.get("tool"))
        if call is None:
            raise HostError("there is no tool `%s`" % request.get("tool"))
        result = loop.result(call(request.get("args") or {}))
    except BaseException as error:  # noqa: B902: SystemExit must not end the host
        return dump({"id": ident, "ok": False, "error": describe(error, skill)})
    try:
        return dump({"id": ident, "ok": True, "result": result})
    except BaseException as error:
        described = {"type": "NotSerialisable", "message": str(error)[:MAX_MESSAGE]}
        return dump({"id": ident, "ok": False, "error": described})


def arguments(words):
    """Parses the command line. Messages are short, because the engine is the only caller."""
    skill, module, actions = None, None, []
    words = iter(words)
    for word in words:
        value = next(words, None)
        if value is None:
            raise HostError("`%s` needs a value" % word)
        if word == "--skill":
            skill = os.path.realpath(value)
        elif word == "--module":
            module = value
        elif word in ("--action", "--handler"):
            actions.append(value)
        else:
            raise HostError("`%s` is not an argument" % word)
    if skill is None or (module is None) == (not actions):
        raise HostError("--skill and either --module or --action are needed")
    return skill, module, actions


def main():
    wire = Wire()
    skill = ""
    try:
        skill, module, actions = arguments(sys.argv[1:])
        # The module must not see the host's own arguments.
        sys.argv[:] = [os.path.join(skill, module) if module else skill]
        import_path(skill)
        if module is not None:
            found = tools_of_module(skill, module)
        else:
            found = tools_of_actions(skill, actions)
        tools = {name: caller(function) for name, function in found.items()}
    except BaseException as error:  # noqa: B902: a module can call `sys.exit()` when it is imported
        wire.send(dump({"ready": False, "error": describe(error, skill)}))
        return 1
    version = "%d.%d.%d" % sys.version_info[:3]
    wire.send(dump({"ready": True, "python": version, "tools": sorted(tools)}))
    loop = Loop()
    for line in wire.lines():
        wire.send(answer(line, tools, skill, loop))
    return 0


if __name__ == "__main__":
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        # `sys.exit` would wait for the module's threads and run its exit handlers.
        os._exit(code)
