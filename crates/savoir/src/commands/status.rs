//! `savoir status`: shows skills that are modified, missing, outdated or installed twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
    process::ExitCode,
};

use anstyle::Style;
use savoir_package::{
    Agent,
    ledger::{ClashOutcome, LedgerEntry, NameClash},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    copies::group_copies,
    error::CommandError,
    installed::{
        ExaminedSkill, Installed, InstalledSkillJson, Selection, in_parallel, limit_names, state,
    },
    output,
};

/// Skills that are named in a line about several.
const MAX_LISTED_SKILLS: usize = 5;

/// Show skills that are modified, missing, outdated or installed twice
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir status
  savoir status pdf
  savoir status --check                  for scripts: exit code 1 if something differs
  savoir status --json

Skills are compared with the hash that was recorded at installation, by any tool. The exit code is
0; with --check it is 1 if a skill is modified, missing or broken, or a lockfile is broken.")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Exit with code 1 if something is modified, missing or broken
    #[arg(long)]
    check: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let installed = Installed::open(args.selection.project.as_deref())?;
    installed.warn();
    let status = Status::of(&args.selection, &installed)?;
    if args.json {
        output::json(&status.json())?;
    } else {
        output::text(&status.page())?;
    }
    Ok(ExitCode::from(u8::from(args.check && !status.is_clean())))
}

struct Status<'a> {
    installed: &'a Installed,
    examined: Vec<ExaminedSkill<'a>>,
    clashes: Vec<Clashing<'a>>,
    missing: Vec<Missing<'a>>,
}

/// Skills with the same name.
struct Clashing<'a> {
    clash: NameClash<'a>,
    /// Whether their files are the same; `None` if they cannot be read.
    identical: Option<bool>,
}

/// A skill that is listed in a lockfile of Savoir or another tool and does not exist.
#[derive(Serialize)]
struct Missing<'a> {
    name: &'a str,
    ledger: &'a Path,
    /// The folder, if known.
    path: Option<&'a Path>,
    /// The agent to which the folder belongs.
    agent: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Summary {
    skills: usize,
    unmodified: usize,
    modified: usize,
    unknown: usize,
    broken: usize,
    missing: usize,
    clashes: usize,
}

impl<'a> Status<'a> {
    fn of(selection: &Selection, installed: &'a Installed) -> Result<Self, CommandError> {
        let entries = selection.entries(installed)?;
        let mut examined = installed.examine(&entries);
        examined.retain(|examined| selection.takes_origin(examined));
        let missing =
            if selection.is_everything() { missing(selection, installed) } else { Vec::new() };
        let clashes = clashes(&examined, installed);
        Ok(Self { installed, examined, clashes, missing })
    }

    /// Whether no difference from the installed files is known.
    fn is_clean(&self) -> bool {
        let is_changed =
            |examined: &ExaminedSkill<'_>| matches!(state(examined).0, "modified" | "broken");
        !self.examined.iter().any(is_changed)
            && self.missing.is_empty()
            && self.installed.warnings().next().is_none()
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary {
            missing: self.missing_skills().len(),
            clashes: self.clashes.len(),
            ..Summary::default()
        };
        for copies in self.skills() {
            let states: Vec<&str> = copies.iter().map(|examined| state(examined).0).collect();
            // A skill has the worst state of its copies.
            let worst = ["broken", "modified", "unknown"].into_iter();
            let worst = worst.into_iter().find(|state| states.contains(state));
            let count = match worst {
                Some("broken") => &mut summary.broken,
                Some("modified") => &mut summary.modified,
                Some(_) => &mut summary.unknown,
                None => &mut summary.unmodified,
            };
            *count += 1;
            summary.skills += 1;
        }
        summary
    }

