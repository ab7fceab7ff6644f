"""Runs the host of Python tools and reports which line of the skill caused which access.

    python3 -I -B savoir_vetting.py MARK SKILL savoir_host.py ARGUMENTS...

The files that the skill opens, the programs it starts and the hosts it looks up are reported on
standard error, in lines that start with a record separator and MARK. The verdict does not depend on
these reports: the sandbox records the same accesses from outside. They only add the line numbers, so
a skill that falsifies them gains nothing.

A package that is not installed is replaced by a stand-in, so that the module continues as if the
package was installed. The stand-in accepts every call. If an argument is a URL, it sends the
arguments there, because the real package would probably do that.
"""

import json
import os
import sys
import types

MAX_NOTES = 400
MAX_TEXT = 1024

# Attributes of a stand-in with these suffixes become exception classes, because modules catch or
# raise them.
RAISED = ("Error", "Exception", "Timeout", "Warning")
METHODS = ("get", "post", "put", "patch", "delete", "head", "options")


class Notes:
    """Reports accesses, each with the line of the skill that caused it."""

    def __init__(self, mark, skill):
        self._mark = b"\x1e" + mark.encode("ascii")
        self._skill = skill + os.sep
        self._out = os.dup(2)
        self._left = MAX_NOTES
        self._busy = False
        prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
        self._quiet = tuple(os.path.join(each, "lib") for each in prefixes) + (self._skill,)

    def place(self):
        """The innermost frame in a file of the skill. Code without a file counts for its caller."""
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(self._skill):
                return name[len(self._skill) :], frame.f_lineno
            frame = frame.f_back
        return None

    def report(self, kind, value, write=False):
        place = self.place()
        if place is None or self._left <= 0:
            return
        self._left -= 1
        note = {"kind": kind, "value": str(value)[:MAX_TEXT], "write": write}
        note["file"], note["line"] = place
        os.write(self._out, self._mark + json.dumps(note).encode("ascii") + b"\n")

    def hook(self, event, args):
        if self._busy:
            return
        self._busy = True
        try:
            self.note(event, args)
        except Exception:  # noqa: BLE001: what a skill passes to a call may be anything
            pass
        finally:
            self._busy = False

    def note(self, event, args):
        if event == "open":
            path, mode, flags = args
            if not isinstance(path, (str, bytes)):
                return
            path = os.path.realpath(os.fsdecode(path))
            changes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
            write = bool(set(mode or "") & set("wax+")) or bool((flags or 0) & changes)
            if write or not path.startswith(self._quiet):
                self.report("open", path, write)
        elif event == "socket.getaddrinfo":
            self.report("host", args[0])
        elif event == "socket.connect":
            address = args[1]
            if isinstance(address, tuple):
                self.report("host", address[0])
        elif event == "subprocess.Popen":
            self.report("program", os.fsdecode(args[0]))
        elif event in ("os.exec", "os.posix_spawn"):
            self.report("program", os.fsdecode(args[0]))
        elif event == "os.system":
            self.report("program", "sh")


class StandIn:
    """Takes every call, for a package that is not installed."""

    def __init__(self, name):
        self.__dict__["stand_in_name"] = name

    def __getattr__(self, name):
        return attribute(self.stand_in_name, name)

    def __setattr__(self, name, value):
        self.__dict__[name] = value

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)):
            # It is used as a decorator.
            return args[0]
        send(self.stand_in_name, args, kwargs)
        return StandIn(self.stand_in_name + "()")

    def __mro_entries__(self, bases):
        return (object,)

    def __getitem__(self, key):
        return StandIn(self.stand_in_name + "[]")

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __bool__(self):
        return True

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __int__(self):
        return 0

    def __float__(self):
        return 0.0

    def __str__(self):
        return ""

    def __lt__(self, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__


def attribute(owner, name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name.endswith(RAISED):
        return type(name, (Exception,), {})
    return StandIn(owner + "." + name)


class StandInModule(types.ModuleType):
    def __getattr__(self, name):
        found = attribute(self.__name__, name)
        # Save the attribute, so that `raise` and `except` get the same exception class.
        setattr(self, name, found)
        return found


class Finder:
    """An import finder that provides a stand-in for each package that no other finder has."""

    def __init__(self, notes):
        self._notes = notes

    def find_spec(self, name, path=None, target=None):
        from importlib.machinery import ModuleSpec

        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top.startswith("_") or top == "gaia":
            return None
        if path is not None and not isinstance(sys.modules.get(top), StandInModule):
            return None
        if top == name:
            self._notes.report("missing", name)
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StandInModule(spec.name)

    def exec_module(self, module):
        pass


def send(name, args, kwargs):
    """Sends the arguments of a call to the first URL among them; does nothing without a URL."""
    values = list(args) + list(kwargs.values())
    urls = [each for each in values if isinstance(each, str) and each.startswith(("http://", "https://"))]
    if not urls:
        return
    from urllib import parse, request

    url, params = urls[0], kwargs.get("params")
    if params:
        url += ("&" if "?" in url else "?") + parse.urlencode(params, doseq=True)
    body = [kwargs[key] for key in ("json", "data", "content", "body", "files") if kwargs.get(key)]
    data = None
    if body:
        data = body[0]
        if not isinstance(data, bytes):
            data = (data if isinstance(data, str) else json.dumps(body, default=str)).encode()
    method = name.rpartition(".")[2].lower()
    method = method.upper() if method in METHODS else None
    headers = kwargs.get("headers")
    headers = headers if isinstance(headers, dict) else {}
    headers = {str(key): str(value) for key, value in headers.items()}
    for key in ("auth", "cookies"):
        if kwargs.get(key):
            headers["X-" + key] = str(kwargs[key])
    try:
        message = request.Request(url, data=data, headers=headers, method=method)
        request.urlopen(message, timeout=5).close()
    except Exception:  # noqa: BLE001: the real package would return a response or raise its own error
        pass


def main():
    mark, skill, host = sys.argv[1:4]
    skill = os.path.realpath(skill)
    sys.argv[:] = sys.argv[3:]
    notes = Notes(mark, skill)
    if hasattr(sys, "stdlib_module_names"):
        sys.meta_path.append(Finder(notes))
    sys.addaudithook(notes.hook)
    import runpy

    runpy.run_path(host, run_name="__main__")


if __name__ == "__main__":
    main()
