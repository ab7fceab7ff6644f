//! Finds the smallest set of permissions that a tool needs, from a run in which everything is
//! allowed and observed (`savoir run --record`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use savoir_sandbox::{
    Access, HostGrant, HostPattern, MethodGroup, Network, Outcome, PathGrant, Policy, ProgramFiles,
    Secret, Variable, Verdict,
};
use savoir_skill::{
    Skill,
    permission::{Domain, Level, Permission, any_network},
};

use crate::{
    approval::{ExtraGrants, Request, shell_word},
    grant::{self, Refusal},
    home::Home,
    loaded_skill::LoadedSkill,
    run::{RunPlan, start_directory},
    run_environment::RunEnvironment,
};

/// Folders in the root that are irrelevant for a skill, or never visible.
const HIDDEN_ROOT_FOLDERS: [&str; 5] = ["dev", "proc", "sys", "tmp", "lost+found"];

/// Paths that programs access whether they need them or not.
const SYSTEM_FOLDERS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/dev", "/sys", "/tmp"];
const SYSTEM_FILES: [&str; 13] = [
    "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf",
    "/etc/resolv.conf", "/etc/gai.conf", "/etc/services", "/etc/localtime", "/etc/ld.so.cache",
    "/etc/ld.so.preload", "/etc/mime.types", "/etc/ssl",
];

/// Maximum number of files of one folder that get a permission each; with more, the folder gets
/// one.
const MAX_FILES_LISTED_PER_FOLDER: usize = 2;

/// Changes a plan so that the tool can do nearly everything. The approval question lists these
/// permissions, and the approval is never stored. Paths that no skill may write stay protected.
pub fn widen_policy(
    plan: &mut RunPlan,
    loaded_skill: &LoadedSkill,
    run_env: &RunEnvironment,
    extra: &ExtraGrants,
) -> Result<(), Refusal> {
    let writable: BTreeSet<PathBuf> = project_folders(run_env)
        .filter(|path| path.parent().is_some() && !run_env.home.starts_with(path))
        .filter(|path| !grant::is_protected(path, run_env))
        .cloned()
        .collect();
    open_paths(&mut plan.policy, loaded_skill, run_env, extra, &writable)?;
    open_network(&mut plan.policy);
    mask_secrets(&mut plan.policy, loaded_skill, run_env);
    plan.directory = start_directory(loaded_skill, run_env);
    plan.policy.directory.clone_from(&plan.directory);
    request_everything(&mut plan.request, &writable);
    Ok(())
}

/// The working directory and its repository.
fn project_folders(run_env: &RunEnvironment) -> impl Iterator<Item = &PathBuf> {
    [Some(&run_env.directory), run_env.repository.as_ref()].into_iter().flatten()
}

/// Makes everything readable and executable, and these folders writable.
fn open_paths(
    policy: &mut Policy,
    loaded_skill: &LoadedSkill,
    run_env: &RunEnvironment,
    extra: &ExtraGrants,
    writable: &BTreeSet<PathBuf>,
) -> Result<(), Refusal> {
    let roots: Vec<PathBuf> = writable.iter().cloned().collect();
    // Paths that the user granted by name stay writable, such as the repository.
    let opened: Vec<PathBuf> = extra.write.iter().map(PathBuf::from).collect();
    let protected = grant::protect(run_env, loaded_skill.folder.as_deref(), &roots, &opened)?;
    let is_retained = |grant: &PathGrant| match grant.access {
        Access::Hidden | Access::Protected | Access::CreateGranted => false,
        Access::Scratch => grant.path != run_env.home,
        // A missing path can be created in the folder around it.
        Access::Write => grant.path.exists(),
        Access::Read | Access::Execute => true,
    };
    policy.paths.retain(is_retained);
    let visible = visible_root_folders().into_iter();
    policy.paths.extend(visible.map(|path| PathGrant { path, access: Access::Execute }));
    policy.paths.extend(writable.iter().map(PathGrant::write));
    policy.paths.extend(protected);
    let protected =
        grant::protect_names_in_writable_folders(run_env, &roots, &opened, &policy.paths);
    policy.paths.extend(protected);
    policy.paths.extend(grant::stored_secrets(run_env).map(PathGrant::hidden));
    Ok(())
}

