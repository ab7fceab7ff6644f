"""Tests GAIA's SKILL.md format specification 0.1.0, section by section.

Each class is named after the section that it tests. One difference is on purpose: code of a skill never
runs in the calling process, so nothing of it runs while it is loaded.
"""

from __future__ import annotations

import json
import os
import re
import socket

import savoir_skills
from savoir_skills import Agent, InvalidSkillError, OpenClawAdapter, SavoirError, SkillManager, ToolRegistry
from support import MINIMAL, TOOLS, SkillTestCase, yes

# The full example of section 2.1.
FULL = """---
# === Identity (required) ===
name: web-search                          # Unique skill identifier (lowercase, hyphens)
version: 1.0.0                            # SemVer version string
description: "Search the web using Brave Search API"
author: AMD                               # Publisher name or GitHub handle
license: MIT                              # SPDX license identifier

# === Permissions (required) ===
permissions:
  - network:read                          # Can make outbound HTTP requests
  - filesystem:none                       # No file access

# === Requirements (optional) ===
requirements:
  model: ">=7B"                           # Minimum model parameter count
  context: ">=8K"                         # Minimum context window (tokens)
  python: ">=3.10"                        # Python version constraint
  dependencies:                           # Python packages (pip format)
    - requests>=2.31
  node_dependencies:                      # Node packages (for MCP skills)
    - "@brave/brave-search-mcp-server"
  env_vars:                               # Required environment variables
    - BRAVE_API_KEY
  hardware:                               # Hardware hints (advisory, not enforced)
    npu: optional                         # required | optional | none
    gpu_vram: ">=0GB"                     # Minimum GPU VRAM

# === Tools (required) ===
tools:
  - name: search_web
    description: "Search the web for current information"
    parameters:
      query: {type: string, required: true}
      max_results: {type: integer, required: false, default: 5}
    returns: {type: object}
    atomic: false                          # Maps to @tool(atomic=...) flag

# === Security (required) ===
security_tier: verified                   # verified | community | experimental

# === Marketplace (optional) ===
registry: https://registry.amd-gaia.ai   # Skill registry URL
tags:
  - search
  - web
  - brave
homepage: https://github.com/amd/gaia-skills/tree/main/web-search
repository: https://github.com/amd/gaia-skills
---

# Web Search Skill

Search the web for current information using the Brave Search API.
"""

# The tools.py of section 5.3, without the request itself.
SEARCH = '''from gaia.agents.base.tools import tool


@tool
def search_web(query: str, max_results: int = 5) -> dict:
    """Search the web for current information using Brave Search API."""
    return {"query": query, "max_results": max_results}
'''


def errors(text: str) -> list[str]:
    return [str(found) for found in savoir_skills.check(text=text).diagnostics if found.severity == "error"]


def without(text: str, field: str) -> str:
    """Removes a top-level field from the text."""
    return re.sub(rf"^{field}:.*\n(?:(?: |- ).*\n)*", "", text, flags=re.MULTILINE)


def replaced(field: str, value: str) -> str:
    return re.sub(rf"^{field}:.*\n(?:(?: |- ).*\n)*", f"{field}: {value}\n", FULL, flags=re.MULTILINE)


class Section2FileFormat(SkillTestCase):
    def test_full_schema(self):
        skill = savoir_skills.read(text=FULL)
        self.assertEqual((skill.dialect, skill.name, skill.version), ("gaia", "web-search", "1.0.0"))
        self.assertEqual((skill.authors, skill.license, skill.security_tier), (["AMD"], "MIT", "verified"))
        self.assertEqual(skill.permissions, ["network:read", "filesystem:none"])
        self.assertEqual(skill.tags, ["search", "web", "brave"])
        (tool,) = skill.tools
        self.assertEqual(tool["name"], "search_web")
        self.assertEqual(skill.body.split(), FULL.split("---\n")[2].split())
        self.assertEqual(errors(FULL), [])

    def test_requirements(self):
        text = json.dumps(savoir_skills.read(text=FULL).requirements)
        for value in ("7", "8", ">=3.10", "requests>=2.31", "@brave/brave-search-mcp-server", "BRAVE_API_KEY", "optional"):
            self.assertIn(value, text)

    def test_required_fields(self):
        for field in ("name", "version", "description", "author", "license", "permissions", "tools", "security_tier"):
            with self.subTest(field):
                self.assertTrue(errors(without(FULL, field)), field)

    def test_optional_fields(self):
        for field in ("requirements", "registry", "tags", "homepage", "repository"):
            with self.subTest(field):
                self.assertEqual(errors(without(FULL, field)), [])

    def test_wrong_values(self):
        wrong = {
            "name": ["Web-Search", "1-search", "web_search", "x" * 65, "[]"],
            "version": ["1.0", "v1.0.0", "1", "01.0.0"],
            "description": ["''", "x" * 201],
            "permissions": ["network:read", "[network]", "[everything:read]", "[network:delete]", "['']"],
            "tools": ["[]", "{}"],
            "security_tier": ["gold", "Verified"],
        }
        for field, values in wrong.items():
            for value in values:
                with self.subTest(field, value=value):
                    self.assertTrue(errors(replaced(field, value)), f"{field}: {value}")

    def test_names(self):
        for name in ("a", "web-search", "a1-b2", "x" * 64):
            with self.subTest(name):
                self.assertEqual(errors(replaced("name", name)), [])


