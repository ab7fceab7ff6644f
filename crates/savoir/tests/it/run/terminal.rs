//! Tests a tool that runs on a terminal.

use super::{RunTestEnv, has_program};
use crate::support::{Transcript, terminal};

/// Runs a script on a terminal with typed input.
fn run(script: &str, steps: &[terminal::Step<'_>]) -> Option<Transcript> {
    let test_env = RunTestEnv::new();
    let text = "---\nname: tools\ndescription: Does things. Use in tests.\n---\n\nRun it.\n";
    test_env.write("skills/tools/SKILL.md", text);
    test_env.write("skills/tools/scripts/a.sh", script);
    test_env.approve("tools");
    let command = test_env.command(&["run", &test_env.skill("tools/scripts/a.sh")]);
    has_program("setsid").then(|| terminal::run_alone(&command, steps))
}

#[test]
fn a_tool_can_prompt_and_draw_on_a_terminal() {
    let script = "read -p 'Name? ' name\necho \"Hello $name\"\n\
        [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo 'a terminal'\n\
        read -s -p 'Password? ' word\necho \"${#word} letters\"\nexit 3\n";
    let Some(run) = run(script, &[("Name? ", "Ada\r"), ("Password? ", "hunter2\r")]) else {
        return;
    };
    assert_eq!(run.code, 3, "{run}");
    for said in ["Name? ", "Hello Ada", "a terminal", "Password? ", "7 letters"] {
        assert!(run.stderr.contains(said), "{said}: {run}");
    }
    assert!(!run.stderr.contains("hunter2"), "{run}");
}

#[test]
fn a_key_interrupts_the_program_and_not_savoir() {
    let script = "trap 'echo interrupted; exit 5' INT\necho ready\nread line\necho never\n";
    let Some(run) = run(script, &[("ready", "\u{3}")]) else { return };
    assert!(run.stderr.contains("interrupted") && !run.stderr.contains("never"), "{run}");
    assert_eq!(run.code, 5, "{run}");
}

#[test]
fn three_interrupts_kill_a_program_that_ignores_them() {
    let script = "trap '' INT TERM\necho ready\nwhile :; do sleep 0.1; done\n";
    let Some(run) = run(script, &[("ready", "\u{3}\u{3}\u{3}")]) else { return };
    assert_eq!(run.code, 130, "{run}");
}