/// Allows all hosts, besides those that the policy lists.
fn open_network(policy: &mut Policy) {
    let Ok(host) = "*".parse::<HostPattern>() else { return };
    let all_hosts = [MethodGroup::Read, MethodGroup::Write].map(|methods| HostGrant {
        host: host.clone(),
        scheme: None,
        port: None,
        path: String::new(),
        methods,
        allow_private_addresses: false,
    });
    let listed_hosts = match std::mem::take(&mut policy.network) {
        Network::None | Network::Trap => Vec::new(),
        Network::Hosts(hosts) => hosts,
    };
    policy.network = Network::Hosts(all_hosts.into_iter().chain(listed_hosts).collect());
}

/// Lists these permissions in the approval question.
fn request_everything(request: &mut Request, writable: &BTreeSet<PathBuf>) {
    request.always_ask = true;
    request.permissions = any_network().to_vec();
    request.permissions.push(Permission::unscoped(Domain::Filesystem, Level::Read));
    request.permissions.push(Permission::unscoped(Domain::Shell, Level::Execute));
    request.permissions.extend(writable.iter().map(|path| Permission {
        domain: Domain::Filesystem,
        level: Level::Write,
        scope: Some(format!("{}/**", path.display())),
    }));
}

/// Replaces secrets by placeholders, because the widened tool has a network.
fn mask_secrets(policy: &mut Policy, loaded_skill: &LoadedSkill, run_env: &RunEnvironment) {
    for (name, variable) in &mut policy.environment {
        let is_secret =
            grant::is_secret(name) || run_env.secret(name, loaded_skill.path()).is_some();
        if let (true, Variable::Plain(value)) = (is_secret, &*variable) {
            *variable = Variable::Masked(Secret::new(value));
        }
    }
}

fn visible_root_folders() -> Vec<PathBuf> {
    let entries = fs::read_dir("/").into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let shown =
        real.filter(|entry| !HIDDEN_ROOT_FOLDERS.iter().any(|name| entry.file_name() == *name));
    shown.map(|entry| entry.path()).collect()
}

/// The smallest set of permissions that would have sufficed, as a skill declares them.
pub fn smallest_permissions(
    outcome: &Outcome,
    plan: &ObservedPlan,
    loaded_skill: &LoadedSkill,
    run_env: &RunEnvironment,
) -> Vec<Permission> {
    let mut permissions = Vec::new();
    let written = written_scopes(outcome, plan, run_env);
    permissions.extend(written.iter().map(|scope| file_permission(Level::Write, scope)));
    let program_files = ProgramFiles::of(&plan.programs).unwrap_or_default();
    let needed = needed_files(outcome, plan, &program_files, run_env);
    for scope in group_into_folders(&needed, run_env) {
        let permission = file_permission(Level::Read, &scope);
        if !permissions.iter().any(|known| known.covers(&permission)) {
            permissions.push(permission);
        }
    }
    permissions.extend(contacted_hosts(outcome));
    let programs = started_programs(outcome, plan, &program_files);
    if !programs.is_empty() && may_start_only_listed_programs(&loaded_skill.skill) {
        let scope = Some(programs.into_iter().collect::<Vec<_>>().join(","));
        permissions.push(Permission { domain: Domain::Shell, level: Level::Execute, scope });
    }
    // Reading variables cannot be observed, so the declared permissions for them are included.
    let declared = loaded_skill.skill.permissions.iter();
    permissions.extend(declared.filter(|one| one.domain == Domain::Env).cloned());
    permissions.sort();
    permissions.dedup();
    permissions
}

/// Whether the skill may start only the programs that it lists.
fn may_start_only_listed_programs(skill: &Skill) -> bool {
    let is_list = |one: &Permission| one.domain == Domain::Shell && one.scope.is_some();
    !skill.dialect.running().runs_programs || skill.permissions.iter().any(is_list)
}

/// The permissions that a skill does not have here.
pub fn missing_permissions(
    skill: &Skill,
    permissions: &[Permission],
    run_env: &RunEnvironment,
) -> Vec<Permission> {
    // The same folder may be relative in one of them.
    let absolute = |permission: &Permission| {
        let is_path = matches!(permission.domain, Domain::Filesystem | Domain::Database);
        let scope = permission.scope.as_ref().map(|scope| {
            if is_path {
                grant::absolute_path(scope, run_env).to_string_lossy().into_owned()
            } else {
                scope.clone()
            }
        });
        Permission { scope, ..permission.clone() }
    };
    let granted = grant::effective_permissions(skill, run_env);
    let granted: Vec<Permission> = granted.iter().map(absolute).collect();
    // Write access to a folder does not include the `.git` folder in it.
    let names_git = |one: &Permission| {
        one.scope.as_ref().is_some_and(|scope| scope.split('/').any(|part| part == ".git"))
    };
    let is_granted = |one: &&Permission| {
        let wanted = absolute(one);
        granted.iter().any(|other| other.covers(&wanted) && (!names_git(one) || names_git(other)))
    };
    permissions.iter().filter(|one| !is_granted(one)).cloned().collect()
}

