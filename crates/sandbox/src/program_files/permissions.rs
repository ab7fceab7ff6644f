//! Decides from the mode bits whether the current user may execute a file.

use std::{fs, os::unix::fs::MetadataExt, sync::OnceLock};

/// The user that this process runs as.
struct User {
    id: u32,
    groups: Vec<u32>,
}

/// Checks the mode bits only. Access control lists are left to the kernel, which decides in the
/// end.
pub(super) fn may_execute(file: &fs::Metadata) -> bool {
    let mode = file.mode();
    let Some(user) = user() else { return mode & 0o111 != 0 };
    let mask = if user.id == 0 {
        0o111
    } else if user.id == file.uid() {
        0o100
    } else if user.groups.contains(&file.gid()) {
        0o010
    } else {
        0o001
    };
    mode & mask != 0
}

/// Reads the user from `/proc/self/status`, which needs no unsafe call to libc.
fn user() -> Option<&'static User> {
    static USER: OnceLock<Option<User>> = OnceLock::new();
    USER.get_or_init(|| parse(&fs::read_to_string("/proc/self/status").ok()?)).as_ref()
}

fn parse(status: &str) -> Option<User> {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    // The four IDs are real, effective, saved and file system; the kernel checks file access with
    // the last.
    let last = |name| field(name)?.split_whitespace().last()?.parse().ok();
    let mut groups: Vec<u32> =
        field("Groups:")?.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    groups.push(last("Gid:")?);
    Some(User { id: last("Uid:")?, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_ids_and_groups_of_proc_status() {
        let user =
            parse("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t20 30 \n").unwrap();
        assert_eq!((user.id, user.groups), (4, vec![20, 30, 8]));
        assert!(parse("").is_none());
    }
}
