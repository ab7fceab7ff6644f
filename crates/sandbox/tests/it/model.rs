//! Tests random trees and policies: the program can read, write and move exactly what
//! [`Policy::access`] says, and the disk changes only where that is allowed.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use savoir_sandbox::{Access, PathGrant, Policy, ProcessEnd};

use crate::support::{self, NAME, SETUP, sandbox_is_supported};

const NEW: &str = "new-file";
const MOVED: &str = "moved";
/// The name of a missing folder that contains a missing protected path.
const FOLDER_OF_MISSING: &str = "y";

/// Paths below the root of a case, and whether they are folders.
type Tree = BTreeMap<PathBuf, bool>;

/// A tree, and grants on its nodes.
#[derive(Clone, Debug)]
struct Case {
    tree: Tree,
    grants: Vec<(PathBuf, Access)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..=4);
    let nodes = prop::collection::vec((path, any::<bool>()), 2..10);
    let access = prop::sample::select(vec![
        Access::Read,
        Access::Execute,
        Access::Write,
        Access::Write,
        Access::Scratch,
        Access::Protected,
        Access::Hidden,
    ]);
    // Some grants name a missing path below the node: `z`, or `z` in a missing folder.
    let tail = prop::sample::select(vec!["", "", "", "z", "y/z"]);
    let grants = prop::collection::vec((any::<prop::sample::Index>(), access, tail), 1..6);
    (nodes, grants).prop_map(|(nodes, grants)| {
        let mut tree = Tree::new();
        for (parts, is_folder) in nodes {
            let path: PathBuf = parts.iter().collect();
            let blocked = path.ancestors().skip(1).any(|above| tree.get(above) == Some(&false));
            if blocked || tree.contains_key(&path) {
                continue;
            }
            for above in path.ancestors().skip(1).filter(|above| *above != Path::new("")) {
                tree.insert(above.to_owned(), true);
            }
            tree.insert(path, is_folder);
        }
        let grants = grants
            .into_iter()
            .map(|(index, access, tail)| {
                let (path, is_folder) = index.get(&tree.iter().collect::<Vec<_>>()).to_owned();
                match access {
                    Access::Scratch | Access::Hidden if !is_folder => (path.clone(), Access::Read),
                    Access::Protected if *is_folder && !tail.is_empty() => {
                        (path.join(tail), access)
                    }
                    access => (path.clone(), access),
                }
            })
            .collect();
        Case { tree, grants }
    })
}

#[test]
fn accesses_match_the_policy() {
    if !sandbox_is_supported() {
        return;
    }
    let config =
        Config { cases: 64, failure_persistence: None, max_shrink_iters: 100, ..Config::default() };
    TestRunner::new(config).run(&cases(), |case| check_case(&case)).unwrap();
}

/// The access to a node that the program inside found.
#[derive(Clone, Copy, Debug, Default)]
struct ObservedPath {
    read: bool,
    written: bool,
    moved: bool,
}

fn check_case(case: &Case) -> Result<(), TestCaseError> {
    let folder = support::tempdir();
    let root = folder.path();
    for (path, is_folder) in &case.tree {
        let path = root.join(path);
        if *is_folder {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::write(&path, content(&path)).unwrap();
        }
    }
    let mut policy = Policy {
        paths: case
            .grants
            .iter()
            .map(|(path, access)| PathGrant { path: root.join(path), access: *access })
            .collect(),
        programs: vec![support::binary()],
        directory: "/".into(),
        ..Policy::default()
    };
    policy.limits.wall = Some(Duration::from_secs(20));
    let nodes: Vec<(PathBuf, bool)> = nodes(case, root).into_iter().collect();
    support::set_check_variables(&mut policy, "model", &serde_json::to_string(&nodes).unwrap());
    let run = support::run_inside(policy.clone(), "model::entry")
        .map_err(|error| TestCaseError::fail(format!("it does not start: {error}")))?;
    let printed = String::from_utf8_lossy(&run.output);
    prop_assert_eq!(run.outcome.end, ProcessEnd::Exited(0), "{}", printed);
    let found = parse(&printed);
    for (path, is_folder) in &nodes {
        compare(&policy, &case.tree, root, path, *is_folder, found[path])?;
    }
    let expected = disk_afterwards(case, &policy, root);
    let mut disk = BTreeMap::new();
    walk(root, &mut disk);
    let is_new = |path: &Path| path.file_name().is_some_and(|name| name == FOLDER_OF_MISSING);
    disk.retain(|path, _| {
        let is_made = is_new(path) && policy.access_to(path) == Some(Access::Write);
        !is_made && !is_moved_aside(path)
    });
    prop_assert_eq!(disk, expected);
    Ok(())
}

/// The nodes of the tree, and the missing protected paths with their folders.
fn nodes(case: &Case, root: &Path) -> BTreeMap<PathBuf, bool> {
    let mut nodes: BTreeMap<PathBuf, bool> =
        case.tree.iter().map(|(path, is_folder)| (root.join(path), *is_folder)).collect();
    for (path, _) in &case.grants {
        nodes.entry(root.join(path)).or_insert(false);
    }
    nodes
}

/// Whether a file was created at a missing protected path and moved aside.
fn is_moved_aside(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("z.held-"))
}

fn content(path: &Path) -> String {
    format!("this is {}\n", path.display())
}