/// The command-line options that grant permissions to a skill, each after a space.
pub fn allow_options(permissions: &[Permission]) -> String {
    let mut words: Vec<String> = Vec::new();
    for Permission { domain, level, scope } in permissions {
        let option = match (domain, level) {
            (Domain::Filesystem | Domain::Database, Level::Read) => "--allow-read",
            (Domain::Filesystem | Domain::Database, Level::Write) => "--allow-write",
            (Domain::Network, Level::Read | Level::Write) => "--allow-host",
            (Domain::Shell, Level::Execute) => "--allow-program",
            (Domain::Env, Level::Read) => "--allow-env",
            _ => continue,
        };
        let scope = scope.as_deref().unwrap_or_default();
        let scope = scope.strip_suffix("/**").unwrap_or(scope);
        let values = scope.split(',').filter(|_| option == "--allow-program");
        let values = values.chain(Some(scope).filter(|_| option != "--allow-program"));
        for value in values.filter(|value| !value.is_empty()) {
            let word = format!(" {option} {}", shell_word(value));
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    words.concat()
}

/// The data of a plan that is needed after the run, which consumes the plan.
#[derive(Clone, Debug)]
pub struct ObservedPlan {
    programs: Vec<PathBuf>,
    implicit_permissions: Vec<Permission>,
    own_folders: Vec<PathBuf>,
}

impl ObservedPlan {
    /// Copies the data before the plan runs.
    pub fn new(plan: &RunPlan, loaded_skill: &LoadedSkill, home: &Home) -> Self {
        let programs = plan.action.programs().iter().map(|program| program.path.clone()).collect();
        let cache = home.cache();
        let cache = cache.canonicalize().unwrap_or_else(|_| cache.to_owned());
        let own_folders = loaded_skill.folder.iter().cloned().chain([cache]).collect();
        // Write access that the dialect grants without declaration is not assumed, because a skill
        // loses it if it declares that it only reads.
        let implicit_permissions =
            plan.request.implicit_permissions.iter().filter(|one| one.level != Level::Write);
        Self {
            programs,
            implicit_permissions: implicit_permissions.cloned().collect(),
            own_folders,
        }
    }
}

fn file_permission(level: Level, scope: &str) -> Permission {
    Permission { domain: Domain::Filesystem, level, scope: Some(scope.to_owned()) }
}

/// The files that were read, without those that every run may read.
fn needed_files(
    outcome: &Outcome,
    plan: &ObservedPlan,
    program_files: &ProgramFiles,
    run_env: &RunEnvironment,
) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = program_files.folders().map(|(path, _)| path.to_owned()).collect();
    let files: BTreeSet<PathBuf> = program_files.files().map(|(path, _)| path.to_owned()).collect();
    let links: BTreeSet<PathBuf> = program_files.links().map(|(path, _)| path.to_owned()).collect();
    let is_always_readable = |path: &Path| {
        // If the user works in a temporary folder, the files in it count.
        (is_system_path(path) && !path.starts_with(&run_env.directory))
            || folders.iter().chain(&plan.own_folders).any(|folder| path.starts_with(folder))
            || files.contains(path)
            || links.contains(path)
            || is_covered(&plan.implicit_permissions, path)
    };
    let read = outcome.files.read.iter().filter(|path| path.is_file() && !is_always_readable(path));
    read.cloned().collect()
}

/// Whether programs access a path whether they need it or not.
pub fn is_system_path(path: &Path) -> bool {
    SYSTEM_FOLDERS.iter().chain(&SYSTEM_FILES).any(|system| path.starts_with(system))
}

fn is_covered(permissions: &[Permission], path: &Path) -> bool {
    let wanted = file_permission(Level::Read, &path.to_string_lossy());
    permissions.iter().any(|permission| permission.covers(&wanted))
}

/// The files and folders that were written, without those that are granted without declaration.
fn written_scopes(
    outcome: &Outcome,
    plan: &ObservedPlan,
    run_env: &RunEnvironment,
) -> BTreeSet<String> {
    let undeclared_writes = outcome.files.written.iter().filter(|path| {
        let wanted = file_permission(Level::Write, &path.to_string_lossy());
        !plan.implicit_permissions.iter().any(|permission| permission.covers(&wanted))
    });
    let mut folders: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for path in undeclared_writes {
        // In a repository, git writes many files of its own folder.
        let git = path.ancestors().find(|above| above.ends_with(".git"));
        let folder = git.or(if path.is_dir() { Some(&**path) } else { path.parent() });
        folders.entry(folder.unwrap_or(path)).or_default().push(path);
    }
    let scopes = folders.iter().flat_map(|(folder, files)| {
        if can_grant_individually(folder, files, outcome, run_env) {
            files.iter().map(|path| scope_of(path, run_env)).collect()
        } else {
            vec![format!("{}/**", scope_of(folder, run_env))]
        }
    });
    scopes.collect()
}

/// Whether granting these files one by one is enough: there are few of them, in an existing folder
/// of the user's project, and the program opened them without replacing them. Elsewhere, only
/// existing files can be granted by name, and it is not known whether these files existed before
/// the run.
fn can_grant_individually(
    folder: &Path,
    files: &[&Path],
    outcome: &Outcome,
    run_env: &RunEnvironment,
) -> bool {
    let is_opened = |path: &&Path| path.is_file() && !outcome.files.replaced.contains(*path);
    files.len() <= MAX_FILES_LISTED_PER_FOLDER
        && !folder.ends_with(".git")
        && files.iter().all(is_opened)
        && !outcome.files.written.contains(folder)
        && project_folders(run_env).any(|project| folder.starts_with(project))
}

/// Paths as scopes of permissions; several files of a folder become the folder.
fn group_into_folders(files: &[PathBuf], run_env: &RunEnvironment) -> Vec<String> {
    let mut by_folder: BTreeMap<&Path, Vec<&PathBuf>> = BTreeMap::new();
    for path in files {
        by_folder.entry(path.parent().unwrap_or(Path::new("/"))).or_default().push(path);
    }
    let scopes = by_folder.into_iter().flat_map(|(folder, files)| {
        if files.len() > MAX_FILES_LISTED_PER_FOLDER {
            vec![format!("{}/**", scope_of(folder, run_env))]
        } else {
            files.into_iter().map(|path| scope_of(path, run_env)).collect()
        }
    });
    scopes.collect()
}

/// A path as a skill declares it: relative to the working directory, to the home, or absolute.
fn scope_of(path: &Path, run_env: &RunEnvironment) -> String {
    if let Ok(rest) = path.strip_prefix(&run_env.directory) {
        return match rest.to_string_lossy() {
            rest if rest.is_empty() => ".".to_owned(),
            rest => format!("./{rest}"),
        };
    }
    match path.strip_prefix(&run_env.home) {
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

fn contacted_hosts(outcome: &Outcome) -> Vec<Permission> {
    let allowed = outcome.hosts.iter().filter(|event| event.verdict == Verdict::Allowed);
    allowed
        .map(|event| {
            let reads = matches!(event.method.as_str(), "GET" | "HEAD" | "OPTIONS");
            let level = if reads { Level::Read } else { Level::Write };
            let scope = match event.port {
                80 | 443 => event.host.clone(),
                port => format!("http://{}:{port}", event.host),
            };
            Permission { domain: Domain::Network, level, scope: Some(scope) }
        })
        .collect()
}

/// Names of programs that were started besides the tool's own program and its interpreter.
fn started_programs(
    outcome: &Outcome,
    plan: &ObservedPlan,
    program_files: &ProgramFiles,
) -> BTreeSet<String> {
    let own_files: BTreeSet<PathBuf> =
        program_files.files().map(|(path, _)| path.to_owned()).collect();
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let started = outcome.files.executed.iter().filter(|path| path.is_file());
    started
        .filter(|path| !own_files.contains(&real(path)) && !plan.programs.contains(path))
        .filter(|path| !plan.own_folders.iter().any(|folder| path.starts_with(folder)))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .filter(|name| grant::resolve(name, None).is_ok())
        .collect()
}
