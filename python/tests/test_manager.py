"""Tests that `SkillManager` behaves like GAIA's."""

from __future__ import annotations

import os
import threading

import savoir_skills
from savoir_skills import InvalidSkillError, SkillManager, SkillNotFoundError, ToolRegistry
from support import MINIMAL, TOOLS, SkillTestCase, yes


class Manager(SkillTestCase):
    def manager(self, **options):
        return SkillManager(
            agent_skill_dirs=[self.folder / "agent"],
            claude_skill_dirs=[self.folder / "claude"],
            registry=ToolRegistry(),
            approve=yes,
            **options,
        )

    def test_roots_in_order_of_precedence(self):
        roots = self.manager().roots
        self.assertEqual([root.label for root in roots], ["agent-bundled", "user", "claude-import"])
        self.assertEqual([root.read_only for root in roots], [True, False, True])
        self.assertEqual(roots[1].path, self.home / ".gaia" / "skills")
        self.assertEqual(len(self.manager(include_claude_roots=False).roots), 2)

    def test_gaia_config_dir_changes_the_user_folder(self):
        os.environ["GAIA_CONFIG_DIR"] = str(self.folder / "config")
        self.assertEqual(self.manager().user_root, self.folder / "config" / "skills")

    def test_default_claude_folders(self):
        roots = SkillManager(project_dir=self.folder / "project").roots
        self.assertEqual(
            [root.path for root in roots[1:]],
            [self.folder / "project/.claude/skills", self.home / ".claude/skills"],
        )

    def test_discover_and_list(self):
        self.skill("agent", "b-skill")
        self.skill("home/.gaia/skills", "a-skill")
        manager = self.manager()
        self.assertEqual(set(manager.discover()), {"a-skill", "b-skill"})
        self.assertEqual([skill.name for skill in manager.list_skills()], ["a-skill", "b-skill"])
        installed = manager.list_installed()
        self.assertEqual([(one.name, one.version, one.security_tier) for one in installed],
                         [("a-skill", "0.1.0", "experimental")])  # fmt: skip
        self.assertEqual((installed[0].root, installed[0].read_only), ("user", False))

    def test_skill_in_earlier_folder_shadows_the_other(self):
        winner = self.skill("agent", "same")
        loser = self.skill("claude", "same")
        manager = self.manager()
        self.assertEqual(manager.resolve_path("same"), winner)
        self.assertEqual([skill.directory for skill in manager.shadowed("same")], [loser])
        self.assertEqual(len(manager.shadowed()), 1)
        self.assertEqual(manager.shadowed("other"), [])

    def test_plain_skill_of_claude_code(self):
        text = "---\nname: plain\ndescription: Shows it. Use when testing.\n---\nText.\n"
        self.skill("claude", "plain", text, tools=None)
        skill = self.manager().load("plain")
        self.assertEqual((skill.security_tier, skill.tools, skill.body), ("experimental", [], "Text.\n"))

    def test_broken_skill_is_reported_and_skipped(self):
        folder = self.skill("agent", "broken", "---\nname: [x]\n---\n")
        self.skill("agent", "good")
        manager = self.manager()
        with self.assertLogs("savoir_skills", "ERROR"):
            self.assertEqual(set(manager.discover()), {"good"})
        self.assertEqual(list(manager.discovery_errors), [str(folder)])

    def test_broken_skill_asked_for_by_name_raises_its_error(self):
        text = MINIMAL.format(name="broken").replace("network:none", "disk:read")
        folder = self.skill("home/.gaia/skills", "broken", text)
        manager = self.manager()
        with self.assertRaises(InvalidSkillError) as caught:
            manager.load("broken")
        self.assertIn("`disk` is not a permission domain", str(caught.exception))
        self.assertIn(str(folder), str(caught.exception))
        with self.assertRaises(SkillNotFoundError):
            manager.load("other")

    def test_cache_and_reload(self):
        self.skill("agent", "one")
        manager = self.manager()
        self.assertEqual(len(manager.discover()), 1)
        self.skill("agent", "two")
        self.assertEqual(len(manager.discover()), 1)
        self.assertEqual(len(manager.reload()), 2)

    def test_error_for_unknown_skill_lists_skills(self):
        self.skill("agent", "one")
        with self.assertRaises(SkillNotFoundError) as caught:
            self.manager().get("none")
        self.assertIn("one", str(caught.exception))
        self.assertIsInstance(caught.exception, LookupError)

    def test_load_reads_the_file_again(self):
        folder = self.skill("agent", "one")
        manager = self.manager()
        manager.discover()
        (folder / "SKILL.md").write_text(MINIMAL.format(name="one") + "More.\n")
        self.assertIn("More.", manager.load("one").body)

    def test_resource_path(self):
        folder = self.skill("agent", "one")
        manager = self.manager()
        self.assertEqual(manager.resource_path("one", "tools.py"), folder / "tools.py")
        (folder / "out").symlink_to("/etc")
        for relative in ("../../x", "/etc/passwd", "out/passwd", "missing.txt"):
            with self.assertRaises(InvalidSkillError):
                manager.resource_path("one", relative)

    def test_load_skill_registers_tools_that_run_in_the_sandbox(self):
        self.skill("agent", "web-search")
        registry = ToolRegistry()
        manager = SkillManager(agent_skill_dirs=[self.folder / "agent"], registry=registry, approve=yes)
        manager.load_skill("web-search")
        entry = registry["web-search/greet"]
        self.assertEqual(
            {key: entry[key] for key in ("name", "qualified_name", "description", "atomic", "skill", "skill_version")},
            {"name": "greet", "qualified_name": "web-search/greet", "description": "Return a greeting",
             "atomic": False, "skill": "web-search", "skill_version": "0.1.0"},
        )  # fmt: skip
        self.assertEqual(entry["parameters"]["name"]["type"], "string")
        self.assertTrue(entry["parameters"]["name"]["required"])
        self.assertEqual(entry["function"](name="Ada"), {"message": "Hello, Ada!"})
        self.assertEqual(registry.call("greet", {"name": "Bo"}), {"message": "Hello, Bo!"})

    def test_skill_with_mismatched_tools_is_not_loaded(self):
        cases = {
            "undeclared": TOOLS + "\n\n@tool\ndef other() -> dict:\n    \"\"\"Other.\"\"\"\n    return {}\n",
            "undecorated": TOOLS.replace("@tool\n", ""),
            "missing": TOOLS.replace("def greet", "def hello"),
            "parameter": TOOLS.replace("name: str", "who: str"),
            "optional": TOOLS.replace("name: str", 'name: str = "x"'),
            "type": TOOLS.replace("name: str", "name: int"),
            "docstring": TOOLS.replace('    """Return a greeting for the given name."""\n', ""),
            "syntax": "def",
        }
        for name, tools in cases.items():
            with self.subTest(name):
                self.skill("agent", name, tools=tools)
                registry = ToolRegistry()
                manager = SkillManager(agent_skill_dirs=[self.folder / "agent"], registry=registry)
                with self.assertRaises(InvalidSkillError) as caught:
                    manager.load_skill(name)
                self.assertTrue(caught.exception.diagnostics)
                self.assertEqual(registry, {})

    def test_skill_without_tools_registers_nothing(self):
        text = "---\nname: plain\ndescription: Shows it. Use when testing.\n---\nText.\n"
        self.skill("agent", "plain", text)
        manager = self.manager()
        manager.load_skill("plain")
        self.assertEqual(manager._registry, {})

    def test_watching(self):
        folder = self.skill("agent", "one")
        manager = self.manager()
        manager.discover()
        changed = threading.Event()
        self.assertEqual(manager.start_watching(changed.set), 1)
        self.addCleanup(manager.stop_watching)
        self.assertTrue(manager.is_watching)
        (folder / "SKILL.md").write_text(MINIMAL.format(name="one").replace("0.1.0", "0.2.0"))
        self.assertTrue(changed.wait(10))
        self.assertEqual(manager.get("one").version, "0.2.0")
        manager.stop_watching()
        manager.stop_watching()
        self.assertFalse(manager.is_watching)

    def test_default_manager(self):
        first = savoir_skills.get_default_manager()
        self.assertIs(savoir_skills.get_default_manager(), first)
        savoir_skills.reset_default_manager()
        self.assertIsNot(savoir_skills.get_default_manager(), first)

    def test_install_from_a_folder(self):
        source = self.skill("source", "hello-there")
        manager = self.manager()
        installed = manager.install(str(source))
        self.assertEqual([skill.name for skill in installed], ["hello-there"])
        self.assertEqual(manager.resolve_path("hello-there"), self.home / ".gaia/skills/hello-there")
        self.assertTrue((self.home / ".gaia/skills/skill-lock.json").is_file())
        manager.load_skill("hello-there")

    def test_install_failure_has_a_hint(self):
        with self.assertRaises(savoir_skills.CommandError) as caught:
            self.manager().install(str(self.folder / "none"))
        self.assertTrue(caught.exception.message)

    def test_install_into_another_folder_is_refused(self):
        manager = SkillManager(user_skills_root=self.folder / "elsewhere")
        with self.assertRaises(savoir_skills.SavoirError):
            manager.install("x")