    /// The folders of each skill: copies for several agents are one skill.
    fn skills(&self) -> Vec<Vec<&ExaminedSkill<'a>>> {
        let mut by_name: BTreeMap<&str, Vec<&ExaminedSkill<'a>>> = BTreeMap::new();
        for examined in &self.examined {
            by_name.entry(examined.entry.name()).or_default().push(examined);
        }
        let identity = |examined: &&ExaminedSkill<'a>| self.installed.identity(examined.entry);
        let skills = by_name.into_values().map(|of_name| match of_name.len() {
            1 => vec![of_name],
            _ => group_copies(of_name, identity),
        });
        skills.flatten().collect()
    }

    fn json(&self) -> Value {
        let skills = self
            .examined
            .iter()
            .map(|examined| InstalledSkillJson::examined(examined, self.installed));
        json!({
            "summary": self.summary(),
            "skills": skills.collect::<Vec<_>>(),
            "clashes": self.clashes.iter().map(Clashing::json).collect::<Vec<_>>(),
            "missing": self.missing,
            "warnings": self.installed.warnings().collect::<Vec<_>>(),
        })
    }

    fn page(&self) -> String {
        let mut page = String::new();
        section(&mut page, "modified since installation", self.modified());
        section(&mut page, "updates at the last `savoir outdated`", self.newer());
        section(&mut page, "yanked, deprecated or taken down", self.advised());
        section(&mut page, "missing", self.missing_lines());
        section(&mut page, "broken", self.broken());
        section(&mut page, "converted for agents that cannot read the original", self.converted());
        let seen = self.clashes.iter().filter(|clash| {
            !self.used(clash).is_empty() && !self.is_installed_twice_on_purpose(clash)
        });
        section(&mut page, "duplicates", seen.map(|clash| self.clash(clash)));
        section(&mut page, "unknown whether modified", self.unknown());
        if !page.is_empty() {
            page.push('\n');
        }
        page + &self.summary().line()
    }

    fn modified(&self) -> impl Iterator<Item = String> {
        let modified = self.examined.iter().filter(|examined| state(examined).0 == "modified");
        modified.map(|examined| {
            let origin = examined.origin().map_or("plain", |origin| origin.word());
            format!(
                "{} ({origin})  {}",
                output::cell(examined.entry.name()),
                self.path(examined.entry)
            )
        })
    }

    fn newer(&self) -> impl Iterator<Item = String> {
        let newer = self.examined.iter().filter_map(|examined| {
            let newer = output::cell(examined.newer.as_deref()?).into_owned();
            Some(format!("{} ({newer})", output::cell(examined.entry.name())))
        });
        without_copies(newer)
    }

    fn advised(&self) -> impl Iterator<Item = String> {
        let advised = self.examined.iter().filter_map(|examined| {
            let advice = output::cell(examined.advice.as_deref()?).into_owned();
            let day = examined.advised_on.as_ref().map(|day| format!(" (on {day})"));
            let (name, day) = (output::cell(examined.entry.name()), day.unwrap_or_default());
            Some(format!("{name} ({advice}){day}"))
        });
        without_copies(advised)
    }

    fn broken(&self) -> impl Iterator<Item = String> {
        self.examined.iter().filter_map(|examined| {
            let error = examined.details.as_ref().err()?;
            Some(output::cell(&error.to_string()).into_owned())
        })
    }

    fn converted(&self) -> impl Iterator<Item = String> {
        let names: BTreeSet<&str> =
            self.examined.iter().map(|examined| examined.entry.name()).collect();
        let locked = self.installed.locked.iter();
        let converted = locked.filter(move |locked| names.contains(locked.name.as_str()));
        let converted = converted.filter(|locked| !locked.skill.converted.is_empty());
        converted.map(|locked| {
            let agents = locked.skill.converted.join(", ");
            format!("{} for {}", output::cell(&locked.name), output::cell(&agents))
        })
    }

    /// A line for each missing skill, and how to install them.
    fn missing_lines(&self) -> impl Iterator<Item = String> {
        let lines = self.missing_skills().into_iter().map(|((ledger, name), folders)| {
            let (name, ledger) = (output::cell(name), self.installed.shown(ledger));
            let folders: Vec<String> = folders
                .into_iter()
                .map(|folder| self.installed.shown(folder).into_owned())
                .collect();
            if folders.is_empty() {
                format!("{name}  listed in {ledger}")
            } else {
                format!("{name}  {}, listed in {ledger}", folders.join(", "))
            }
        });
        lines.chain(self.installed.sync_hints())
    }

    /// The missing folders of each skill in each lockfile: agents may share a folder.
    fn missing_skills(&self) -> BTreeMap<(&'a Path, &'a str), BTreeSet<&'a Path>> {
        let mut skills: BTreeMap<_, BTreeSet<&Path>> = BTreeMap::new();
        for missing in &self.missing {
            skills.entry((missing.ledger, missing.name)).or_default().extend(missing.path);
        }
        skills
    }

    /// Whether one skill was installed for several agents, of which one reads the folders of both
    /// and shows the skill once.
    fn is_installed_twice_on_purpose(&self, clashing: &Clashing<'_>) -> bool {
        let locked = |entry: &&LedgerEntry| self.installed.identity(entry).locked;
        let mut entries = clashing.clash.entries.iter();
        clashing.clash.outcome == ClashOutcome::FirstWins
            && clashing.identical == Some(true)
            && entries
                .next()
                .and_then(locked)
                .is_some_and(|first| entries.all(|entry| locked(entry).as_ref() == Some(&first)))
    }

    /// The agents in use that see the clash.
    fn used(&self, clashing: &Clashing<'_>) -> Vec<&'static Agent> {
        let agents = clashing.clash.agents.iter().copied();
        agents.filter(|agent| self.installed.in_use.contains(agent)).collect()
    }

    fn clash(&self, clashing: &Clashing<'_>) -> String {
        let clash = &clashing.clash;
        let agents = limit_names(self.used(clashing).iter().map(|agent| agent.id));
        let same = match clashing.identical {
            Some(true) => "the same files",
            Some(false) => "different files",
            None => "some cannot be read",
        };
        let paths: Vec<String> = clash.entries.iter().map(|entry| self.path(entry)).collect();
        let name = output::cell(clash.name);
        match (clash.outcome, paths.as_slice()) {
            (ClashOutcome::FirstWins, [first, others @ ..]) => {
                format!("{name}  {first} hides {} in {agents}; {same}", others.join(", "))
            }
            _ => format!("{name}  {} are all shown in {agents}; {same}", paths.join(", ")),
        }
    }

    /// One line for each reason.
    fn unknown(&self) -> impl Iterator<Item = String> {
        let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for examined in &self.examined {
            if let ("unknown", Some(why)) = state(examined) {
                let names = reasons.entry(why).or_default();
                // Skills of one name are adjacent.
                if names.last() != Some(&examined.entry.name()) {
                    names.push(examined.entry.name());
                }
            }
        }
        reasons.into_iter().map(|(why, names)| {
            let mut shown = names[..names.len().min(MAX_LISTED_SKILLS)].join(", ");
            if names.len() > MAX_LISTED_SKILLS {
                let _ = write!(shown, " and {} more", names.len() - MAX_LISTED_SKILLS);
            }
            format!("{}: {}", output::cell(&shown), output::cell(&why))
        })
    }

    fn path(&self, entry: &LedgerEntry) -> String {
        output::cell(&self.installed.shown(entry.path())).into_owned()
    }
}