fn parse(printed: &str) -> BTreeMap<PathBuf, ObservedPath> {
    let mut found = BTreeMap::<PathBuf, ObservedPath>::new();
    for line in printed.lines() {
        let Some((what, path)) = line.split_once(' ') else { continue };
        if !path.starts_with('/') {
            continue;
        }
        let node = found.entry(PathBuf::from(path)).or_default();
        match what {
            "node" => {}
            "read" => node.read = true,
            "written" => node.written = true,
            "moved" => node.moved = true,
            _ => panic!("{line}"),
        }
    }
    found
}

fn compare(
    policy: &Policy,
    tree: &Tree,
    root: &Path,
    path: &Path,
    is_folder: bool,
    found: ObservedPath,
) -> Result<(), TestCaseError> {
    let exists = |path: &Path| path.strip_prefix(root).is_ok_and(|path| tree.contains_key(path));
    let below: BTreeSet<&Path> = policy
        .paths
        .iter()
        .map(|grant| grant.path.as_path())
        .filter(|grant| *grant != path && grant.starts_with(path))
        .collect();
    let access = policy.access_to(path);
    let granted_itself = policy.paths.iter().any(|grant| grant.path == path);
    // Parent folders of visible paths exist. Parent folders of missing paths may or may not exist.
    let on_the_way = if below.iter().any(|grant| exists(grant)) {
        Some(true)
    } else if below.is_empty() {
        Some(false)
    } else {
        None
    };
    let (read, written) = match access {
        // A file that is created here is moved aside in the end, which the comparison of the disk
        // checks.
        _ if !exists(path) => (None, None),
        Some(Access::Read | Access::Execute | Access::Protected) => (Some(true), Some(false)),
        Some(Access::Write | Access::CreateGranted) => (Some(true), Some(true)),
        Some(Access::Scratch) if granted_itself => (Some(true), Some(true)),
        // The host's files are hidden, but the run can create its own.
        Some(Access::Scratch) if is_folder => (on_the_way, None),
        Some(Access::Scratch) => (Some(false), None),
        Some(Access::Hidden) if granted_itself => (Some(true), Some(false)),
        Some(Access::Hidden) | None if is_folder => (on_the_way, Some(false)),
        Some(Access::Hidden) | None => (Some(false), Some(false)),
    };
    let description =
        format!("{} with {access:?}: {found:?} in {:#?}", path.display(), policy.paths);
    prop_assert!(read.is_none_or(|read| read == found.read), "read: {}", description);
    prop_assert!(
        written.is_none_or(|written| written == found.written),
        "written: {}",
        description
    );
    let stays = |path: &Path| exists(path) && policy.access_to(path) != Some(Access::Write);
    let parent = path.parent().and_then(|parent| policy.access_to(parent));
    let fixed = match parent {
        Some(Access::Scratch) => false,
        Some(Access::Write | Access::CreateGranted) => {
            stays(path) || below.iter().any(|grant| stays(grant))
        }
        Some(Access::Read | Access::Execute | Access::Protected | Access::Hidden) | None => true,
    };
    prop_assert!(!(fixed && found.moved), "moved: {}", description);
    Ok(())
}

/// The expected files on the disk after the run.
fn disk_afterwards(case: &Case, policy: &Policy, root: &Path) -> BTreeMap<PathBuf, Option<String>> {
    let mut disk = BTreeMap::new();
    for (path, is_folder) in &case.tree {
        let path = root.join(path);
        let writable = policy.access_to(&path) == Some(Access::Write);
        let text = content(&path);
        if *is_folder {
            if writable {
                disk.insert(path.join(NEW), Some(String::new()));
            }
            disk.insert(path, None);
        } else {
            disk.insert(path, Some(if writable { text + "x" } else { text }));
        }
    }
    disk
}

fn walk(folder: &Path, disk: &mut BTreeMap<PathBuf, Option<String>>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, disk);
            disk.insert(path, None);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            disk.insert(path, Some(text));
        }
    }
}

/// The program inside the sandbox: tries every operation at every node.
#[test]
#[ignore = "started by the test above"]
fn entry() {
    let (Ok(_), Ok(setup)) = (env::var(NAME), env::var(SETUP)) else { return };
    let nodes: Vec<(PathBuf, bool)> = serde_json::from_str(&setup).unwrap();
    let mut lines = Vec::new();
    for (path, is_folder) in &nodes {
        let mut note = |what: &str| lines.push(format!("{what} {}", path.display()));
        note("node");
        let readable = if *is_folder {
            fs::read_dir(path).is_ok()
        } else {
            fs::read_to_string(path).is_ok_and(|text| text == content(path))
        };
        if readable {
            note("read");
        }
    }
    for (path, is_folder) in &nodes {
        let written = if *is_folder {
            File::create_new(path.join(NEW)).is_ok()
        } else if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            let file = File::options().append(true).open(path);
            file.and_then(|mut file| file.write_all(b"x")).is_ok()
        } else {
            make(path)
        };
        if written {
            lines.push(format!("written {}", path.display()));
        }
    }
    for (path, _) in &nodes {
        let aside = path.with_file_name(MOVED);
        if fs::rename(path, &aside).is_ok() {
            lines.push(format!("moved {}", path.display()));
            fs::rename(&aside, path).unwrap();
        }
    }
    support::print_result(&lines.join("\n"));
}

/// Creates a missing file, and its folder if necessary.
fn make(path: &Path) -> bool {
    let folder = path.parent().unwrap();
    let is_made = fs::create_dir(folder).is_ok();
    let file = File::create_new(path).is_ok();
    if is_made && !file {
        fs::remove_dir(folder).unwrap();
    }
    file
}
