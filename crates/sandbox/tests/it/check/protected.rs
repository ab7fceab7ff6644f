//! Checks paths below a writable folder that must stay unchanged: `kept` (a folder), `guarded` (a
//! file), `missing`, `far/missing` (with its folder), `deep/inner`, and `closed/deep/inner` below a
//! folder without permissions.

use std::{
    fs::{self, File, Permissions},
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use super::{Check, check, done};
use crate::support::Setup;

const GROUP: &str = "protected paths";

/// Writing into a pipe changes nothing on the disk.
pub(crate) const PIPE_IN_PROTECTED: &str = "write into a pipe in a protected folder";

/// Nothing can be mounted at a missing path, so these files can be created, and are moved aside
/// when the program has ended.
pub(crate) const MOVED_ASIDE_CHECKS: [&str; 6] = [
    "make a protected file that is missing",
    "make a file in a protected folder that is missing",
    "put a link where something protected is missing",
    "rename something to where something protected is missing",
    "make something protected, remove it and make it anew",
    "make something protected together with its folder",
];

pub(super) const CHECKS: &[Check] = &[
    check("change a file in a protected folder", GROUP, |at| {
        done(fs::write(at.write.join("kept/file"), "changed"))
    }),
    check("make a file in a protected folder", GROUP, |at| {
        done(File::create_new(at.write.join("kept/new")))
    }),
    check("remove a file from a protected folder", GROUP, |at| {
        done(fs::remove_file(at.write.join("kept/file")))
    }),
    check("rename a protected folder", GROUP, |at| {
        done(fs::rename(at.write.join("kept"), at.write.join("away")))
    }),
    check("remove a protected folder", GROUP, |at| done(fs::remove_dir_all(at.write.join("kept")))),
    check("change the mode of a protected folder", GROUP, |at| {
        done(fs::set_permissions(at.write.join("kept"), Permissions::from_mode(0o700)))
    }),
    check(PIPE_IN_PROTECTED, GROUP, |at| {
        let options = File::options().write(true).custom_flags(libc::O_NONBLOCK).clone();
        done(options.open(at.write.join("kept/pipe")).and_then(|mut pipe| pipe.write_all(b"x")))
    }),
    check("change a protected file", GROUP, |at| {
        done(fs::write(at.write.join("guarded"), "changed"))
    }),
    check("replace a protected file", GROUP, |at| {
        done(fs::rename(at.write.join("file"), at.write.join("guarded")))
    }),
    check("remove a protected file", GROUP, |at| done(fs::remove_file(at.write.join("guarded")))),
    check("change a protected file by a second name", GROUP, |at| {
        let second = at.write.join("second");
        done(fs::hard_link(at.write.join("guarded"), &second))?;
        done(fs::write(second, "changed"))
    }),
    check("make a protected file that is missing", GROUP, |at| {
        done(fs::write(at.write.join("missing"), "new"))
    }),
    check("make a file in a protected folder that is missing", GROUP, |at| {
        let _ = fs::create_dir(at.write.join("missing"));
        done(fs::write(at.write.join("missing/file"), "new"))
    }),
    check("put a link where something protected is missing", GROUP, |at| {
        done(symlink("file", at.write.join("missing")))
    }),
    check("rename something to where something protected is missing", GROUP, |at| {
        let folder = at.write.join("folder");
        done(fs::create_dir(&folder))?;
        done(fs::rename(folder, at.write.join("missing")))
    }),
    check("make something protected, remove it and make it anew", GROUP, |at| {
        let path = at.write.join("missing");
        let _ = fs::remove_dir(&path);
        done(fs::create_dir(&path))?;
        done(fs::write(path.join("file"), "new"))
    }),
    check("make something protected together with its folder", GROUP, |at| {
        let _ = fs::create_dir(at.write.join("far"));
        done(fs::write(at.write.join("far/missing"), "new"))
    }),
    check("move the folder of something protected away and make it anew", GROUP, |at| {
        replace_folder(&at.write, "deep", "deep/inner")
    }),
    check("open a closed folder and change what is protected in it", GROUP, |at| {
        open_closed(at)?;
        done(fs::write(at.write.join("closed/deep/inner/file"), "changed"))
    }),
    check("open a closed folder and replace what is protected in it", GROUP, |at| {
        open_closed(at)?;
        replace_folder(&at.write, "closed/deep", "closed/deep/inner")
    }),
];

fn open_closed(at: &Setup) -> Result<(), String> {
    done(fs::set_permissions(at.write.join("closed"), Permissions::from_mode(0o755)))
}

fn replace_folder(below: &Path, folder: &str, protected: &str) -> Result<(), String> {
    done(fs::rename(below.join(folder), below.join("away")))?;
    done(fs::create_dir_all(below.join(protected)))?;
    done(fs::write(below.join(protected).join("file"), "other"))
}
