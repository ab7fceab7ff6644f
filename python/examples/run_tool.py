"""Checks a skill, scans it, and runs its tool in the sandbox."""

import savoir_skills

savoir_skills.check("examples/hello-world").raise_for_errors()
assert savoir_skills.scan("examples/hello-world").verdict == "allow"


def approve(asked: savoir_skills.Approval) -> bool:
    print(f"{asked.skill} asks for {', '.join(asked.permissions)}")
    return asked.permissions == ["network:none", "filesystem:none"]


result = savoir_skills.run("examples/hello-world/say_hello", {"name": "Ada"}, approve=approve)
print(result.value["greeting"])
# prints: Hello, Ada!
