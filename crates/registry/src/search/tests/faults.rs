//! Tests of crashes and damaged files: the index keeps its last commit or is rebuilt.

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use super::{super::SearchError, *};

/// The environment variable that tells a child process its folder.
const FOLDER_VARIABLE: &str = "SAVOIR_TEST_SEARCH_FOLDER";

fn many(from: u64, count: u64) -> impl Iterator<Item = IndexChange> {
    (from..from + count).map(|number| {
        let mut document = skill(&format!("skill-{number}"), "one of many");
        document.body = format!("body of {number} ").repeat(50);
        IndexChange::Put(document)
    })
}

fn reopened(folder: &Path) -> (SearchIndex, u64) {
    SearchIndex::open(folder, DATABASE).unwrap()
}

#[test]
fn commit_stores_documents_and_number() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    index.apply(many(0, 3), 7).unwrap();
    index.apply([], 9).unwrap();
    drop(index);
    let (index, applied) = reopened(folder.path());
    assert_eq!((applied, index.skill_count()), (9, 3));
    let error = index.apply(many(3, 1), 8).unwrap_err();
    assert_eq!((error.code(), index.skill_count()), ("search_backwards", 3));
}

#[test]
fn panicking_batch_is_not_applied() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    index.apply(many(0, 2), 1).unwrap();
    let applying = std::panic::AssertUnwindSafe(|| {
        let broken = many(2, 5).map(|entry| match entry {
            IndexChange::Put(document) if document.key == "skill-5" => {
                panic!("the database is gone")
            }
            entry => entry,
        });
        index.apply(broken, 2)
    });
    std::panic::catch_unwind(applying).unwrap_err();
    assert_eq!(index.skill_count(), 2);
    index.apply(many(2, 5), 2).unwrap();
    assert_eq!(index.skill_count(), 7);
}

#[test]
fn index_of_other_database_is_rebuilt() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    index.apply(many(0, 3), 7).unwrap();
    drop(index);
    let (index, applied) = SearchIndex::open(folder.path(), "another").unwrap();
    assert_eq!((applied, index.skill_count()), (0, 0));
}

#[test]
fn files_of_a_killed_process_are_removed() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    index.apply(many(0, 3), 7).unwrap();
    drop(index);
    let left = folder.path().join("0/index/.tmpA1b2C3");
    fs::write(&left, "half of a file").unwrap();
    let (index, applied) = reopened(folder.path());
    assert_eq!((applied, index.skill_count()), (7, 3));
    assert!(!left.exists());
}

/// A name, and a function that damages a file.
type Damage = (&'static str, fn(&Path));

#[test]
fn damaged_index_is_rebuilt() {
    let files = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder.join("0/index")).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
    };
    let damages: [Damage; 4] = [
        ("removed", |path| fs::remove_file(path).unwrap()),
        ("emptied", |path| fs::write(path, "").unwrap()),
        ("cut", |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("changed", |path| {
            let mut bytes = fs::read(path).unwrap();
            let middle = bytes.len() / 3;
            bytes.iter_mut().skip(middle).take(1).for_each(|byte| *byte ^= 0x11);
            fs::write(path, bytes).unwrap();
        }),
    ];
    let pristine = TempDir::new().unwrap();
    fresh(pristine.path()).apply(many(0, 20), 7).unwrap();
    for original in files(pristine.path()) {
        let name = original.file_name().unwrap();
        for (what, damage) in damages {
            let folder = TempDir::new().unwrap();
            let inside = folder.path().join("0/index");
            fs::create_dir_all(&inside).unwrap();
            for file in files(pristine.path()) {
                fs::copy(&file, inside.join(file.file_name().unwrap())).unwrap();
            }
            damage(&inside.join(name));
            let (index, applied) = reopened(folder.path());
            // Lock files contain no data.
            let expected = if index.skill_count() == 20 { 7 } else { 0 };
            assert_eq!(applied, expected, "{name:?} {what}");
            index.apply(many(0, 20), 7).unwrap();
            assert_eq!((index.skill_count(), keys(&index, "skill-3")[0].as_str()), (20, "skill-3"));
        }
    }
}

#[test]
fn changed_number_is_rejected() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    index.apply(many(0, 3), 123_456).unwrap();
    drop(index);
    let meta = folder.path().join("0/index/meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    assert!(text.contains("123456"));
    fs::write(&meta, text.replace("123456", "923456")).unwrap();
    assert_eq!(reopened(folder.path()).1, 0);
}

#[test]
fn leftover_lock_of_killed_process_is_ignored() {
    let inside = |folder: &Path| folder.join("0/index");
    let deletions = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(inside(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "del")).collect()
    };
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fresh(folder.path()).apply(many(0, 20), 7).unwrap();
    fs::create_dir_all(inside(other.path())).unwrap();
    for entry in fs::read_dir(inside(folder.path())).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, inside(other.path()).join(path.file_name().unwrap())).unwrap();
    }
    // Another process applies the same change and is killed before it commits.
    reopened(other.path()).0.apply([IndexChange::Remove("skill-3".to_owned())], 8).unwrap();
    let left = deletions(other.path());
    assert_eq!(left.len(), 1);
    let name = left[0].file_name().unwrap();
    fs::copy(&left[0], inside(folder.path()).join(name)).unwrap();
    let managed = ".managed.json";
    fs::copy(inside(other.path()).join(managed), inside(folder.path()).join(managed)).unwrap();
    let (index, applied) = reopened(folder.path());
    assert_eq!((applied, index.skill_count()), (7, 20));
    index.apply([IndexChange::Remove("skill-3".to_owned())], 8).unwrap();
    assert_eq!((index.applied(), index.skill_count()), (8, 19));
}

