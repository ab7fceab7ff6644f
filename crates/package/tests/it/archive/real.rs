//! Tests with archives that other programs create.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use savoir_package::{Tree, archive};

use super::skill;

/// Creates archives with Python's libraries, in all supported formats.
const PYTHON: &str = r"
import io, os, sys, tarfile, zipfile

class Pipe(io.RawIOBase):
    def __init__(self, path): self.file = open(path, 'wb')
    def writable(self): return True
    def write(self, data): return self.file.write(data)

files = []
for folder, folders, names in os.walk('demo'):
    files += [os.path.join(folder, name) for name in folders + names]

for name, method in [('stored', zipfile.ZIP_STORED), ('deflated', zipfile.ZIP_DEFLATED)]:
    with zipfile.ZipFile(f'{name}.zip', 'w', method) as archive:
        for path in files: archive.write(path)
    with zipfile.ZipFile(Pipe(f'{name}-pipe.zip'), 'w', method) as archive:
        for path in files: archive.write(path)
    with zipfile.ZipFile(f'{name}-large.zip', 'w', method) as archive:
        for path in files:
            if os.path.isfile(path):
                info = zipfile.ZipInfo.from_file(path)
                info.compress_type = method
                with archive.open(info, 'w', force_zip64=True) as entry:
                    entry.write(open(path, 'rb').read())
    with zipfile.ZipFile(Pipe(f'{name}-large-pipe.zip'), 'w', method) as archive:
        for path in files:
            if os.path.isfile(path):
                info = zipfile.ZipInfo.from_file(path)
                info.compress_type = method
                with archive.open(info, 'w', force_zip64=True) as entry:
                    entry.write(open(path, 'rb').read())
for name in ['USTAR', 'GNU', 'PAX']:
    with tarfile.open(f'{name}.tar.gz', 'w:gz', format=getattr(tarfile, name + '_FORMAT')) as archive:
        archive.add('demo')
";

/// Commands that create archives with system programs.
const PROGRAMS: [(&str, &str); 12] = [
    ("zip", "zip -qr plain.zip demo"),
    ("zip", "zip -qrX -9 bare.zip demo"),
    ("zip", "zip -q0r stored.zip demo"),
    ("zip", "zip -qr - demo | cat > pipe.zip"),
    ("zip", "cd demo && zip -qr ../inside.zip ."),
    ("tar", "tar -cf plain.tar demo"),
    ("tar", "tar -czf packed.tgz demo"),
    ("tar", "tar -czf inside.tgz -C demo ."),
    ("tar", "tar --format=pax -czf pax.tgz demo"),
    ("tar", "tar --format=ustar -cf - demo | gzip -n > ustar.tgz"),
    (
        "git",
        "git init -q . && git add demo && git -c user.name=x -c user.email=x@x -c commit.gpgsign=false commit -qm x && git archive -o git.zip HEAD",
    ),
    ("git", "git archive --prefix=repository-1/ -o git.tar.gz HEAD"),
];

fn run(folder: &Path, program: &str, script: &str) -> bool {
    let found =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("note: {program} is not here, so its archives are not checked");
        return false;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(folder).env("LC_ALL", "C.UTF-8");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{script}: {}", String::from_utf8_lossy(&ran.stderr));
    true
}

/// Reads every archive in a folder; returns how many there were.
fn check(folder: &Path) -> usize {
    let expected = Tree::read(&folder.join("demo")).unwrap();
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let tree = archive::unpack(&fs::read(&path).unwrap());
        let skills =
            tree.and_then(archive::skills).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(skills.len(), 1, "{name}");
        assert_eq!(skills[0].1, expected, "{name}");
        let root = name.starts_with("inside");
        assert_eq!(skills[0].0.as_deref(), (!root).then_some("demo"), "{name}");
        read += 1;
    }
    read
}

#[test]
fn archives_made_by_python_are_read() {
    let place = tempfile::tempdir().unwrap();
    skill().write(&place.path().join("demo")).unwrap();
    let made = Command::new("python3").arg("-c").arg(PYTHON).current_dir(place.path()).output();
    let Ok(made) = made else {
        eprintln!("note: python3 is not here, so its archives are not checked");
        return;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(check(place.path()), 11);
}

#[test]
fn archives_made_by_other_programs_are_read() {
    let place = tempfile::tempdir().unwrap();
    skill().write(&place.path().join("demo")).unwrap();
    let made =
        PROGRAMS.iter().filter(|(program, script)| run(place.path(), program, script)).count();
    assert_eq!(check(place.path()), made);
}
