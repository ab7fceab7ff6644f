//! Tests how runs end: by themselves, by a limit, by their caller, or because their caller ends.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use savoir_sandbox::{CountedMemory, LimitMechanism, PathGrant, ProcessEnd, limits};

use super::{end_after, marker, policy, start, wait_until};
use crate::support::{self, NAME, Run, SETUP, processes_with, sandbox_is_supported};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn exit_codes_and_signals_are_returned() {
    if !sandbox_is_supported() {
        return;
    }
    for code in [0, 1, 42, 255] {
        let run = Run::of(start(policy("exit", &code.to_string()), ""), b"");
        assert_eq!(run.outcome.end, ProcessEnd::Exited(code));
    }
    for signal in [libc::SIGTERM, libc::SIGABRT, libc::SIGKILL, libc::SIGUSR1] {
        let run = Run::of(start(policy("signal", &signal.to_string()), ""), b"");
        assert_eq!(run.outcome.end, ProcessEnd::Signalled(signal));
    }
}

#[test]
fn input_reaches_the_output() {
    if !sandbox_is_supported() {
        return;
    }
    let input: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
    let run = Run::of(start(policy("echo", ""), ""), &input);
    assert_eq!(run.outcome.end, ProcessEnd::Exited(0));
    assert!(run.error == input, "{} of {} bytes came back", run.error.len(), input.len());
    let printed = (run.error.len() + run.output.len()) as u64;
    assert_eq!(run.outcome.output_bytes, printed);
}

#[test]
fn program_that_ignores_its_input_can_end() {
    if !sandbox_is_supported() {
        return;
    }
    let run = Run::of(start(policy("exit", "3"), ""), &vec![b'x'; 1 << 20]);
    assert_eq!(run.outcome.end, ProcessEnd::Exited(3));
}