#[test]
fn unwritable_folder_is_named_in_error() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = SearchIndex::open(&file, DATABASE).unwrap_err();
    assert_eq!(error.code(), "search_folder");
    assert!(error.to_string().contains("file"), "{error}");
    assert!(matches!(error, SearchError::Folder { .. }));
}

#[test]
fn each_process_reuses_its_own_slot() {
    let folder = TempDir::new().unwrap();
    let first = fresh(folder.path());
    let second = fresh(folder.path());
    first.apply(many(0, 1), 1).unwrap();
    second.apply(many(0, 2), 2).unwrap();
    assert_eq!((first.skill_count(), second.skill_count()), (1, 2));
    drop(first);
    assert_eq!(reopened(folder.path()).1, 1, "the first part is free again");
}

#[test]
fn shutdown_waits_for_commit() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    let (begun, begins) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let slow = many(0, 2).inspect(|_| {
                begun.send(()).unwrap();
                thread::sleep(Duration::from_millis(200));
            });
            index.apply(slow, 1).unwrap();
        });
        begins.recv().unwrap();
        index.wait_for_writer();
        assert_eq!((index.applied(), index.skill_count()), (1, 2));
    });
}

#[test]
fn failed_index_can_be_rebuilt() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    index.apply(many(0, 3), 7).unwrap();
    fs::remove_dir_all(folder.path().join("0/index")).unwrap();
    assert_eq!(index.apply(many(3, 1), 8).unwrap_err().code(), "search_index");
    index.start_over().unwrap();
    assert_eq!((index.applied(), index.skill_count()), (0, 0));
    index.apply(many(0, 4), 8).unwrap();
    assert_eq!((index.applied(), index.skill_count()), (8, 4));
    assert_eq!(keys(&index, "skill-3")[0], "skill-3");
    drop(index);
    assert_eq!(reopened(folder.path()).1, 8);
}

#[test]
fn searching_goes_on_while_changes_are_applied() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    index.apply(many(0, 100), 1).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // There are always a hundred skills: each round removes as many as it adds.
            for round in 0..20 {
                let gone = (round * 10..round * 10 + 10)
                    .map(|n| IndexChange::Remove(format!("skill-{n}")));
                index.apply(many(100 + round * 10, 10).chain(gone), 2 + round).unwrap();
            }
        });
        let mut searches = 0;
        while !writer.is_finished() || searches == 0 {
            let hits = index.search(&asked("many"), 200, 0).unwrap();
            assert_eq!(hits.items.len(), 100, "neither half of a change is seen");
            searches += 1;
        }
        writer.join().unwrap();
    });
}

/// Runs a test of this file in a child process, through a shell that prepares its environment.
fn child(test: &str, prepare: &str, folder: &Path) -> Child {
    let path = module_path!().split_once("::").unwrap().1;
    let name = format!("{path}::{test}");
    let script = format!("{prepare} exec \"$0\" --exact \"$1\" --ignored --nocapture");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(env::current_exe().unwrap()).arg(name);
    command.env(FOLDER_VARIABLE, folder).spawn().unwrap()
}

#[test]
#[ignore = "another test starts it and ends it in the middle"]
fn apply_changes_until_killed() {
    let folder = PathBuf::from(env::var_os(FOLDER_VARIABLE).unwrap());
    let (index, _) = reopened(&folder);
    index.apply(many(0, 10), 1).unwrap();
    let endless = many(10, u64::MAX - 10).inspect(|entry| {
        if matches!(entry, IndexChange::Put(document) if document.key == "skill-20000") {
            fs::write(folder.join("running"), "").unwrap();
        }
    });
    index.apply(endless, 2).unwrap();
}

#[test]
fn killed_process_keeps_last_commit() {
    let folder = TempDir::new().unwrap();
    let mut child = child("apply_changes_until_killed", "", folder.path());
    let running = folder.path().join("running");
    let start = Instant::now();
    while !running.exists() {
        assert!(start.elapsed() < Duration::from_mins(2), "the process does not get on");
        assert!(child.try_wait().unwrap().is_none(), "the process has ended");
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (index, applied) = reopened(folder.path());
    assert_eq!((applied, index.skill_count()), (1, 10));
    assert_eq!(keys(&index, "skill-3")[0], "skill-3");
    index.apply(many(10, 5), 2).unwrap();
    assert_eq!(index.skill_count(), 15);
}

#[test]
#[ignore = "another test starts it where files cannot grow"]
fn apply_changes_beyond_disk_limit() {
    let folder = PathBuf::from(env::var_os(FOLDER_VARIABLE).unwrap());
    let (index, applied) = reopened(&folder);
    assert_eq!((applied, index.skill_count()), (1, 10));
    let error = index.apply(many(10, 3000), 2).unwrap_err();
    assert_eq!(error.code(), "search_index");
    assert_eq!(index.skill_count(), 10);
    assert_eq!(keys(&index, "skill-3")[0], "skill-3");
    index.apply(many(10, 1), 2).unwrap();
    assert_eq!(index.skill_count(), 11, "what fits is taken again");
    fs::write(folder.join("done"), "").unwrap();
}

#[test]
fn full_disk_keeps_old_index() {
    let folder = TempDir::new().unwrap();
    let index = fresh(folder.path());
    index.apply(many(0, 10), 1).unwrap();
    drop(index);
    // The shell counts blocks of 512 bytes. Ignoring the signal makes exceeding the limit a write
    // error.
    let small = "trap '' XFSZ; ulimit -f 40;";
    let status = child("apply_changes_beyond_disk_limit", small, folder.path()).wait().unwrap();
    assert!(status.success() && folder.path().join("done").exists(), "{status}");
    let (index, applied) = reopened(folder.path());
    assert_eq!((applied, index.skill_count()), (2, 11));
}