class Section3Permissions(SkillTestCase):
    DOMAINS = {
        "filesystem": "read write none",
        "network": "read write none",
        "shell": "execute none",
        "desktop": "control none",
        "mcp": "connect none",
        "env": "read none",
        "database": "read write none",
    }

    def test_domains_and_levels(self):
        levels = {level for words in self.DOMAINS.values() for level in words.split()}
        for domain, words in self.DOMAINS.items():
            for level in levels:
                with self.subTest(f"{domain}:{level}"):
                    # Accepted, although the sandbox cannot enforce it (screen, MCP, databases).
                    found = errors(replaced("permissions", f"['{domain}:{level}']"))
                    found = [one for one in found if "unenforceable-permission" not in one]
                    self.assertEqual(not found, level in words.split(), found)

    def test_scopes(self):
        scopes = [
            "filesystem:read:~/.gaia/data/**", "filesystem:write:./output/**", "network:read:*.brave.com",
            "shell:execute:git,npm",
        ]  # fmt: skip
        text = replaced("permissions", json.dumps(scopes))
        self.assertEqual(errors(text), [])
        self.assertEqual(savoir_skills.read(text=text).permissions, scopes)


class Tools(SkillTestCase):
    """Tests sections 4 and 5 with real runs in the sandbox."""

    def load(self, name: str, text: str, tools: str, files: dict[str, str] | None = None, approve=yes):
        folder = self.skill("home/.gaia/skills", name, text, tools)
        for path, content in (files or {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content)
        registry = ToolRegistry()
        SkillManager(registry=registry, approve=approve).load_skill(name)
        return registry

    def minimal(self, name: str = "demo", **fields: str) -> str:
        text = MINIMAL.format(name=name)
        for field, value in fields.items():
            text = re.sub(rf"^{field}:.*\n(?:(?: |- ).*\n)*", f"{field}: {value}\n", text, flags=re.MULTILINE)
        return text


class Section4Tiers(Tools):
    def test_experimental_skill_is_confined(self):
        secret = self.home / "secret.txt"
        secret.write_text("hidden")
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        port = server.getsockname()[1]
        tools = f'''from gaia.agents.base.tools import tool


@tool
def greet(name: str) -> dict:
    """List the accessible files."""
    import os, socket, subprocess
    found = {{"home": os.path.exists({str(secret)!r}), "network": False, "shell": False}}
    try:
        socket.create_connection(("127.0.0.1", {port}), 1)
        found["network"] = True
    except OSError:
        pass
    try:
        found["shell"] = subprocess.run(["/bin/sh", "-c", "exit 0"]).returncode == 0
    except OSError:
        pass
    return found
'''
        registry = self.load("demo", self.minimal(), tools)
        self.assertEqual(registry.call("greet", {"name": "x"}), {"home": False, "network": False, "shell": False})

    def test_each_run_of_an_untrusted_skill_needs_approval(self):
        asked = []

        def approve(one):
            asked.append(one)
            return False

        registry = self.load("demo", self.minimal(), TOOLS, approve=approve)
        with self.assertRaises(savoir_skills.ApprovalNeededError):
            registry.call("greet", {"name": "Ada"})
        self.assertEqual(sorted(asked[0].permissions), ["filesystem:none", "network:none"])


class Section5Registration(Tools):
    def test_registry_entry_fields(self):
        text = without(FULL, "requirements")
        registry = self.load("web-search", text, SEARCH)
        self.assertEqual(list(registry), ["web-search/search_web"])
        entry = registry["web-search/search_web"]
        self.assertEqual(entry["name"], "search_web")
        self.assertEqual(entry["qualified_name"], "web-search/search_web")
        self.assertEqual(entry["description"], "Search the web for current information")
        self.assertEqual((entry["atomic"], entry["skill"], entry["skill_version"]), (False, "web-search", "1.0.0"))
        self.assertEqual(entry["parameters"]["query"]["type"], "string")
        self.assertTrue(entry["parameters"]["query"]["required"])
        self.assertFalse(entry["parameters"]["max_results"].get("required", False))
        self.assertTrue(callable(entry["function"]))

    def test_default_value_in_manifest_is_used(self):
        text = without(FULL, "requirements").replace("network:read", "network:none").replace("verified ", "experimental ")
        registry = self.load("web-search", text, SEARCH)
        self.assertEqual(registry.call("search_web", {"query": "x"}), {"query": "x", "max_results": 5})
        with self.assertRaises(savoir_skills.WrongCallError):
            registry.call("search_web", {})
        with self.assertRaises(savoir_skills.WrongCallError):
            registry.call("search_web", {"query": 3})

    def test_two_skills_with_the_same_tool_name(self):
        self.skill("home/.gaia/skills", "one")
        self.skill("home/.gaia/skills", "two")
        registry = ToolRegistry()
        manager = SkillManager(registry=registry, approve=yes)
        manager.load_skill("one")
        manager.load_skill("two")
        self.assertEqual(sorted(registry), ["one/greet", "two/greet"])
        with self.assertRaises(SavoirError):
            registry.call("greet", {"name": "x"})
        self.assertEqual(registry.call("two/greet", {"name": "x"}), {"message": "Hello, x!"})

    def test_tools_can_import_other_modules_of_the_skill(self):
        tools = TOOLS.replace("@tool", "from lib.words import HELLO\n\n\n@tool").replace('f"Hello, {name}!"', "HELLO + name")
        registry = self.load("demo", self.minimal(), tools, {"lib/words.py": 'HELLO = "Hi "\n', "lib/__init__.py": ""})
        self.assertEqual(registry.call("greet", {"name": "Ada"}), {"message": "Hi Ada"})

    def test_only_declared_environment_variables_are_passed(self):
        os.environ.update(BRAVE_API_KEY="brave", OTHER_TOKEN="other")
        text = self.minimal().replace("security_tier:", "requirements:\n  env_vars: [BRAVE_API_KEY]\nsecurity_tier:")
        tools = TOOLS.replace(
            'return {"message": f"Hello, {name}!"}',
            'import os\n    return {"message": [os.environ.get("BRAVE_API_KEY"), os.environ.get("OTHER_TOKEN")]}',
        )
        registry = self.load("demo", text, tools)
        self.assertEqual(registry.call("greet", {"name": "x"}), {"message": ["brave", None]})

    def test_descriptive_errors(self):
        folder = self.skill("home/.gaia/skills", "demo", tools=TOOLS.replace("name: str", "who: str"))
        with self.assertRaises(InvalidSkillError) as caught:
            SkillManager(registry=ToolRegistry()).load_skill("demo")
        self.assertIn("who", " ".join(str(one) for one in caught.exception.diagnostics), folder)

    def test_loading_a_skill_executes_no_code_of_it(self):
        marker = self.folder / "marker"
        self.load("demo", self.minimal(), f"open({str(marker)!r}, 'w')\n" + TOOLS)
        self.assertFalse(marker.exists())


class Section6Discovery(SkillTestCase):
    def test_programmatic_api(self):
        source = self.skill("source", "web-search", without(FULL, "requirements").replace("verified ", "experimental "), SEARCH)
        manager = SkillManager(include_claude_roots=False, approve=yes)
        manager.install(str(source))
        listed = [f"{skill.name} {skill.version} [{skill.security_tier}]" for skill in manager.list_installed()]
        self.assertEqual(listed, ["web-search 1.0.0 [experimental]"])
        agent = Agent(manager=manager, approve=yes)
        agent.load_skill("web-search")
        self.assertEqual(list(agent.tools), ["web-search/search_web"])
        manager.reload()
        self.assertEqual(manager.get("web-search").directory, manager.resolve_path("web-search"))

    def test_skill_that_does_not_exist(self):
        with self.assertRaises(savoir_skills.SkillNotFoundError):
            Agent(manager=SkillManager()).load_skill("web-search")


class Section7Folders(SkillTestCase):
    def test_lock_file(self):
        source = self.skill("source", "hello")
        SkillManager().install(str(source))
        skills = self.home / ".gaia" / "skills"
        self.assertTrue((skills / "hello" / "SKILL.md").is_file())
        self.assertTrue((skills / "hello" / "tools.py").is_file())
        lock = json.loads((skills / "skill-lock.json").read_text())
        self.assertEqual(lock["version"], 1)
        entry = lock["skills"]["hello"]
        self.assertEqual((entry["version"], entry["security_tier"]), ("0.1.0", "experimental"))
        self.assertRegex(entry["integrity"], r"^sha256-[A-Za-z0-9+/=]+$")
        self.assertRegex(entry["installed_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(entry["dependencies_hash"], r"^sha256-[A-Za-z0-9+/=]+$")


class Section8OpenClaw(SkillTestCase):
    def test_openclaw_skill_is_always_experimental(self):
        folder = self.folder / "claw"
        (folder / "handlers").mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            "---\nname: Text Tools\nclaw_version: '1'\ndescription: Counts. Use for texts.\nsecurity_tier: verified\n"
            "actions:\n  - name: count-words\n    description: Count words\n    parameters:\n"
            "      text: {type: string, required: true}\n    handler: handlers/count.py#run\n---\n# Text\n"
        )
        (folder / "handlers/count.py").write_text("def run(text):\n    return len(text.split())\n")
        adapter = OpenClawAdapter(folder, approve=yes)
        self.assertEqual(adapter.security_tier, "experimental")
        agent = Agent(approve=yes)
        loaded = agent.load_skill(adapter)
        self.assertEqual(loaded.security_tier, "experimental")
        (entry,) = agent.tools.values()
        self.assertEqual(entry["function"](text="a b c"), 3)


class Section9Agents(SkillTestCase):
    MANIFEST = """name: gaia-agent
version: 0.24.0
description: "Document Q&A with RAG capabilities"
skills:
  - name: rag-search
    version: ">=0.1.0"
    required: true
  - name: web-search
    version: ">=1.0.0"
    required: false
"""

    def test_required_and_optional_skills(self):
        self.skill("skills", "rag-search")
        path = self.folder / "AGENT.yaml"
        path.write_text(self.MANIFEST)
        agent = Agent.from_file(path, skills=[self.folder / "skills"], approve=yes)
        self.assertEqual((agent.manifest.name, agent.manifest.version), ("gaia-agent", "0.24.0"))
        self.assertEqual(list(agent.skills), ["rag-search"])
        self.assertEqual({one.name: one.role for one in agent.manifest.members}["rag-search"], "required")
        self.assertEqual(agent.call("greet", {"name": "Ada"}), {"message": "Hello, Ada!"})

    def test_missing_required_skill(self):
        self.skill("skills", "other")
        path = self.folder / "AGENT.yaml"
        path.write_text(self.MANIFEST)
        with self.assertRaises(SavoirError) as caught:
            Agent.from_file(path, skills=[self.folder / "skills"])
        self.assertIn("rag-search", str(caught.exception))

    def test_register_tools_and_inline_tools(self):
        self.skill("home/.gaia/skills", "rag-search")

        class GaiaAgent(Agent):
            def _register_tools(self):
                self.load_skill("rag-search")

        agent = GaiaAgent(approve=yes)

        @agent.tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        self.assertEqual(agent.call("add", {"a": 1, "b": 2}), 3)
        self.assertEqual(agent.call("rag-search/greet", {"name": "Bo"}), {"message": "Hello, Bo!"})
        self.assertEqual({one["function"]["name"] for one in agent.tool_schemas()}, {"add", "greet"})


class Section10Marketplace(SkillTestCase):
    def needing(self, name: str, needed: str, version: str = ">=0.1.0") -> None:
        text = MINIMAL.format(name=name).replace(
            "security_tier:", f'requirements:\n  skills:\n    - name: {needed}\n      version: "{version}"\nsecurity_tier:'
        )
        self.skill("skills", name, text)

    def agent(self, name: str) -> Agent:
        path = self.folder / "AGENT.yaml"
        path.write_text(f"name: a\nversion: 0.1.0\nskills:\n  - name: {name}\n")
        return Agent.from_file(path, skills=[self.folder / "skills"])

    def test_dependencies_of_skills_are_included(self):
        self.needing("rag-search", "auth-helpers")
        self.skill("skills", "auth-helpers")
        roles = {one.name: one.role for one in self.agent("rag-search").manifest.members}
        self.assertEqual(roles, {"rag-search": "required", "auth-helpers": "dependency"})

    def test_dependency_cycle(self):
        self.needing("one", "two")
        self.needing("two", "one")
        with self.assertRaises(SavoirError) as caught:
            self.agent("one")
        self.assertIn("one", str(caught.exception))

    def test_version_outside_the_range_is_an_error(self):
        self.needing("one", "two", ">=2.0.0")
        self.skill("skills", "two")
        with self.assertRaises(SavoirError) as caught:
            self.agent("one")
        self.assertIn("2.0.0", str(caught.exception))


class AppendixA(SkillTestCase):
    def test_minimal_skill(self):
        self.assertEqual(errors(MINIMAL.format(name="hello-world").replace(" Use when somebody arrives.", "")), [])
        self.skill("home/.gaia/skills", "hello-world")
        agent = Agent(approve=yes)
        agent.load_skill("hello-world")
        self.assertEqual(agent.call("greet", {"name": "Ada"}), {"message": "Hello, Ada!"})
