//! How agents show a skill in the list for their model.

use savoir_agent::preamble::hosts::{HOSTS, HostRules, SkillFiles};
use savoir_lsp::{ListedSkill, Listing};
use savoir_package::Agent;

/// Maximum size of a side file that an agent reads for its list.
const MAX_SIDE_FILE_BYTES: u64 = 64 * 1024;

pub(super) fn of(skill: &ListedSkill<'_>) -> Vec<Listing> {
    let folder = skill.folder.file_name().unwrap_or_default().to_string_lossy();
    let path = skill.path.to_string_lossy();
    let listing = |rules: &HostRules| {
        let side = rules.side_file().and_then(|name| {
            let path = skill.folder.join(name);
            let metadata = std::fs::symlink_metadata(&path).ok()?;
            (metadata.is_file() && metadata.len() <= MAX_SIDE_FILE_BYTES)
                .then(|| std::fs::read_to_string(path).ok())
                .flatten()
        });
        let files = SkillFiles {
            folder: &folder,
            path: &path,
            text: skill.text,
            side: side.as_deref(),
            ..SkillFiles::default()
        };
        let read = rules.read(&files);
        let title = Agent::by_id(rules.agent).map_or(rules.agent, |agent| agent.title);
        Listing {
            agent: title.to_owned(),
            description: read.description,
            is_cut: read.cut,
            hidden: read.hidden,
        }
    };
    HOSTS.iter().map(listing).collect()
}
