"""Runs tools and prompts of skills in the sandbox, through the program `savoir`.

`run` waits for the result, `stream` yields events while the tool runs; `run_async` and
`stream_async` are their counterparts for asyncio.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field

from ._binary import error_fields, find_binary
from .errors import ApprovalNeededError, RunError, WrongCallError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from typing import IO, Any, Union

    Approve = Union[None, str, Callable[["Approval"], bool]]
    PathArg = Union[str, "os.PathLike[str]"]

# Seconds between the interrupt signal and the kill signal when a run is stopped.
_GRACE = 5.0

# Maximum length of an event line, above the program's own limit on output.
_MAX_LINE = 64 * 1024 * 1024

_GRANTS = ("read", "write", "host", "private-host", "program", "env")


@dataclass(frozen=True)
class Event:
    """One event of a run.

    Tools have `progress`, `output` (with `stream` and `text`) and `result`; prompts have `token`,
    `thought`, `done` and others. `error` says why a run did not start or failed.
    """

    kind: str
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of an `output` or a `token`, else nothing."""
        value = self.data.get({"output": "text", "token": "content"}.get(self.kind, ""), "")
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Approval:
    """A request for approval, passed to the `approve` function, which returns whether to run."""

    skill: str
    message: str
    fingerprint: str
    permissions: list[str]
    reasons: list[str]


@dataclass(frozen=True)
class RunResult:
    """The result of a run."""

    success: bool
    output: str
    value: Any = None
    """The return value of a Python tool, the output parsed as JSON, or the text of a model."""
    exit_code: int | None = None
    error: str | None = None
    code: str | None = None
    duration_ms: int = 0
    truncated: bool = False
    denied: list[dict[str, Any]] = field(default_factory=lambda: [])
    """The accesses that the sandbox denied, each with the options that would allow it."""


def run(
    target: PathArg,
    params: Mapping[str, Any] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = (),
    approve: Approve = None,
    allow: Mapping[str, Sequence[str]] | None = None,
    model: str | None = None,
    timeout: int | None = None,
    stdin: str | bytes | None = None,
    cwd: PathArg | None = None,
    env: Mapping[str, str] | None = None,
    untrusted: bool = False,
    check: bool = True,
) -> RunResult:
    """Run `skill/tool`, a script of a skill, or the prompt of a skill, and wait for its result.

    `approve` is the fingerprint of an `ApprovalNeededError`, or a function that takes an `Approval`
    and returns whether to run. With `check=False`, a tool that fails gives a result with
    `success=False` instead of an exception.
    """
    call = _Call(target, params, inputs, arguments, allow, model, timeout, stdin, cwd, env, untrusted)
    collected = _Collected()
    for event in _stream(call, approve):
        collected.add(event)
    return collected.result(call, check)


def stream(
    target: PathArg,
    params: Mapping[str, Any] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = (),
    approve: Approve = None,
    allow: Mapping[str, Sequence[str]] | None = None,
    model: str | None = None,
    timeout: int | None = None,
    stdin: str | bytes | None = None,
    cwd: PathArg | None = None,
    env: Mapping[str, str] | None = None,
    untrusted: bool = False,
) -> Iterator[Event]:
    """Like `run`, but yields the events. Closing the iterator stops the run."""
    return _stream(
        _Call(target, params, inputs, arguments, allow, model, timeout, stdin, cwd, env, untrusted), approve
    )


async def run_async(
    target: PathArg,
    params: Mapping[str, Any] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = (),
    approve: Approve = None,
    allow: Mapping[str, Sequence[str]] | None = None,
    model: str | None = None,
    timeout: int | None = None,
    stdin: str | bytes | None = None,
    cwd: PathArg | None = None,
    env: Mapping[str, str] | None = None,
    untrusted: bool = False,
    check: bool = True,
) -> RunResult:
    """Like `run`, for asyncio. Cancelling it stops the run."""
    call = _Call(target, params, inputs, arguments, allow, model, timeout, stdin, cwd, env, untrusted)
    collected = _Collected()
    events = _stream_async(call, approve)
    try:
        async for event in events:
            collected.add(event)
    finally:
        await events.aclose()
    return collected.result(call, check)


def stream_async(
    target: PathArg,
    params: Mapping[str, Any] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = (),
    approve: Approve = None,
    allow: Mapping[str, Sequence[str]] | None = None,
    model: str | None = None,
    timeout: int | None = None,
    stdin: str | bytes | None = None,
    cwd: PathArg | None = None,
    env: Mapping[str, str] | None = None,
    untrusted: bool = False,
) -> AsyncIterator[Event]:
    """Like `stream`, for asyncio."""
    return _stream_async(
        _Call(target, params, inputs, arguments, allow, model, timeout, stdin, cwd, env, untrusted), approve
    )


