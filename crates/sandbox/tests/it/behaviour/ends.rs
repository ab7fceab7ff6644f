//! Ends of runs: by themselves, by a limit, by their caller, by the end of their caller.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use savoir_sandbox::{Counted, End, LimitedBy, PathGrant, limits};

use super::{end_after, marker, policy, start, within};
use crate::support::{self, NAME, Run, SETUP, can_hold_sandboxes, processes_with};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn codes_and_signals_are_told() {
    if !can_hold_sandboxes() {
        return;
    }
    for code in [0, 1, 42, 255] {
        let run = Run::of(start(policy("exit", &code.to_string()), ""), b"");
        assert_eq!(run.outcome.end, End::Exited(code));
    }
    for signal in [libc::SIGTERM, libc::SIGABRT, libc::SIGKILL, libc::SIGUSR1] {
        let run = Run::of(start(policy("signal", &signal.to_string()), ""), b"");
        assert_eq!(run.outcome.end, End::Signalled(signal));
    }
}

#[test]
fn what_goes_in_comes_out() {
    if !can_hold_sandboxes() {
        return;
    }
    let input: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
    let run = Run::of(start(policy("echo", ""), ""), &input);
    assert_eq!(run.outcome.end, End::Exited(0));
    assert!(run.error == input, "{} of {} bytes came back", run.error.len(), input.len());
    let printed = (run.error.len() + run.output.len()) as u64;
    assert_eq!(run.outcome.output_bytes, printed);
}

#[test]
fn a_program_that_does_not_read_its_input_ends_all_the_same() {
    if !can_hold_sandboxes() {
        return;
    }
    let run = Run::of(start(policy("exit", "3"), ""), &vec![b'x'; 1 << 20]);
    assert_eq!(run.outcome.end, End::Exited(3));
}