/// Each line once: a skill has a copy for each agent. Skills of one name are adjacent.
fn without_copies(lines: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut lines: Vec<String> = lines.collect();
    lines.dedup();
    lines.into_iter()
}

/// Appends a heading and its lines, if there are any.
fn section(page: &mut String, heading: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return;
    }
    let bold = Style::new().bold();
    let gap = if page.is_empty() { "" } else { "\n" };
    // Writing to a string cannot fail.
    let _ = writeln!(page, "{gap}{bold}{heading}{bold:#}");
    for line in lines {
        let _ = writeln!(page, "  {line}");
    }
}

impl Summary {
    /// `3 skills: 1 unmodified, 2 unknown; 1 missing`
    fn line(&self) -> String {
        let count = |(count, word): (usize, &str)| (count > 0).then(|| format!("{count} {word}"));
        let states = [
            (self.unmodified, "unmodified"),
            (self.modified, "modified"),
            (self.unknown, "unknown"),
            (self.broken, "broken"),
        ];
        let states: Vec<String> = states.into_iter().filter_map(count).collect();
        let missing = count((self.missing, "missing"));
        let skills = Some(output::plural(self.skills, "skill"));
        let skills = if states.is_empty() { skills } else { skills.map(|s| s + ": ") };
        let missing = missing.map(|missing| format!("; {missing}"));
        format!(
            "{}{}{}\n",
            skills.unwrap_or_default(),
            states.join(", "),
            missing.unwrap_or_default()
        )
    }
}

impl Clashing<'_> {
    fn json(&self) -> Value {
        let mut clash = clash_json(&self.clash);
        clash["identical"] = json!(self.identical);
        clash
    }
}

pub(super) fn clash_json(clash: &NameClash<'_>) -> Value {
    let NameClash { name, agents, entries, outcome } = clash;
    let paths = entries.iter().map(|entry| entry.path().to_string_lossy());
    json!({
        "name": name,
        "paths": paths.collect::<Vec<_>>(),
        "agents": agents.iter().map(|agent| agent.id).collect::<Vec<_>>(),
        "outcome": match outcome {
            ClashOutcome::FirstWins => "first-wins",
            ClashOutcome::AllShown => "all-shown",
        },
    })
}

/// The clashes that involve one of these skills.
fn clashes<'a>(examined: &[ExaminedSkill<'a>], installed: &'a Installed) -> Vec<Clashing<'a>> {
    let names: std::collections::HashSet<&str> =
        examined.iter().map(|examined| examined.entry.name()).collect();
    let mut clashes = installed.ledger.clashes();
    clashes.retain(|clash| names.contains(clash.name));
    let all: Vec<&NameClash<'_>> = clashes.iter().collect();
    let identical = in_parallel(&all, |clash| clash.is_identical().ok());
    let pairs = clashes.into_iter().zip(identical);
    pairs.map(|(clash, identical)| Clashing { clash, identical }).collect()
}

/// Skills that are listed in lockfiles of Savoir and other tools, and do not exist.
fn missing<'a>(selection: &Selection, installed: &'a Installed) -> Vec<Missing<'a>> {
    let own = installed.locked.iter().flat_map(|locked| {
        let absent = locked.written.iter().filter(|written| !written.folder.is_dir());
        absent.map(|written| Missing {
            name: &locked.name,
            ledger: &locked.file,
            path: Some(&written.folder),
            agent: Some(written.agent.id),
        })
    });
    let of_others = installed.ledger.missing().into_iter().map(|(ledger, name)| Missing {
        name,
        ledger,
        path: None,
        agent: None,
    });
    own.chain(of_others).filter(|missing| selection.names(missing.name)).collect()
}