@dataclass(frozen=True)
class _Call:
    target: PathArg
    params: Mapping[str, Any] | None
    inputs: Mapping[str, Any] | None
    arguments: Sequence[str]
    allow: Mapping[str, Sequence[str]] | None
    model: str | None
    timeout: int | None
    stdin: str | bytes | None
    cwd: PathArg | None
    env: Mapping[str, str] | None
    untrusted: bool

    def command(self, fingerprint: str | None) -> list[str]:
        words = [find_binary(), "run", "--events"]
        if self.params is not None:
            words += ["--params-json", json.dumps(dict(self.params))]
        for name, value in (self.inputs or {}).items():
            words += ["--input", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        for kind, values in (self.allow or {}).items():
            if kind not in _GRANTS:
                raise WrongCallError(
                    f"there is no permission `{kind}` to allow", hints=[f"use one of {', '.join(_GRANTS)}"]
                )
            # With `=`, a value that starts with a hyphen is not parsed as an option.
            words += [f"--allow-{kind}={value}" for value in ([values] if isinstance(values, str) else values)]
        words += [f"--model={self.model}"] if self.model is not None else []
        words += [f"--timeout={self.timeout}"] if self.timeout is not None else []
        words += ["--untrusted"] if self.untrusted else []
        words += [f"--approve={fingerprint}"] if fingerprint is not None else []
        return [*words, "--", os.fspath(self.target), *self.arguments]

    def options(self) -> dict[str, Any]:
        return {"cwd": self.cwd, "env": None if self.env is None else dict(self.env)}

    def open_stdin(self) -> IO[bytes] | int:
        if self.stdin is None:
            return subprocess.DEVNULL
        file = tempfile.TemporaryFile()
        file.write(self.stdin.encode() if isinstance(self.stdin, str) else self.stdin)
        file.seek(0)
        return file


class _Collected:
    """Collects the events of a run and turns them into a result."""

    def __init__(self) -> None:
        self.final: Event | None = None
        self.error: Event | None = None
        self.tokens: list[str] = []

    def add(self, event: Event) -> None:
        if event.kind in ("result", "done", "workflow_complete"):
            self.final = event
        elif event.kind == "error":
            self.error = event
        elif event.kind == "token":
            self.tokens.append(event.text)

    def result(self, call: _Call, check: bool) -> RunResult:
        if self.error is not None:
            raise _run_error(self.error.data)
        result = self._result()
        if check and not result.success:
            hints = [f"the sandbox denied {one.get('what')}" for one in result.denied]
            message = f"{os.fspath(call.target)}: {result.error or 'the run failed'}"
            raise RunError(
                message, code=result.code or "failed", hints=hints, result=result, exit_code=result.exit_code or 1
            )
        return result

    def _result(self) -> RunResult:
        data = self.final.data if self.final is not None else {}
        if self.final is None or self.final.kind != "result":
            text = "".join(self.tokens)
            return RunResult(success=True, output=text, value=data.get("final_output", text))
        value = data.get("value", data.get("parsed"))
        return RunResult(
            success=bool(data.get("success")),
            output=data.get("output", ""),
            value=data.get("output", "") if value is None and "value" not in data else value,
            exit_code=data.get("exit_code"),
            error=data.get("error"),
            code=data.get("code"),
            duration_ms=data.get("duration_ms", 0),
            truncated=bool(data.get("truncated")),
            denied=list(data.get("denied", ())),
        )


def _run_error(failure: Mapping[str, Any], stderr: str = "", exit_code: int = 1) -> RunError:
    _, fields = error_fields(failure, stderr, exit_code)
    needs_approval = bool(failure.get("fingerprint"))
    return (ApprovalNeededError if needs_approval else RunError)(**fields)


def _approved(event: Event, call: _Call, approve: Approve) -> str | None:
    """Asks the caller's `approve` function about a refused run. Returns the fingerprint if it approves."""
    if event.kind != "error" or not callable(approve):
        return None
    error = _run_error(event.data)
    if not isinstance(error, ApprovalNeededError):
        return None
    asked = Approval(
        os.fspath(call.target), error.message, error.fingerprint, error.permissions, error.reasons
    )
    return error.fingerprint if approve(asked) else None


def _event(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
        return Event(event["event"], event["data"])
    except (ValueError, TypeError, KeyError):
        return None


def _stream(call: _Call, approve: Approve) -> Iterator[Event]:
    fingerprint = approve if isinstance(approve, str) else None
    while True:
        again = None
        for event in _run_once(call, fingerprint):
            # After the approval, an approval error is reported instead of asking again.
            again = again or (_approved(event, call, approve) if fingerprint is None else None)
            if again is None:
                yield event
        if again is None:
            return
        fingerprint = again


def _run_once(call: _Call, fingerprint: str | None) -> Iterator[Event]:
    stdin = call.open_stdin()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            call.command(fingerprint), stdin=stdin, stdout=subprocess.PIPE, stderr=errors, **call.options()
        )
        assert process.stdout is not None
        some = False
        try:
            for line in process.stdout:
                event = _event(line)
                if event is not None:
                    some = True
                    yield event
            code = process.wait()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(_GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            process.stdout.close()
            if not isinstance(stdin, int):
                stdin.close()
        if not some:
            raise _run_error({}, _read(errors), code)


async def _stream_async(call: _Call, approve: Approve):  # type: ignore[no-untyped-def]
    fingerprint = approve if isinstance(approve, str) else None
    while True:
        again = None
        events = _run_once_async(call, fingerprint)
        try:
            async for event in events:
                again = again or (_approved(event, call, approve) if fingerprint is None else None)
                if again is None:
                    yield event
        finally:
            await events.aclose()
        if again is None:
            return
        fingerprint = again


async def _run_once_async(call: _Call, fingerprint: str | None):  # type: ignore[no-untyped-def]
    stdin = call.open_stdin()
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *call.command(fingerprint),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=_MAX_LINE,
            **call.options(),
        )
        assert process.stdout is not None
        some = False
        try:
            async for line in process.stdout:
                event = _event(line)
                if event is not None:
                    some = True
                    yield event
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
                try:
                    await asyncio.wait_for(process.wait(), _GRACE)
                except asyncio.TimeoutError:
                    process.kill()
                    await process.wait()
                except asyncio.CancelledError:
                    process.kill()
                    raise
            if not isinstance(stdin, int):
                stdin.close()
        if not some:
            raise _run_error({}, _read(errors), code)


def _read(errors: IO[bytes]) -> str:
    errors.seek(0)
    return errors.read(1 << 20).decode("utf-8", "replace")
