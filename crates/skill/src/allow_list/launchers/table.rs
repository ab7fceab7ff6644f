//! Lists every program that is known to run others, or to write files that others run.
//!
//! To add a program, list the options that execute something and the meaning of its words. List the
//! harmless options ([`Only`]) if there are few, or if a new option could execute something.

use super::{
    CommandPassing, Launcher, Style, Subcommands,
    KnownOptions::{AllAnd, Only},
    Words, text,
};

pub(super) const BASE: Launcher = Launcher {
    names: &[],
    executes: &[],
    acts: &[],
    understood: AllAnd(&[]),
    takes: &[],
    attached: &[],
    texts: &[],
    style: Style::Clustered,
    words: Words::Plain,
    risky_parts: &[],
    runs_if: &[],
};

const NO_SUBCOMMANDS: Subcommands =
    Subcommands { plain: &[], acts: &[], executes: &[], options: &[], own: &[], addressed: &[], forwards: &[] };

const fn command(after: usize) -> Words {
    Words::Command { after, how: CommandPassing::Words }
}

const fn shell(after: usize) -> Words {
    Words::Command { after, how: CommandPassing::Shell }
}

/// Programs that run the tasks of a project.
const TASKS: Launcher = Launcher { words: Words::Tasks(&["--version", "--help", "-h"]), ..BASE };

/// Programs of which every word can run something.
const OPAQUE: Launcher = Launcher { words: Words::Opaque, ..BASE };

