//! Checks access to files that were not granted, and changes of files that were granted for
//! reading.

use std::{
    fs::{self, File, Permissions},
    io::Write as _,
    os::{
        fd::AsRawFd as _,
        unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    },
    path::Path,
};

use super::{
    Check,
    calls::{self, address, c_path, call},
    check, contains, done, is_secret,
};

const OWNED: &str = "the file belongs to root";

pub(super) const CHECKS: &[Check] = &[
    check("read a private file", "files", |at| is_secret(fs::read(at.secret.join("file")))),
    check("see that a private file exists", "files", |at| {
        done(fs::symlink_metadata(at.secret.join("file")))
    }),
    check("list a private folder", "files", |at| done(fs::read_dir(&at.secret))),
    check("list the folder above the grants", "files", |at| {
        let entries = fs::read_dir(at.secret.parent().unwrap()).map_err(|e| e.to_string())?;
        let found = entries.flatten().any(|entry| entry.file_name() == "secret");
        if found { Ok(()) } else { Err("it is not listed".to_owned()) }
    }),
    check("read through ..", "files", |at| is_secret(fs::read(at.read.join("../secret/file")))),
    check("read through a link in a granted folder", "files", |at| {
        is_secret(fs::read(at.read.join("link")))
    }),
    check("read through a link to a folder", "files", |at| {
        is_secret(fs::read(at.write.join("link/file")))
    }),
    check("read through a new link", "files", |at| {
        let link = at.write.join("new-link");
        symlink(&at.secret, &link).map_err(|error| error.to_string())?;
        is_secret(fs::read(link.join("file")))
    }),
    check("read through /proc/self/root", "files", |at| {
        is_secret(fs::read(format!("/proc/self/root{}/file", at.secret.display())))
    }),
    check("read through the root of the parent", "files", |at| {
        let parent = std::os::unix::process::parent_id();
        is_secret(fs::read(format!("/proc/{parent}/root{}/file", at.secret.display())))
    }),
    check("read through the root of process 1", "files", |at| {
        is_secret(fs::read(format!("/proc/1/root{}/file", at.secret.display())))
    })
    .depends("the root of process 1 is its own affair"),
    check("read /etc/shadow", "files", |_| done(fs::read("/etc/shadow"))).root(OWNED),
    check("read another file of /etc", "files", |_| {
        let found = ["fstab", "profile", "hostname", "issue", "shadow"]
            .iter()
            .any(|name| File::open(Path::new("/etc").join(name)).is_ok());
        if found { Ok(()) } else { Err("none is there".to_owned()) }
    }),
    check("list the folders of the host", "files", |_| {
        let found =
            ["/var", "/root", "/home", "/boot", "/opt"].iter().any(|p| Path::new(p).exists());
        if found { Ok(()) } else { Err("none is there".to_owned()) }
    }),
    check("look into /sys", "files", |_| done(fs::read_dir("/sys/kernel"))),
    check("write to a file for reading", "files", |at| {
        done(File::options().write(true).open(at.read.join("file")))
    }),
    check("append to a file for reading", "files", |at| {
        done(File::options().append(true).open(at.read.join("file")))
    }),
    check("truncate a file for reading", "files", |at| {
        let path = c_path(&at.read.join("file"));
        done(call(libc::SYS_truncate, &[address(path.to_bytes_with_nul())]))
    }),
    check("change the mode of a file for reading", "files", |at| {
        done(fs::set_permissions(at.read.join("file"), Permissions::from_mode(0o777)))
    }),
    check("change the times of a file for reading", "files", |at| {
        let path = c_path(&at.read.join("file"));
        let path = address(path.to_bytes_with_nul());
        done(call(libc::SYS_utimensat, &[libc::AT_FDCWD as usize, path, 0, 0]))
    }),
    check("set an attribute of a file for reading", "files", |at| {
        let path = c_path(&at.read.join("file"));
        let (path, name) = (address(path.to_bytes_with_nul()), address(c"user.savoir"));
        done(call(libc::SYS_setxattr, &[path, name, address(b"x"), 1, 0]))
    })
    .depends("not every file system has attributes"),
    check("rename a file for reading", "files", |at| {
        done(fs::rename(at.read.join("file"), at.read.join("other")))
    }),
    check("move a file for reading away", "files", |at| {
        done(fs::rename(at.read.join("file"), at.write.join("other")))
    }),
    check("rename over a file for reading", "files", |at| {
        done(fs::rename(at.write.join("file"), at.read.join("file")))
    }),
    check("remove a file for reading", "files", |at| done(fs::remove_file(at.read.join("file")))),
    check("make a file in a folder for reading", "files", |at| {
        done(File::create_new(at.read.join("new")))
    }),
    check("make a folder in a folder for reading", "files", |at| {
        done(fs::create_dir(at.read.join("inner/new")))
    }),
    check("make a link in a folder for reading", "files", |at| {
        done(symlink("file", at.read.join("new")))
    }),
    check("change a file for reading by a second name", "files", |at| {
        let second = at.write.join("second");
        fs::hard_link(at.read.join("file"), &second).map_err(|error| error.to_string())?;
        done(fs::write(second, "changed"))
    }),
    check("write into a pipe for reading", "files", |at| {
        let options = File::options().write(true).custom_flags(libc::O_NONBLOCK).clone();
        done(options.open(at.read.join("pipe")).and_then(|mut pipe| pipe.write_all(b"x")))
    }),
    check("make a file in /tmp", "files", |_| make_and_remove("/tmp")),
    check("make a file in /var/tmp", "files", |_| make_and_remove("/var/tmp")),
    check("make a file in /dev/shm", "files", |_| make_and_remove("/dev/shm")),
    check("make a file in /", "files", |_| make_and_remove("/")).root(OWNED),
    check("make a file in /etc", "files", |_| make_and_remove("/etc")).root(OWNED),
    check("make a file in /usr", "files", |_| make_and_remove("/usr")).root(OWNED),
    check("make a file in /dev", "files", |_| make_and_remove("/dev")).root(OWNED),
    check("make a file beside the grants", "files", |at| {
        done(File::create_new(at.write.parent().unwrap().join("new")))
    }),
    check("set a variable of the kernel", "files", |_| {
        done(File::options().write(true).open("/proc/sys/kernel/hostname"))
    })
    .root(OWNED),
    check("ask to be spared when memory is short", "files", |_| {
        done(fs::write("/proc/self/oom_score_adj", "500"))
    }),
    check("write to memory through a file", "files", |_| {
        done(File::options().write(true).open("/proc/self/mem"))
    }),
    check("press the keys of the system", "files", |_| {
        done(File::options().write(true).open("/proc/sysrq-trigger"))
    })
    .depends(OWNED),
    check("open the memory of the machine", "files", |_| done(File::open("/proc/kcore")))
        .depends(OWNED),
    check("open the log of the kernel", "files", |_| done(File::open("/dev/kmsg"))).root(OWNED),
    check("open a new terminal", "files", |_| {
        done(File::options().read(true).write(true).open("/dev/ptmx"))
    })
    .depends("terminals can be closed to ordinary users"),
    check("make a device file", "files", |at| {
        let device = libc::makedev(1, 3);
        done(calls::make_node(&at.write.join("null"), libc::S_IFCHR | 0o666, device))
    })
    .root("only root makes device files"),
    check("make a socket file", "files", |at| {
        done(calls::make_node(&at.write.join("socket"), libc::S_IFSOCK | 0o666, 0))
    }),
    check("give a file to someone else", "files", |at| {
        done(std::os::unix::fs::chown(at.write.join("file"), Some(12345), None))
    })
    .root("only root gives files away"),
    check("mark a file as set-uid", "files", |at| {
        let path = at.write.join("file");
        done(fs::set_permissions(&path, Permissions::from_mode(0o4755)))?;
        let mode = fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
        if mode & 0o4000 == 0 { Err("the bit is not set".to_owned()) } else { Ok(()) }
    }),
    check("make a file that is set-uid", "files", |at| {
        let path = at.write.join("new");
        let options = File::options().write(true).create_new(true).mode(0o4755).clone();
        options.open(&path).map_err(|error| error.to_string())?;
        let mode = fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
        if mode & 0o4000 == 0 { Err("the bit is not set".to_owned()) } else { Ok(()) }
    }),
    check("make others wait for a file by a lease", "files", |at| {
        let file = File::open(at.write.join("file")).map_err(|error| error.to_string())?;
        let (fd, lease, reading) = (file.as_raw_fd() as usize, libc::F_SETLEASE as usize, 0);
        done(call(libc::SYS_fcntl, &[fd, lease, reading]))
    })
    .depends("not every file system has leases"),
    check("use an inherited descriptor of a file", "descriptors", |at| {
        let file = format!("/proc/self/fd/{}", at.file_descriptor);
        is_secret(fs::read(file))
    }),
    check("use an inherited descriptor of a folder", "descriptors", |at| {
        let name = c"file";
        let folder = at.folder_descriptor as usize;
        done(call(libc::SYS_openat, &[folder, address(name), 0]))
    }),
    check("find a descriptor beyond the standard ones", "descriptors", |_| {
        let found = (3..1024_usize).filter(|fd| call(libc::SYS_fcntl, &[*fd, 1]).is_ok()).count();
        if found > 0 { Ok(()) } else { Err("there is none".to_owned()) }
    }),
    check("see a variable of the caller", "environment", |_| {
        std::env::var_os("PATH").map(drop).ok_or_else(|| "it is not set".to_owned())
    }),
    check("find a variable of the caller in /proc", "environment", |_| {
        contains(fs::read("/proc/self/environ"), "PATH=")
    }),
];

fn make_and_remove(folder: &str) -> Result<(), String> {
    let path = Path::new(folder).join(format!("savoir-test-{}", std::process::id()));
    done(File::create_new(&path))?;
    let _ = fs::remove_file(path);
    Ok(())
}