#[test]
fn time_limit_kills_processes_that_ignore_sigterm() {
    if !sandbox_is_supported() {
        return;
    }
    let marker = marker();
    let mut policy = policy("stubborn", "");
    policy.limits.wall = Some(SECOND);
    let clock = Instant::now();
    let process = start(policy, &marker);
    assert!(wait_until(SECOND, || processes_with(&marker).len() > 2), "the tree does not grow");
    let outcome = process.communicate(b"", |_, _| {});
    assert_eq!(outcome.end, ProcessEnd::TimedOut);
    assert!(clock.elapsed() < SECOND + limits::TERMINATION_GRACE + SECOND, "{:?}", clock.elapsed());
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

#[test]
fn program_that_handles_sigterm_ends_at_the_time_limit() {
    if !sandbox_is_supported() {
        return;
    }
    let mut policy = policy("sleep", "");
    policy.limits.wall = Some(SECOND / 2);
    let outcome = start(policy, "").communicate(b"", |_, _| {});
    assert_eq!(outcome.end, ProcessEnd::TimedOut);
    assert!(outcome.duration < SECOND + SECOND / 2, "{:?}", outcome.duration);
}

#[test]
fn longer_wait_does_not_extend_the_time_limit() {
    if !sandbox_is_supported() {
        return;
    }
    let mut policy = policy("sleep", "");
    policy.limits.wall = Some(SECOND / 2);
    let outcome = start(policy, "").wait_timeout(4 * SECOND);
    assert_eq!(outcome.end, ProcessEnd::TimedOut);
    assert!(outcome.duration < 2 * SECOND, "{:?}", outcome.duration);
}

#[test]
fn time_limit_applies_after_outputs_are_closed() {
    if !sandbox_is_supported() {
        return;
    }
    let mut policy = policy("silent", "");
    policy.limits.wall = Some(SECOND / 2);
    let outcome = start(policy, "").communicate(b"", |_, _| {});
    assert_eq!(outcome.end, ProcessEnd::TimedOut);
    assert!(outcome.duration < SECOND + SECOND / 2, "{:?}", outcome.duration);
}

#[test]
fn time_limit_applies_to_program_that_reads_its_own_output() {
    if !sandbox_is_supported() {
        return;
    }
    let mut policy = policy("take back", "");
    policy.limits.wall = Some(SECOND);
    let process = start(policy, "");
    end_after(process.kill_handle().unwrap(), 5 * SECOND);
    let outcome = process.communicate(b"", |_, _| {});
    assert_eq!(outcome.end, ProcessEnd::TimedOut);
    assert!(outcome.duration < 3 * SECOND, "{:?}", outcome.duration);
}

#[test]
fn time_limit_applies_to_program_that_fills_its_own_input() {
    if !sandbox_is_supported() {
        return;
    }
    let mut policy = policy("fill", "");
    policy.limits.wall = Some(SECOND);
    let process = start(policy, "");
    end_after(process.kill_handle().unwrap(), 5 * SECOND);
    let outcome = process.communicate(&vec![b'x'; 64 << 20], |_, _| {});
    assert_eq!(outcome.end, ProcessEnd::TimedOut);
    assert!(outcome.duration < 3 * SECOND, "{:?}", outcome.duration);
}

#[test]
fn too_much_output_ends_a_program_and_is_not_passed_on() {
    const MAX_OUTPUT_BYTES: u64 = 1 << 20;
    if !sandbox_is_supported() {
        return;
    }
    // The second role ignores SIGTERM and continues to print.
    for role in ["print", "print on"] {
        let mut policy = policy(role, "");
        policy.limits.output = MAX_OUTPUT_BYTES;
        let process = start(policy, "");
        end_after(process.kill_handle().unwrap(), 2 * SECOND);
        let mut passed = 0;
        let outcome = process.communicate(b"", |_, bytes| passed += bytes.len() as u64);
        assert_eq!(outcome.end, ProcessEnd::TooMuchOutput, "{role}");
        assert!(passed <= MAX_OUTPUT_BYTES + (64 << 10), "{role}: {passed} bytes were passed on");
    }
}

#[test]
fn memory_limit_counts_all_processes() {
    if !sandbox_is_supported() {
        return;
    }
    let mut policy = policy("together", "");
    policy.limits.memory = 256 << 20;
    policy.limits.counted_memory = CountedMemory::Data;
    let process = start(policy, "");
    end_after(process.kill_handle().unwrap(), 20 * SECOND);
    let outcome = process.communicate(b"", |_, _| {});
    let expected = match outcome.enforcement.limits {
        LimitMechanism::ControlGroup => ProcessEnd::Signalled(libc::SIGKILL),
        LimitMechanism::ResourceLimits => ProcessEnd::TooMuchMemory,
    };
    assert_eq!(outcome.end, expected);
    assert!(outcome.duration < 15 * SECOND, "{:?}", outcome.duration);
}

#[test]
fn shared_memory_counts_once() {
    if !sandbox_is_supported() {
        return;
    }
    let mut policy = policy("shared", "");
    policy.limits.memory = 256 << 20;
    policy.limits.counted_memory = CountedMemory::Data;
    let run = Run::of(start(policy, ""), b"");
    assert_eq!(run.outcome.end, ProcessEnd::Exited(0));
}

#[test]
fn too_many_processes_end_the_run() {
    if !sandbox_is_supported() || !support::is_root() {
        return;
    }
    let mut policy = policy("many", "");
    policy.limits.processes = 40;
    let process = start(policy, "");
    end_after(process.kill_handle().unwrap(), 20 * SECOND);
    let outcome = process.communicate(b"", |_, _| {});
    // Without a control group, a thread counts the processes of root; a control group refuses the
    // next one.
    if outcome.enforcement.limits == LimitMechanism::ResourceLimits {
        assert_eq!(outcome.end, ProcessEnd::TooManyProcesses);
    }
}

#[test]
fn background_processes_end_with_the_program() {
    if !sandbox_is_supported() {
        return;
    }
    let marker = marker();
    let outcome = start(policy("leave", ""), &marker).communicate(b"", |_, _| {});
    assert_eq!(outcome.end, ProcessEnd::Exited(0));
    assert!(outcome.duration < 2 * SECOND, "{:?}", outcome.duration);
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

#[test]
fn dropping_and_stopping_end_everything() {
    if !sandbox_is_supported() {
        return;
    }
    let marker = marker();
    let process = start(policy("stubborn", ""), &marker);
    assert!(wait_until(SECOND, || processes_with(&marker).len() > 2));
    drop(process);
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
    let process = start(policy("stubborn", ""), &marker);
    assert!(wait_until(SECOND, || processes_with(&marker).len() > 2));
    assert_eq!(process.stop().end, ProcessEnd::Stopped);
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

#[test]
fn kill_handle_works_from_another_thread() {
    if !sandbox_is_supported() {
        return;
    }
    let marker = marker();
    let process = start(policy("stubborn", ""), &marker);
    let kill_handle = process.kill_handle().unwrap();
    let thread = thread::spawn(move || {
        thread::sleep(SECOND / 5);
        kill_handle.kill();
        kill_handle
    });
    let outcome = process.communicate(b"", |_, _| {});
    assert_eq!(outcome.end, ProcessEnd::Signalled(libc::SIGKILL));
    assert!(outcome.duration < 2 * SECOND);
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
    // Killing it again has no effect.
    thread.join().unwrap().kill();
}

#[test]
fn processes_end_when_the_supervisor_is_killed() {
    if !sandbox_is_supported() {
        return;
    }
    let (outer, inner) = (marker(), marker());
    let mut supervisor = Command::new(support::binary())
        .args(support::entry_arguments("behaviour::role::entry"))
        .arg(&outer)
        .env(NAME, "supervise")
        .env(SETUP, &inner)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = wait_until(5 * SECOND, || processes_with(&inner).len() > 2);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert!(started, "the run does not start");
    assert!(wait_until(2 * SECOND, || processes_with(&inner).is_empty()), "the program goes on");
    assert!(
        wait_until(2 * SECOND, || processes_with(&outer).is_empty()),
        "its first process goes on"
    );
}

#[test]
fn many_sandboxes_start_at_once() {
    if !sandbox_is_supported() {
        return;
    }
    let folder = support::tempdir();
    let missing = folder.path().join("missing");
    thread::scope(|scope| {
        let runs: Vec<_> = (0..30_u32)
            .map(|number| {
                let (folder, missing) = (folder.path(), &missing);
                scope.spawn(move || {
                    let mut policy = policy("echo", "");
                    policy.paths = vec![PathGrant::write(folder), PathGrant::protected(missing)];
                    let input = number.to_string().into_bytes();
                    let run = Run::of(start(policy, ""), &input);
                    (run.outcome.end, run.error == input)
                })
            })
            .collect();
        for run in runs {
            assert_eq!(run.join().unwrap(), (ProcessEnd::Exited(0), true));
        }
    });
    assert!(!missing.exists(), "nothing is made");
}
