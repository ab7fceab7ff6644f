"""Tests runs in the sandbox: results, events, approval, failure, cancellation."""

from __future__ import annotations

import asyncio
import time

import savoir_skills
from savoir_skills import ApprovalNeededError, RunError
from support import EXAMPLES, SkillTestCase, yes

GREET = str(EXAMPLES / "hello-world" / "say_hello")

COMMANDS = """---
name: shell-tools
version: 1.0.0
description: Prints lines. Use when testing events.
author: developer
timeout: 60
---

# Shell tools

### lines

Print some lines.

#### Command

```bash
sh -c "echo one; echo zwei-é; echo three >&2"
```

### slow

Wait.

#### Command

```bash
sh -c "echo started; sleep 30"
```

### fail

Fail.

#### Command

```bash
sh -c "echo no; exit 7"
```
"""


class Runs(SkillTestCase):
    def commands(self):
        return str(self.skill("x", "shell-tools", COMMANDS, tools=None))

    def test_value_of_a_python_tool(self):
        result = savoir_skills.run(GREET, {"name": "Ada"}, approve=yes)
        self.assertTrue(result.success)
        self.assertEqual(result.value, {"greeting": "Hello, Ada!"})

    def test_run_without_approval_lists_permissions(self):
        with self.assertRaises(ApprovalNeededError) as caught:
            savoir_skills.run(GREET)
        error = caught.exception
        self.assertEqual(error.permissions, ["network:none", "filesystem:none"])
        self.assertEqual(error.exit_code, 1)
        self.assertRegex(error.fingerprint, "^[0-9a-f]{32}$")
        result = savoir_skills.run(GREET, approve=error.fingerprint)
        self.assertEqual(result.value, {"greeting": "Hello, world!"})

    def test_approve_function_decides(self):
        asked = []
        with self.assertRaises(ApprovalNeededError):
            savoir_skills.run(GREET, approve=lambda one: asked.append(one) or False)
        self.assertEqual(len(asked), 1)
        self.assertEqual((asked[0].skill, len(asked[0].fingerprint)), (GREET, 32))

    def test_fingerprint_is_refused_after_files_changed(self):
        folder = self.skill("x", "hello")
        with self.assertRaises(ApprovalNeededError) as caught:
            savoir_skills.run(folder / "greet", {"name": "A"})
        (folder / "tools.py").write_text((folder / "tools.py").read_text() + "\n# changed\n")
        with self.assertRaises(RunError):
            savoir_skills.run(folder / "greet", {"name": "A"}, approve=caught.exception.fingerprint)

    def test_events_of_a_command(self):
        events = list(savoir_skills.stream(self.commands() + "/lines", approve=yes))
        out = "".join(event.text for event in events if event.data.get("stream") == "stdout")
        self.assertEqual(out, "one\nzwei-é\n")
        self.assertEqual(events[-1].kind, "result")
        self.assertTrue(events[-1].data["success"])

    def test_run_error_has_the_result(self):
        target = self.commands() + "/fail"
        with self.assertRaises(RunError) as caught:
            savoir_skills.run(target, approve=yes)
        self.assertEqual((caught.exception.result.exit_code, caught.exception.result.output), (7, "no"))
        self.assertEqual(caught.exception.code, "command-failed")
        self.assertFalse(savoir_skills.run(target, approve=yes, check=False).success)

    def test_wrong_calls(self):
        for target, params, code in (
            (GREET, {"nme": "x"}, None),
            (str(EXAMPLES / "hello-world" / "none"), None, "unknown-tool"),
            (str(self.folder / "missing" / "tool"), None, "no-skill"),
        ):
            with self.assertRaises(RunError) as caught:
                savoir_skills.run(target, params, approve=yes)
            if code is not None:
                self.assertEqual(caught.exception.code, code)
        with self.assertRaises(savoir_skills.WrongCallError):
            savoir_skills.run(GREET, allow={"everything": ["/"]})

    def test_values_with_hyphens_are_not_parsed_as_options(self):
        result = savoir_skills.run(GREET, {"name": "--json; $(id)"}, approve=yes)
        self.assertEqual(result.value, {"greeting": "Hello, --json; $(id)!"})

    def test_sandbox_denies_undeclared_access(self):
        secret = self.folder / "secret.txt"
        secret.write_text("secret")
        tools = f'''from gaia.agents.base.tools import tool


@tool
def greet(name: str) -> dict:
    """Read a file."""
    return {{"message": open({str(secret)!r}).read()}}
'''
        folder = self.skill("x", "reader", tools=tools)
        with self.assertRaises(RunError) as caught:
            savoir_skills.run(folder / "greet", {"name": "A"}, approve=yes)
        self.assertNotIn("secret\n", str(caught.exception.result.output))
        allowed = savoir_skills.run(folder / "greet", {"name": "A"}, approve=yes, allow={"read": [str(secret)]})
        self.assertEqual(allowed.value, {"message": "secret"})

    def test_timeout(self):
        start = time.monotonic()
        result = savoir_skills.run(self.commands() + "/slow", approve=yes, timeout=1, check=False)
        self.assertEqual(result.code, "timeout")
        self.assertLess(time.monotonic() - start, 20)

    def test_closing_the_iterator_ends_the_run(self):
        start = time.monotonic()
        events = savoir_skills.stream(self.commands() + "/slow", approve=yes)
        self.assertEqual(next(events).text, "started\n")
        events.close()
        self.assertLess(time.monotonic() - start, 10)

    def test_async_run_and_events(self):
        async def both():
            return await asyncio.gather(
                savoir_skills.run_async(GREET, {"name": "A"}, approve=yes),
                savoir_skills.run_async(GREET, {"name": "B"}, approve=yes),
            )

        self.assertEqual([one.value["greeting"] for one in asyncio.run(both())], ["Hello, A!", "Hello, B!"])

        async def collect():
            return [event async for event in savoir_skills.stream_async(self.commands() + "/lines", approve=yes)]

        self.assertEqual(asyncio.run(collect())[-1].kind, "result")

    def test_cancelling_ends_the_run(self):
        target = self.commands() + "/slow"

        async def cancelled():
            await asyncio.wait_for(savoir_skills.run_async(target, approve=yes), 1.5)

        start = time.monotonic()
        with self.assertRaises(asyncio.TimeoutError):
            asyncio.run(cancelled())
        self.assertLess(time.monotonic() - start, 15)

    def test_standard_input(self):
        text = COMMANDS.replace('sh -c "echo one; echo zwei-é; echo three >&2"', "cat")
        folder = self.skill("y", "shell-tools", text, tools=None)
        self.assertEqual(savoir_skills.run(folder / "lines", approve=yes, stdin="given").output, "given")