pub(super) static TABLE: &[Launcher] = &[
    GIT,
    // Files.
    Launcher {
        names: &["find", "gfind"],
        executes: &["-exec", "-execdir", "-ok", "-okdir"],
        acts: &["-delete", "-fprint", "-fprint0", "-fprintf", "-fls"],
        understood: Only(&[
            "-P", "-H", "-L", "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename",
            "-regex", "-iregex", "-regextype", "-lname", "-ilname", "-type", "-xtype", "-size", "-empty",
            "-newer", "-newermt", "-newerct", "-newerat", "-newermm", "-anewer", "-cnewer", "-mtime",
            "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-maxdepth", "-mindepth", "-depth", "-d",
            "-mount", "-xdev", "-prune", "-print", "-print0", "-printf", "-ls", "-quit", "-not", "-and",
            "-or", "-a", "-o", "-true", "-false", "-perm", "-user", "-group", "-uid", "-gid", "-nouser",
            "-nogroup", "-readable", "-writable", "-executable", "-links", "-inum", "-samefile",
            "-follow", "-daystart", "-noleaf", "-ignore_readdir_race", "-fstype", "-used", "-E", "-s",
            "-X", "-x",
        ]),
        style: Style::Whole,
        ..BASE
    },
    Launcher {
        names: &["fd", "fdfind"],
        executes: &["-x", "-X", "--exec", "--exec-batch"],
        takes: &["-e", "-t", "-d", "-E", "-S", "-c", "-j"],
        ..BASE
    },
    Launcher {
        names: &["tar", "gtar", "bsdtar"],
        executes: &[
            "-I", "-F", "--use-compress-program", "--to-command", "--checkpoint-action",
            "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command",
        ],
        understood: AllAnd(&["--checkpoint"]),
        // Other options take a value in some versions of tar and none in others.
        takes: &["-f", "-C", "-T", "-X", "-b"],
        words: Words::Letters,
        // `host:archive` starts a shell on another machine.
        risky_parts: &[":"],
        ..BASE
    },
    Launcher {
        names: &["cpio"],
        acts: &["--rsh-command", "--to-stdout"],
        risky_parts: &[":"],
        ..BASE
    },
    Launcher {
        names: &["rsync"],
        executes: &["-e", "-M", "--rsh", "--rsync-path", "--remote-option"],
        takes: &["-f", "-B", "-T"],
        ..BASE
    },
    Launcher { names: &["zip"], executes: &["-T", "--unzip-command"], acts: &["--test"], ..BASE },
    Launcher {
        names: &["7z", "7za", "7zr", "7zz"],
        understood: Only(&["-h", "--help"]),
        style: Style::Whole,
        words: Words::Subcommand(Subcommands {
            plain: &["a", "b", "d", "e", "h", "i", "l", "t", "u", "x"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    Launcher {
        names: &["sort", "gsort"],
        executes: &["--compress-program"],
        acts: &["-o", "--output"],
        takes: &["-k", "-t", "-S", "-T"],
        ..BASE
    },
    Launcher { names: &["split", "gsplit"], executes: &["--filter"], ..BASE },
    Launcher { names: &["rg"], executes: &["--pre", "--hostname-bin"], understood: AllAnd(&["--pre-glob"]), ..BASE },
    Launcher { names: &["ag", "ack", "bat"], executes: &["--pager"], ..BASE },
    // Text.
    Launcher {
        names: &["awk", "gawk", "mawk", "nawk", "original-awk"],
        acts: &["-f", "-E", "-i", "-l", "-e", "-o", "-d", "-p", "--file", "--exec", "--include", "--load"],
        understood: Only(&["--field-separator", "--assign", "--version", "--help", "-V", "-h", "-b", "-n"]),
        takes: &["-F", "-v", "--field-separator", "--assign"],
        words: Words::Text(text::check_awk),
        ..BASE
    },
    Launcher {
        names: &["sed", "gsed"],
        acts: &["-f", "--file"],
        understood: Only(&[
            "-n", "-r", "-E", "-s", "-u", "-z", "--quiet", "--silent", "--regexp-extended", "--separate",
            "--null-data", "--posix", "--debug", "--sandbox", "--version", "--help", "--in-place",
            "--unbuffered",
        ]),
        takes: &["-l"],
        attached: &["-i"],
        texts: &["-e", "--expression"],
        words: Words::Text(text::check_sed),
        ..BASE
    },
    Launcher { names: &["ed", "ex", "vi", "vim", "nvim", "view", "rvim", "vimdiff", "emacs", "nano", "pico", "red"], ..OPAQUE },
    Launcher { names: &["man"], executes: &["-P", "-H", "-C", "--pager", "--html", "--config-file"], ..BASE },
    Launcher {
        names: &["less", "more", "most"],
        acts: &["-k", "-o", "-O", "-t", "-T", "--lesskey-file", "--lesskey-src", "--lesskey-content", "--log-file", "--LOG-FILE"],
        risky_parts: &["+"],
        ..BASE
    },
    // Programs in front of another command.
    Launcher {
        names: &["env"],
        executes: &["-S", "--split-string"],
        takes: &["-u", "-C", "--unset", "--chdir"],
        words: command(0),
        ..BASE
    },
    Launcher {
        names: &["xargs", "gxargs"],
        understood: Only(&[
            "-0", "-r", "-t", "-x", "-p", "-o", "--null", "--no-run-if-empty", "--verbose", "--exit",
            "--interactive", "--open-tty", "--max-args", "--max-procs", "--max-lines", "--max-chars",
            "--delimiter", "--arg-file", "--eof", "--replace",
        ]),
        takes: &["-n", "-P", "-L", "-s", "-d", "-E", "-a", "-I", "-R", "-J"],
        attached: &["-i", "-l", "-e"],
        words: Words::Command { after: 0, how: CommandPassing::Growing },
        ..BASE
    },
    Launcher { names: &["parallel", "sem"], ..OPAQUE },
    Launcher {
        names: &["sudo", "doas"],
        acts: &["-e", "-i", "-s", "--edit", "--login", "--shell"],
        takes: &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t"],
        words: command(0),
        ..BASE
    },
    Launcher { names: &["su", "runuser", "chroot", "nsenter", "unshare", "setpriv", "capsh", "start-stop-daemon", "setarch", "gosu", "su-exec", "runcon", "schedtool", "cgexec", "envdir", "setlock", "systemd-nspawn", "flatpak-spawn", "toolbox", "distrobox", "wine", "mpirun", "mpiexec", "srun", "sbatch", "salloc", "qsub", "foreman", "overmind", "honcho", "pm2", "forever", "gdbserver", "rr", "heaptrack", "uftrace", "bear", "scan-build", "libtool"], ..OPAQUE },
    Launcher { names: &["nice"], takes: &["-n"], words: command(0), ..BASE },
    Launcher { names: &["ionice"], takes: &["-c", "-n", "-p"], words: command(0), ..BASE },
    Launcher { names: &["chrt", "taskset"], words: command(1), ..BASE },
    Launcher {
        names: &["timeout", "gtimeout"],
        takes: &["-s", "-k", "--signal", "--kill-after"],
        words: command(1),
        ..BASE
    },
    Launcher { names: &["nohup", "setsid", "fakeroot", "command", "builtin", "exec", "busybox", "toybox", "catchsegv"], words: command(0), ..BASE },
    Launcher { names: &["time"], takes: &["-f", "-o"], words: command(0), ..BASE },
    Launcher { names: &["prlimit"], takes: &["-p", "-o", "--pid", "--output"], words: command(0), ..BASE },
    Launcher { names: &["linux32", "linux64", "i386", "i486", "i586", "i686", "x86_64", "uname26"], words: command(0), ..BASE },
    Launcher { names: &["logsave"], words: command(1), ..BASE },
    Launcher { names: &["choom"], takes: &["-n", "-p", "--adjust", "--pid"], words: command(0), ..BASE },
    Launcher { names: &["uclampset"], takes: &["-m", "-M", "-p", "--pid"], words: command(0), ..BASE },
    Launcher { names: &["ssh-agent"], takes: &["-a", "-t", "-E", "-O", "-P"], words: command(0), ..BASE },
    Launcher { names: &["dumb-init", "tini", "chronic", "systemd-cat", "ccache", "sccache", "distcc", "icecc", "mispipe", "tsp", "nq", "trickle", "tsocks"], words: command(0), ..BASE },
    Launcher { names: &["stdbuf"], takes: &["-i", "-o", "-e"], words: command(0), ..BASE },
    Launcher { names: &["watch"], takes: &["-n", "--interval"], words: shell(0), ..BASE },
    Launcher {
        names: &["strace", "ltrace"],
        acts: &["-o", "--output"],
        takes: &["-e", "-s", "-p", "-E", "-u", "-a", "-b", "-I", "-O", "-S", "-P", "-X"],
        words: command(0),
        ..BASE
    },
    Launcher { names: &["flock"], executes: &["-c", "--command"], takes: &["-w", "-E"], words: command(1), ..BASE },
    Launcher { names: &["systemd-run", "systemd-inhibit", "script", "gdb", "lldb", "rlwrap", "unbuffer", "tmux", "screen", "socat", "nc", "ncat", "netcat", "run-parts"], ..OPAQUE },
    // Shell builtins that execute a text or a file.
    Launcher { names: &["eval", "source", ".", "trap", "alias", "coproc", "enable", "bind", "complete"], ..OPAQUE },
    // Schedulers.
    Launcher { names: &["crontab"], understood: Only(&["-l"]), takes: &["-u"], ..OPAQUE_BUT_OPTIONS },
    Launcher { names: &["at", "batch"], understood: Only(&["-l", "-V"]), ..OPAQUE_BUT_OPTIONS },
    // Other machines.
    Launcher {
        names: &["ssh"],
        executes: &["-o", "-F", "-I"],
        takes: &["-p", "-i", "-l", "-b", "-c", "-m", "-E", "-L", "-R", "-D", "-W", "-J", "-e", "-B", "-Q", "-S", "-w"],
        words: shell(1),
        ..BASE
    },
    Launcher {
        names: &["scp", "sftp"],
        executes: &["-o", "-F", "-S", "-D", "-b"],
        takes: &["-P", "-i", "-l", "-c", "-J", "-X"],
        ..BASE
    },
    Launcher {
        names: &["curl"],
        executes: &["-K", "--config", "--engine", "--unix-socket", "--abstract-unix-socket"],
        // A format for `-w` can name a file to write to.
        runs_if: &["--expand-", "%output", "w @", "-w@", "sw@", "write-out=@", "write-out @"],
        acts: &[
            "-o", "-O", "-J", "-c", "-D", "--output", "--output-dir", "--remote-name", "--remote-name-all",
            "--remote-header-name", "--cookie-jar", "--dump-header", "--trace", "--trace-ascii",
            "--libcurl", "--etag-save", "--hsts", "--alt-svc", "--stderr", "--create-dirs",
        ],
        understood: AllAnd(&["--compressed", "--connect-timeout", "--cookie", "--header", "--head"]),
        takes: &["-H", "-X", "-d", "-A", "-b", "-e", "-F", "-m", "-r", "-u", "-x", "-w", "-T", "-y", "-Y", "-C", "-E", "-t", "-U", "-P", "-Q", "-z"],
        ..BASE
    },
    Launcher {
        names: &["wget"],
        executes: &["-e", "--execute", "--use-askpass", "--config"],
        acts: &[
            "-O", "-o", "-a", "-P", "--output-document", "--output-file", "--append-output",
            "--directory-prefix", "--save-cookies", "--warc-file", "--hsts-file", "--rejected-log",
        ],
        takes: &["-t", "-T", "-U", "-w", "-i", "-A", "-R", "-D"],
        ..BASE
    },
    // Interpreters: a pattern can name a script file, but not the code in a text.
    Launcher {
        names: &["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"],
        understood: Only(&["-e", "-u", "-x", "-v", "-n", "-f", "-C", "--norc", "--noprofile", "--posix", "--version", "--help"]),
        // `-oc` takes the next two words, so `-o` is not understood.
        executes: &["-c", "--rcfile", "--init-file", "--init-command"],
        words: Words::Script { ends: &["-c"] },
        ..BASE
    },
    Launcher {
        names: &["python", "pypy"],
        executes: &["-c", "-m"],
        understood: Only(&["-u", "-B", "-O", "-q", "-s", "-S", "-E", "-I", "-P", "-V", "-v", "-h", "-b", "-x", "--version", "--help"]),
        takes: &["-W", "-X"],
        words: Words::Script { ends: &["-c", "-m"] },
        ..BASE
    },
    Launcher {
        names: &["node", "nodejs"],
        executes: &["-e", "-p", "-r", "--eval", "--print", "--require", "--import", "--loader", "--experimental-loader"],
        understood: Only(&["-v", "-h", "-c", "--version", "--help", "--check", "--test", "--watch", "--trace-warnings", "--no-warnings", "--enable-source-maps", "--use-strict"]),
        words: Words::Script { ends: &[] },
        ..BASE
    },
    Launcher {
        names: &["perl"],
        executes: &["-e", "-E", "-M", "-m", "-d"],
        understood: Only(&["-w", "-W", "-T", "-t", "-c", "-v", "-V", "-h"]),
        words: Words::Script { ends: &[] },
        ..BASE
    },
    Launcher {
        names: &["ruby"],
        executes: &["-e", "-r"],
        understood: Only(&["-w", "-W", "-c", "-v", "-h", "--version", "--help"]),
        words: Words::Script { ends: &[] },
        ..BASE
    },
    Launcher {
        names: &["php"],
        executes: &["-r", "-B", "-R", "-E", "-F", "-d", "-c", "-z", "--run"],
        understood: Only(&["-l", "-v", "-i", "-m", "-h", "-n", "-q", "-f", "--version"]),
        words: Words::Script { ends: &[] },
        ..BASE
    },
    Launcher { names: &["lua", "luajit", "julia", "Rscript", "guile", "osascript"], understood: Only(&["-v", "--version", "--help"]), words: Words::Script { ends: &[] }, ..BASE },
    // Builds and packages.
    Launcher {
        names: &["make", "gmake"],
        executes: &["-f", "-C", "-E", "-I", "--file", "--makefile", "--directory", "--eval", "--include-dir"],
        understood: Only(&[
            "-j", "-k", "-n", "-s", "-B", "-w", "-i", "-q", "-t", "-r", "-R", "-l", "-O", "-d", "-p", "-v",
            "-h", "--jobs", "--keep-going", "--dry-run", "--just-print", "--silent", "--quiet",
            "--always-make", "--version", "--help", "--no-print-directory", "--question",
        ]),
        attached: &["-j", "-l", "-O"],
        // `SHELL=…`, `CC=…`
        risky_parts: &["="],
        ..BASE
    },
    Launcher {
        names: &["npm", "pnpm", "yarn", "bun", "deno"],
        executes: NODE_OPTIONS,
        // An unknown option may take the next word as its value, which then is not a subcommand.
        understood: Only(&["-s", "-q", "--silent", "--quiet", "--version", "-v", "--help", "-h", "--json", "--workspace"]),
        takes: &["-w", "--workspace"],
        runs_if: &["--config."],
        words: Words::Subcommand(Subcommands {
            plain: &[
                "ls", "list", "ll", "la", "view", "info", "show", "outdated", "audit", "search", "why",
                "explain", "root", "prefix", "bin", "whoami", "ping", "licenses",
            ],
            acts: &[
                "run", "run-script", "rum", "test", "t", "tst", "start", "stop", "restart", "install", "i",
                "in", "ci", "add", "up", "update", "upgrade", "rebuild", "link", "publish", "pack",
                "version", "init", "audit fix", "dedupe", "prune", "uninstall", "remove", "rm",
            ],
            executes: &["exec", "x", "dlx", "create"],
            options: NODE_OPTIONS,
            own: &[("exec", &["-c"]), ("x", &["-c"])],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    Launcher {
        names: &["npx", "pnpx", "bunx", "uvx"],
        executes: &["-c", "--call", "-p", "--package", "--from", "--with", "--shell"],
        words: command(0),
        ..BASE
    },
    Launcher {
        names: &["cargo"],
        executes: &["--config", "-Z", "-C"],
        understood: Only(&["--color", "--version", "-V", "--help", "-h", "-q", "-v", "--quiet", "--verbose", "--locked", "--offline", "--frozen", "--list"]),
        takes: &["--color"],
        words: Words::Subcommand(Subcommands {
            plain: &[
                "add", "b", "bench", "build", "c", "check", "clean", "clippy", "d", "doc", "fetch", "fmt",
                "help", "info", "metadata", "nextest", "remove", "search", "t", "test", "tree", "update",
                "vendor", "version",
            ],
            acts: &["run", "r", "install", "fix", "publish"],
            options: &["--config", "--manifest-path"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    Launcher {
        names: &["go"],
        // Linkers and compilers in the values of `-ldflags` and `-gccgoflags`.
        runs_if: &["-extld", "-extar", "-gccgo"],
        understood: Only(&["-h", "--help", "--version"]),
        words: Words::Subcommand(Subcommands {
            plain: &["build", "doc", "env", "fmt", "list", "mod", "test", "version", "vet", "help"],
            acts: &["run", "generate", "install", "get", "tool", "env -w"],
            options: &["-toolexec", "-exec", "-vettool", "-C", "-overlay", "-modfile", "-compiler"],
            ..NO_SUBCOMMANDS
        }),
        style: Style::Whole,
        ..BASE
    },
    Launcher {
        names: &["uv", "poetry", "pipenv", "pdm", "bundle", "rake", "pip", "pipx", "gem", "composer", "conda", "mamba"],
        understood: Only(&["--version", "-V", "--help", "-h", "-q", "-v", "--quiet", "--verbose"]),
        words: Words::Subcommand(Subcommands {
            plain: &["list", "show", "freeze", "check", "version", "help", "search", "info"],
            acts: &["install", "add", "remove", "sync", "lock", "update", "uninstall", "download"],
            executes: &["run", "exec", "x", "runpip", "tool run", "shell"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    // Containers.
    Launcher {
        names: &["docker", "podman", "nerdctl"],
        executes: &["-H", "--host", "--config", "-c", "--context"],
        understood: Only(&["--version", "-v", "--help", "-D", "--debug"]),
        words: Words::Subcommand(Subcommands {
            plain: &["ps", "images", "logs", "inspect", "version", "info", "stats", "top", "port", "diff", "history", "events", "search"],
            acts: &["build", "pull", "push", "start", "stop", "restart", "kill", "rm", "rmi", "cp", "tag", "load", "save"],
            executes: &["run", "exec", "create"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    Launcher {
        names: &["kubectl"],
        executes: &["--kubeconfig"],
        understood: Only(&["-n", "--namespace", "--help", "-h"]),
        takes: &["-n", "--namespace"],
        words: Words::Subcommand(Subcommands {
            plain: &["get", "describe", "logs", "version", "top", "explain", "api-resources", "cluster-info"],
            acts: &["apply", "delete", "edit", "cp", "patch", "scale", "rollout", "port-forward", "proxy"],
            executes: &["exec", "run", "debug", "attach"],
            options: &["--kubeconfig"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    // Compilers, linkers and programs that load libraries.
    Launcher {
        names: &["gcc", "g++", "cc", "c++", "c89", "c99", "cpp", "clang", "clang++", "gfortran", "gdc", "nvcc"],
        runs_if: &[
            "@", "-B", "-wrapper", "-plugin", "-fplugin", "-iplugindir", "-specs", "-fuse-ld", "-ld-path",
            "-Xclang", "-Xlinker", "-Xassembler", "-Xpreprocessor", "-load", "--config", "--prefix",
            "-toolchain", "-install-dir", "--for-linker", "--for-assembler", "-ccbin", "--compiler-bindir",
            "-optf", "--options-file", "-mllvm",
        ],
        style: Style::Whole,
        ..BASE
    },
    Launcher {
        names: &["ld", "gold", "lld", "ld.bfd", "ld.gold", "ld.lld", "mold", "ar", "nm", "ranlib", "strip", "objcopy", "objdump", "size"],
        // Long options may be abbreviated.
        runs_if: &["@", "-plu", "-load-pass", "-mllvm"],
        style: Style::Whole,
        ..BASE
    },
    Launcher {
        names: &["rustc"],
        runs_if: &["@", "-C", "--codegen", "-Z", "--sysroot", "--extern"],
        style: Style::Whole,
        ..BASE
    },
    Launcher { names: &["javac"], runs_if: &["@", "-J", "-processor", "--processor", "-Xplugin"], style: Style::Whole, ..BASE },
    Launcher {
        names: &["openssl"],
        runs_if: &["engine", "-provider", "-config"],
        style: Style::Whole,
        ..BASE
    },
    // More builds.
    Launcher {
        names: &["gradle", "gradlew"],
        executes: &["-I", "-b", "-c", "-P", "-D", "--init-script", "--build-file", "--settings-file", "--include-build", "--system-prop", "--project-prop"],
        takes: &["-x", "-p", "--exclude-task", "--tests", "--console"],
        ..TASKS
    },
    Launcher {
        names: &["mvn", "mvnw"],
        executes: &["-D", "-f", "-s", "-gs", "-t", "--define", "--file", "--settings", "--global-settings", "--toolchains"],
        takes: &["-T", "--threads"],
        words: Words::Tasks(&["--version", "--help", "-h", "-v"]),
        risky_parts: &["exec:", "antrun:"],
        ..BASE
    },
    Launcher { names: &["ant"], executes: &["-f", "-D", "-lib", "-logger", "-listener", "-file", "-buildfile"], style: Style::Whole, ..BASE },
    Launcher { names: &["cmake"], executes: &["-P", "-E", "-C", "-D", "--toolchain"], ..BASE },
    Launcher { names: &["ninja", "samu"], executes: &["-f", "-C"], takes: &["-j", "-k", "-l", "-d"], ..TASKS },
    Launcher {
        names: &["just"],
        executes: &["-f", "-c", "-d", "--justfile", "--command", "--shell", "--shell-arg", "--dotenv-path", "--working-directory"],
        words: Words::Tasks(&["--version", "--help", "-h", "-V", "--list", "-l", "--summary", "--dump", "--evaluate"]),
        ..BASE
    },
    Launcher {
        names: &["task", "go-task"],
        executes: &["-t", "-d", "--taskfile", "--dir"],
        words: Words::Tasks(&["--version", "--help", "-h", "--list", "-l", "--list-all", "-a"]),
        ..BASE
    },
    Launcher {
        names: &["tox", "nox"],
        executes: &["-c", "-f", "-x", "--conf", "--noxfile", "--override"],
        words: Words::Tasks(&["--version", "--help", "-h", "--list", "-l", "-a", "--showconfig"]),
        ..BASE
    },
    Launcher {
        names: &[
            "gulp", "grunt", "nx", "turbo", "lerna", "rush", "invoke", "inv", "fab", "pre-commit", "lefthook", "bazel", "bazelisk",
            "buck", "buck2", "pants", "please", "sbt", "mill", "lein", "mix", "rebar3", "cabal", "stack", "dune", "swift", "xcodebuild",
            "dotnet", "msbuild", "meson", "scons", "waf", "ctest", "earthly", "dagger", "skaffold", "tilt", "docker-compose",
            "podman-compose", "pulumi", "packer", "cdk", "serverless", "debuild", "dpkg-buildpackage", "dpkg-reconfigure", "rpmbuild",
            "autoreconf", "checkinstall",
        ],
        ..TASKS
    },
    Launcher {
        names: &["helm"],
        executes: &["--kubeconfig"],
        understood: Only(&["-n", "--namespace", "--help", "-h", "--kube-context", "--debug"]),
        takes: &["-n", "--namespace", "--kube-context"],
        words: Words::Subcommand(Subcommands {
            plain: &["list", "ls", "status", "get", "show", "search", "version", "history", "lint", "template", "env", "verify", "repo list"],
            acts: &["install", "upgrade", "uninstall", "rollback", "plugin", "pull", "push", "dependency", "repo", "test", "package", "create", "registry"],
            options: &["--post-renderer", "--kubeconfig"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    Launcher { names: &["pytest"], executes: &["-p", "-c", "-o", "--pdbcls", "--override-ini", "--config-file"], ..BASE },
    Launcher {
        names: &["terraform", "tofu"],
        understood: Only(&["-version", "-help"]),
        words: Words::Subcommand(Subcommands {
            plain: &["fmt", "validate", "show", "version", "output", "state", "providers", "graph", "workspace"],
            // Modules and providers run programs.
            acts: &["init", "plan", "apply", "destroy", "import", "refresh", "console", "test", "get"],
            ..NO_SUBCOMMANDS
        }),
        style: Style::Whole,
        ..BASE
    },
    Launcher { names: &["ansible", "ansible-playbook", "vagrant", "salt", "expect", "autoexpect", "tclsh", "wish", "m4", "dc", "gnuplot", "octave", "mail", "mailx", "ftp", "telnet"], ..OPAQUE },
    // More languages.
    Launcher {
        names: &["java"],
        understood: Only(&["-jar", "-version", "--version", "-help", "--help", "-cp", "-classpath", "--class-path", "-ea", "-server"]),
        takes: &["-cp", "-classpath", "--class-path"],
        style: Style::Whole,
        words: Words::Script { ends: &["-jar"] },
        ..BASE
    },
    Launcher {
        names: &["tsx", "ts-node", "nodemon"],
        executes: &["-e", "-p", "-r", "-x", "--eval", "--print", "--require", "--import", "--loader", "--exec"],
        understood: Only(&["-v", "-h", "-q", "--version", "--help", "--watch", "--no-warnings", "--transpile-only"]),
        words: Words::Script { ends: &[] },
        ..BASE
    },
    Launcher {
        names: &["pwsh", "powershell", "powershell.exe"],
        executes: &["-c", "-Command", "-e", "-ec", "-EncodedCommand"],
        understood: Only(&["-NoProfile", "-NoLogo", "-NonInteractive", "-File", "-f", "-Version", "-Help"]),
        style: Style::Whole,
        words: Words::Script { ends: &["-Command", "-c"] },
        ..BASE
    },
    // Typesetting.
    Launcher { names: &["pandoc"], executes: &["-F", "-L", "--filter", "--lua-filter", "--pdf-engine", "--pdf-engine-opt", "-d", "--defaults", "--data-dir"], runs_if: &[".lua"], ..BASE },
    Launcher { names: &["latexmk"], executes: &["-e", "-r", "-pdflatex", "-xelatex", "-lualatex", "-latex", "-shell-escape"], style: Style::Whole, risky_parts: &["="], ..BASE },
    Launcher {
        names: &["tex", "latex", "pdftex", "pdflatex", "xetex", "xelatex", "luatex", "lualatex"],
        acts: &["-shell-escape", "--shell-escape", "-enable-write18", "--enable-write18"],
        executes: &["-output-directory", "-cnf-line"],
        style: Style::Whole,
        ..BASE
    },
    // Services and packages of the system.
    Launcher {
        names: &["dpkg"],
        // Packages have scripts, and hooks are commands.
        executes: &["--pre-invoke", "--post-invoke", "--status-logger", "--root", "--instdir", "--admindir"],
        acts: &["-i", "-r", "-P", "-A", "--install", "--unpack", "--configure", "--remove", "--purge", "--triggers-only"],
        understood: Only(&[
            "-l", "-s", "-L", "-S", "-p", "-C", "-V", "-I", "-c", "--list", "--status", "--listfiles", "--search", "--print-avail",
            "--get-selections", "--print-architecture", "--print-foreign-architectures", "--audit", "--verify", "--info",
            "--contents", "--compare-versions", "--no-pager", "--version", "--help",
        ]),
        ..BASE
    },
    Launcher {
        names: &["rpm"],
        executes: &["-E", "-D", "--eval", "--define", "--pipe", "--root", "--dbpath", "--load", "--macros", "--rcfile"],
        acts: &["-i", "-U", "-F", "-e", "--install", "--upgrade", "--freshen", "--erase", "--reinstall", "--rebuild"],
        understood: AllAnd(&["--info", "--requires", "--provides"]),
        ..BASE
    },
    Launcher {
        names: &["gpg", "gpg2"],
        executes: &["--photo-viewer", "--exec-path", "--homedir", "--options", "--load-extension", "--agent-program", "--dirmngr-program", "--keyserver-options"],
        acts: &["-o", "--output", "--export-secret-keys"],
        ..BASE
    },
    Launcher {
        names: &["apt", "apt-get", "dnf", "yum", "brew", "apk", "zypper", "snap", "flatpak", "pacman", "port"],
        executes: &["-o", "-c", "--option", "--config-file", "--setopt"],
        understood: Only(&["-q", "-y", "-v", "--version", "--help", "--quiet", "--yes", "--assume-yes"]),
        words: Words::Subcommand(Subcommands {
            plain: &["list", "search", "info", "show", "policy", "outdated", "deps", "desc", "doctor", "config", "help"],
            acts: &["install", "remove", "update", "upgrade", "add", "del", "delete", "autoremove", "tap", "reinstall", "uninstall", "cask", "link"],
            executes: &["run", "exec"],
            options: &["-o", "-c", "--option"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    Launcher {
        names: &["systemctl"],
        executes: &["-H", "-M", "--host", "--machine"],
        understood: Only(&["--user", "--system", "--no-pager", "--all", "-a", "-l", "--full", "-q", "--quiet", "--failed", "--version", "--help"]),
        words: Words::Subcommand(Subcommands {
            plain: &["status", "show", "cat", "list-units", "list-unit-files", "list-timers", "list-sockets", "is-active", "is-enabled", "is-failed"],
            acts: &["start", "stop", "restart", "reload", "enable", "disable", "edit", "link", "daemon-reload", "mask", "set-environment", "set-property"],
            options: &["-H", "-M", "--host", "--machine"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    // Unknown subcommands of `gh` are extensions and aliases.
    Launcher {
        names: &["gh"],
        understood: Only(&["--version", "--help"]),
        words: Words::Subcommand(Subcommands {
            plain: &["pr", "issue", "repo", "run", "release", "api", "search", "browse", "gist", "label", "workflow", "status", "project", "cache", "ruleset", "org", "auth status"],
            acts: &["alias", "extension", "ext", "auth", "config", "secret", "variable", "ssh-key", "gpg-key", "copilot"],
            executes: &["codespace", "cs"],
            forwards: &["repo", "gist"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    Launcher { names: &["hg"], executes: &["--config", "--encoding", "-R", "--repository"], words: Words::Subcommand(HG), ..BASE },
    Launcher { names: &["svn"], executes: &["--diff-cmd", "--diff3-cmd", "--editor-cmd", "--config-option", "--config-dir"], ..BASE },
    // Managers of versions and environments.
    Launcher {
        names: &["mise", "asdf", "rbenv", "pyenv", "nodenv", "volta", "rustup", "nvm", "fnm", "direnv", "nix", "pixi", "devbox", "hatch"],
        understood: Only(&["--version", "-V", "--help", "-h", "-q", "-v"]),
        words: Words::Subcommand(Subcommands {
            plain: &["list", "ls", "current", "which", "versions", "version", "show", "status", "help", "search", "info"],
            acts: &["install", "use", "global", "local", "default", "update", "uninstall", "trust", "allow", "build"],
            executes: &["exec", "x", "run", "shell", "develop", "r"],
            ..NO_SUBCOMMANDS
        }),
        ..BASE
    },
    // Programs whose arguments are a command.
    Launcher { names: &["nix-shell", "xvfb-run", "dbus-run-session", "valgrind", "perf", "hyperfine", "entr", "proot", "firejail", "bwrap", "pkexec", "newgrp", "sg", "numactl", "cpulimit", "eatmydata", "faketime", "torsocks", "torify", "proxychains", "proxychains4", "caffeinate", "dotenv", "cross-env", "concurrently", "chpst", "setuidgid", "softlimit", "daemonize", "watchexec", "reflex", "open", "xdg-open", "gnome-terminal", "xterm", "lxc", "machinectl", "sshpass", "mosh", "pdsh", "heroku", "flyctl"], ..OPAQUE },
    // Databases whose language starts a shell.
    Launcher { names: &["sqlite", "psql", "mysql", "mariadb"], ..OPAQUE },
];

/// Options of package managers for Node that name a program, a file of settings, or another project
/// with settings of its own.
const NODE_OPTIONS: &[&str] = &[
    "-C", "--script-shell", "--shell-emulator", "--node-options", "--shell", "--call", "--git",
    "--prefix", "--cwd", "--dir", "--userconfig", "--globalconfig", "--node-gyp", "--python",
    "--editor", "--viewer", "--browser", "--init-module", "--pnpmfile", "--global-pnpmfile",
    "--use-yarnrc",
];

/// Programs of which every word can run something, but not every option.
const OPAQUE_BUT_OPTIONS: Launcher = Launcher { words: Words::Command { after: 0, how: CommandPassing::Shell }, ..BASE };

const HG: Subcommands = Subcommands {
    plain: &["status", "st", "log", "diff", "branch", "branches", "cat", "files", "heads", "id", "annotate", "blame", "summary", "tip", "tags", "add", "commit", "ci", "update", "up", "version"],
    acts: &["clone", "pull", "push", "merge", "rebase", "resolve", "serve", "histedit"],
    options: &["--config", "--ssh", "-e", "--remotecmd", "--tool", "-t"],
    ..NO_SUBCOMMANDS
};

const GIT: Launcher = Launcher {
    names: &["git"],
    // The settings of another repository name programs that git runs.
    executes: &["-c", "-C", "--config-env", "--exec-path", "--git-dir", "--work-tree"],
    acts: &["-p", "--paginate", "--bare"],
    // An unknown option may take the next word as its value, which then is not a subcommand.
    understood: Only(&[
        "--no-pager", "-P", "--no-replace-objects", "--literal-pathspecs", "--no-optional-locks",
        "--glob-pathspecs", "--icase-pathspecs", "--version", "-v", "--help", "-h",
        "--namespace",
    ]),
    takes: &["--namespace"],
    words: Words::Subcommand(Subcommands {
        plain: &[
            "add", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle", "cat-file",
            "check-attr", "check-ignore", "checkout", "cherry", "cherry-pick", "clean", "clone", "commit",
            "count-objects", "describe", "diff", "diff-files", "diff-index", "diff-tree", "fetch",
            "for-each-ref", "format-patch", "fsck", "gc", "grep", "hash-object", "init", "log", "ls-files",
            "ls-remote", "ls-tree", "merge", "merge-base", "mv", "name-rev", "notes", "pull", "push",
            "range-diff", "rebase", "reflog", "remote", "reset", "restore", "rev-list", "rev-parse",
            "revert", "rm", "shortlog", "show", "show-branch", "show-ref", "sparse-checkout", "stash",
            "status", "submodule", "switch", "symbolic-ref", "tag", "update-index", "update-ref",
            "version", "whatchanged", "worktree",
            // Only reading the configuration is harmless, because git runs commands from it.
            "config --get", "config --get-all", "config --get-regexp", "config --list", "config -l",
            "config get", "config list",
        ],
        acts: &[
            "difftool", "mergetool", "filter-branch", "filter-repo", "help", "gui", "citool", "gitk",
            "instaweb", "send-email", "daemon", "credential", "bisect visualize", "bisect view", "am",
            "config", "maintenance",
        ],
        executes: &["submodule foreach", "bisect run"],
        options: &[
            "--upload-pack", "--receive-pack", "--exec", "--ext-diff", "--textconv",
            "--open-files-in-pager", "--extcmd", "--template", "--config-env", "--filters",
            "--edit-description", "--strategy", "--output", "--paginate", "--separate-git-dir",
        ],
        own: &[
            ("archive", &["-o", "--remote"]),
            ("clone", &["-u", "-c", "--config"]),
            ("format-patch", &["-o", "--output-directory"]),
            ("grep", &["-O"]),
            ("merge", &["-s"]),
            ("pull", &["-s"]),
            ("rebase", &["-x", "-i", "-s", "--interactive"]),
        ],
        addressed: &["archive", "clone", "fetch", "ls-remote", "pull", "push", "remote", "submodule"],
        forwards: &[],
    }),
    // `ext::sh …` is an address that runs a program.
    risky_parts: &["::"],
    ..BASE
};
