"""Finds and calls the program `savoir` that the wheel installs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig

from .errors import BinaryNotFoundError, CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

_PROGRAM = "savoir.exe" if os.name == "nt" else "savoir"

# Long enough for an installation that downloads a lot.
_TIMEOUT = 600


def find_binary() -> str:
    """The path of the program `savoir`. `SAVOIR_BINARY` names another one."""
    for path in _candidates():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise BinaryNotFoundError(
        "the program savoir was not found",
        code="binary-not-found",
        hints=["install the package again: pip install --force-reinstall savoir-skills", "or set SAVOIR_BINARY"],
    )


def _candidates() -> Iterator[str]:
    if chosen := os.environ.get("SAVOIR_BINARY"):
        yield chosen
        return
    yield os.path.join(sysconfig.get_path("scripts"), _PROGRAM)
    yield os.path.join(os.path.dirname(sys.executable), _PROGRAM)
    yield os.path.join(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")), _PROGRAM)
    # pip install --target
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(package, "bin", _PROGRAM)
    if found := shutil.which("savoir"):
        yield found


def call_json(
    args: Sequence[str], *, cwd: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a command that prints a JSON object and return it. Raises `CommandError` if it fails."""
    command = [find_binary(), *args]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"savoir {args[0]} did not end within {_TIMEOUT} s", code="timeout") from error
    try:
        document: dict[str, Any] = json.loads(done.stdout)
        failure: dict[str, Any] | None = document.get("error")
    except (ValueError, AttributeError):
        document, failure = {}, {}
    if failure is not None:
        raise command_error(failure, done.stderr.decode("utf-8", "replace"), done.returncode)
    return document


def command_error(failure: Mapping[str, Any], stderr: str, exit_code: int) -> CommandError:
    """Creates the exception for a failed command from its JSON error document, or from its stderr."""
    cls, fields = error_fields(failure, stderr, exit_code)
    return cls(**fields)


def error_fields(failure: Mapping[str, Any], stderr: str, exit_code: int) -> tuple[type[CommandError], dict[str, Any]]:
    rest = {key: value for key, value in failure.items() if key not in ("code", "message", "hints", "help")}
    lines = [line.partition(": ") for line in stderr.splitlines()]
    first = next((text for kind, _, text in lines if kind == "error"), stderr.strip() or "savoir failed")
    return CommandError, {
        "message": failure.get("message") or first,
        "code": failure.get("code") or "command-failed",
        "hints": failure.get("hints") or failure.get("help") or [text for kind, _, text in lines if kind == "hint"],
        "details": rest,
        "exit_code": exit_code,
    }