#[test]
fn the_time_limit_ends_a_stubborn_tree() {
    if !can_hold_sandboxes() {
        return;
    }
    let marker = marker();
    let mut policy = policy("stubborn", "");
    policy.limits.wall = Some(SECOND);
    let clock = Instant::now();
    let process = start(policy, &marker);
    assert!(within(SECOND, || processes_with(&marker).len() > 2), "the tree does not grow");
    let outcome = process.drive(b"", |_, _| {});
    assert_eq!(outcome.end, End::TimedOut);
    assert!(clock.elapsed() < SECOND + limits::GRACE + SECOND, "{:?}", clock.elapsed());
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

#[test]
fn a_program_that_obeys_ends_at_the_time_limit() {
    if !can_hold_sandboxes() {
        return;
    }
    let mut policy = policy("sleep", "");
    policy.limits.wall = Some(SECOND / 2);
    let outcome = start(policy, "").drive(b"", |_, _| {});
    assert_eq!(outcome.end, End::TimedOut);
    assert!(outcome.duration < SECOND + SECOND / 2, "{:?}", outcome.duration);
}

#[test]
fn whoever_waits_longer_does_not_lift_the_time_limit() {
    if !can_hold_sandboxes() {
        return;
    }
    let mut policy = policy("sleep", "");
    policy.limits.wall = Some(SECOND / 2);
    let outcome = start(policy, "").wait_at_most(4 * SECOND);
    assert_eq!(outcome.end, End::TimedOut);
    assert!(outcome.duration < 2 * SECOND, "{:?}", outcome.duration);
}

#[test]
fn a_program_that_closes_its_outputs_is_still_on_the_clock() {
    if !can_hold_sandboxes() {
        return;
    }
    let mut policy = policy("silent", "");
    policy.limits.wall = Some(SECOND / 2);
    let outcome = start(policy, "").drive(b"", |_, _| {});
    assert_eq!(outcome.end, End::TimedOut);
    assert!(outcome.duration < SECOND + SECOND / 2, "{:?}", outcome.duration);
}

#[test]
fn a_program_that_takes_its_output_back_does_not_stop_the_clock() {
    if !can_hold_sandboxes() {
        return;
    }
    let mut policy = policy("take back", "");
    policy.limits.wall = Some(SECOND);
    let process = start(policy, "");
    end_after(process.killer().unwrap(), 5 * SECOND);
    let outcome = process.drive(b"", |_, _| {});
    assert_eq!(outcome.end, End::TimedOut);
    assert!(outcome.duration < 3 * SECOND, "{:?}", outcome.duration);
}

#[test]
fn a_program_that_fills_its_input_does_not_stop_the_clock() {
    if !can_hold_sandboxes() {
        return;
    }
    let mut policy = policy("fill", "");
    policy.limits.wall = Some(SECOND);
    let process = start(policy, "");
    end_after(process.killer().unwrap(), 5 * SECOND);
    let outcome = process.drive(&vec![b'x'; 64 << 20], |_, _| {});
    assert_eq!(outcome.end, End::TimedOut);
    assert!(outcome.duration < 3 * SECOND, "{:?}", outcome.duration);
}

#[test]
fn too_much_output_ends_a_program_and_is_not_passed_on() {
    const MOST: u64 = 1 << 20;
    if !can_hold_sandboxes() {
        return;
    }
    // The second goes on when it is asked to end.
    for role in ["print", "print on"] {
        let mut policy = policy(role, "");
        policy.limits.output = MOST;
        let process = start(policy, "");
        end_after(process.killer().unwrap(), 2 * SECOND);
        let mut passed = 0;
        let outcome = process.drive(b"", |_, bytes| passed += bytes.len() as u64);
        assert_eq!(outcome.end, End::TooMuchOutput, "{role}");
        assert!(passed <= MOST + (64 << 10), "{role}: {passed} bytes were passed on");
    }
}

#[test]
fn the_memory_of_all_processes_counts() {
    if !can_hold_sandboxes() {
        return;
    }
    let mut policy = policy("together", "");
    policy.limits.memory = 256 << 20;
    policy.limits.counted = Counted::Data;
    let process = start(policy, "");
    end_after(process.killer().unwrap(), 20 * SECOND);
    let outcome = process.drive(b"", |_, _| {});
    let expected = match outcome.enforcement.limits {
        LimitedBy::ControlGroup => End::Signalled(libc::SIGKILL),
        LimitedBy::ResourceLimits => End::TooMuchMemory,
    };
    assert_eq!(outcome.end, expected);
    assert!(outcome.duration < 15 * SECOND, "{:?}", outcome.duration);
}

#[test]
fn memory_that_processes_share_counts_once() {
    if !can_hold_sandboxes() {
        return;
    }
    let mut policy = policy("shared", "");
    policy.limits.memory = 256 << 20;
    policy.limits.counted = Counted::Data;
    let run = Run::of(start(policy, ""), b"");
    assert_eq!(run.outcome.end, End::Exited(0));
}

#[test]
fn too_many_processes_do_not_go_on() {
    if !can_hold_sandboxes() || !support::is_root() {
        return;
    }
    let mut policy = policy("many", "");
    policy.limits.processes = 40;
    let process = start(policy, "");
    end_after(process.killer().unwrap(), 20 * SECOND);
    let outcome = process.drive(b"", |_, _| {});
    // Nobody counts root's processes but us; a control group refuses the next one.
    if outcome.enforcement.limits == LimitedBy::ResourceLimits {
        assert_eq!(outcome.end, End::TooManyProcesses);
    }
}

#[test]
fn what_a_program_leaves_behind_ends_with_it() {
    if !can_hold_sandboxes() {
        return;
    }
    let marker = marker();
    let outcome = start(policy("leave", ""), &marker).drive(b"", |_, _| {});
    assert_eq!(outcome.end, End::Exited(0));
    assert!(outcome.duration < 2 * SECOND, "{:?}", outcome.duration);
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

#[test]
fn dropping_and_stopping_end_everything() {
    if !can_hold_sandboxes() {
        return;
    }
    let marker = marker();
    let process = start(policy("stubborn", ""), &marker);
    assert!(within(SECOND, || processes_with(&marker).len() > 2));
    drop(process);
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
    let process = start(policy("stubborn", ""), &marker);
    assert!(within(SECOND, || processes_with(&marker).len() > 2));
    assert_eq!(process.stop().end, End::Stopped);
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
}

#[test]
fn a_killer_ends_everything_from_another_thread() {
    if !can_hold_sandboxes() {
        return;
    }
    let marker = marker();
    let process = start(policy("stubborn", ""), &marker);
    let killer = process.killer().unwrap();
    let thread = thread::spawn(move || {
        thread::sleep(SECOND / 5);
        killer.kill();
        killer
    });
    let outcome = process.drive(b"", |_, _| {});
    assert_eq!(outcome.end, End::Signalled(libc::SIGKILL));
    assert!(outcome.duration < 2 * SECOND);
    assert_eq!(processes_with(&marker), Vec::<i32>::new());
    // Once more does nothing.
    thread.join().unwrap().kill();
}

#[test]
fn everything_ends_when_the_supervisor_is_killed() {
    if !can_hold_sandboxes() {
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
    let started = within(5 * SECOND, || processes_with(&inner).len() > 2);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert!(started, "the run does not start");
    assert!(within(2 * SECOND, || processes_with(&inner).is_empty()), "the program goes on");
    assert!(within(2 * SECOND, || processes_with(&outer).is_empty()), "its first process goes on");
}

#[test]
fn many_start_at_once() {
    if !can_hold_sandboxes() {
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
            assert_eq!(run.join().unwrap(), (End::Exited(0), true));
        }
    });
    assert!(!missing.exists(), "nothing is made");
}
