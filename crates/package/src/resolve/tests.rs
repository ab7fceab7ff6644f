//! Tests of the resolver with small indexes.

use super::*;

mod brute;

/// An index in memory. A line is `name version [flags] [: needs, …]`, where flags are `yanked`,
/// `experimental` and `unreadable`, and needs are separated by semicolons.
#[derive(Debug, Default)]
struct Lines(BTreeMap<String, Vec<(Candidate, VersionDependencies)>>);

impl Lines {
    fn new(lines: &[&str]) -> Self {
        let mut index = Self::default();
        for line in lines {
            let (head, needs) = line.split_once(" : ").unwrap_or((line, ""));
            let mut words = head.split_whitespace();
            let name = words.next().unwrap().to_owned();
            let version = words.next().unwrap().parse().unwrap();
            let flags: Vec<&str> = words.collect();
            let has = |flag: &str| flags.contains(&flag);
            let tier = if has("experimental") { Tier::Experimental } else { Tier::Community };
            let needs = needs.split(';').map(str::trim).filter(|need| !need.is_empty());
            let needs = if has("unreadable") {
                VersionDependencies::Unreadable("its needs cannot be read".to_owned())
            } else {
                VersionDependencies::Skills(
                    needs.map(|need| SkillRef::parse(need).unwrap()).collect(),
                )
            };
            let candidate = Candidate { version, yanked: has("yanked"), tier };
            index.0.entry(name).or_default().push((candidate, needs));
        }
        index
    }
}

impl Index for Lines {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        if name == "unreachable" {
            return Err("the registry does not answer".into());
        }
        let known = self.0.get(name).map(Vec::as_slice).unwrap_or_default();
        Ok(known.iter().map(|(candidate, _)| candidate.clone()).collect())
    }

    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError> {
        let known = self.0.get(name).ok_or("no such skill")?;
        let found = known.iter().find(|(candidate, _)| candidate.version == *version);
        Ok(found.ok_or("no such version")?.1.clone())
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

fn wanted(refs: &[&str]) -> Request {
    let root = |text: &&str| Root::required(SkillRef::parse(text).unwrap(), RootRequest::Manifest);
    Request { roots: refs.iter().map(root).collect(), ..Request::default() }
}

fn locked(mut request: Request, versions: &[(&str, &str)]) -> Request {
    let versions = versions.iter();
    request.locked =
        versions.map(|(name, text)| ((*name).to_owned(), text.parse().unwrap())).collect();
    request
}

fn shown(resolution: &Resolution) -> String {
    let line = |(name, chosen): (&String, &Chosen)| format!("{name} {}", chosen.version);
    resolution.chosen.iter().map(line).collect::<Vec<_>>().join(", ")
}

fn chosen(lines: &[&str], request: &Request) -> String {
    shown(&resolve(&Lines::new(lines), request).unwrap())
}

fn refused(lines: &[&str], request: &Request) -> (String, String, Vec<String>) {
    let error = resolve(&Lines::new(lines), request).unwrap_err();
    (error.code().to_owned(), error.to_string(), error.hints().to_vec())
}

#[test]
fn highest_compatible_versions_are_chosen() {
    let lines = ["a 1.0.0 : b@^1", "a 1.1.0 : b@^1", "a 2.0.0", "b 1.0.0", "b 1.10.0", "b 1.9.0"];
    assert_eq!(chosen(&lines, &wanted(&["a@^1"])), "a 1.1.0, b 1.10.0");
    assert_eq!(chosen(&lines, &wanted(&["a"])), "a 2.0.0");
    assert_eq!(chosen(&lines, &wanted(&[])), "");
}

#[test]
fn older_dependent_is_tried_on_conflict() {
    let lines = ["a 1.0.0 : c@^1", "a 1.1.0 : c@^2", "a 1.2.0 : c@^3", "c 1.5.0", "c 2.0.0"];
    assert_eq!(chosen(&lines, &wanted(&["a", "c@^1"])), "a 1.0.0, c 1.5.0");
    assert_eq!(chosen(&lines, &wanted(&["a"])), "a 1.1.0, c 2.0.0");
}

#[test]
fn requesters_and_install_order() {
    let lines = ["a 1.0.0 : c@^1; b", "b 1.0.0 : c@>=1", "c 1.2.0", "z 1.0.0 : a"];
    let resolution = resolve(&Lines::new(&lines), &wanted(&["z", "c@1"])).unwrap();
    assert_eq!(resolution.order, ["c", "b", "a", "z"]);
    let demands = &resolution.chosen["c"].requested_by;
    let demands: Vec<String> =
        demands.iter().map(|d| format!("{} {}", d.requester, d.range)).collect();
    assert_eq!(demands, ["`savoir.toml` 1", "`a` 1.0.0 ^1", "`b` 1.0.0 >=1"]);
    let needs: Vec<String> = resolution.chosen["a"].needs.iter().map(ToString::to_string).collect();
    assert_eq!(needs, ["b", "c@^1"]);
}

#[test]
fn locked_versions_stay_unless_updated() {
    let lines = ["a 1.0.0 : b@^1", "a 1.1.0 : b@^1", "b 1.0.0", "b 1.1.0"];
    let request = locked(wanted(&["a"]), &[("a", "1.0.0"), ("b", "1.0.0")]);
    assert_eq!(chosen(&lines, &request), "a 1.0.0, b 1.0.0");
    let update = Update::Skills(["b".to_owned()].into());
    assert_eq!(chosen(&lines, &Request { update, ..request.clone() }), "a 1.0.0, b 1.1.0");
    let request = Request { update: Update::All, ..request };
    assert_eq!(chosen(&lines, &request), "a 1.1.0, b 1.1.0");
    let moved = locked(wanted(&["a@>=1.1"]), &[("a", "1.0.0"), ("b", "1.0.0")]);
    assert_eq!(chosen(&lines, &moved), "a 1.1.0, b 1.0.0", "only what must move moves");
    let gone = locked(wanted(&["b"]), &[("b", "0.9.0")]);
    assert_eq!(chosen(&lines, &gone), "b 1.1.0");
}

#[test]
fn yanked_versions_stay_only_if_locked() {
    let lines = ["a 1.0.0", "a 1.1.0 yanked"];
    assert_eq!(chosen(&lines, &wanted(&["a"])), "a 1.0.0");
    let request = locked(wanted(&["a"]), &[("a", "1.1.0")]);
    let resolution = resolve(&Lines::new(&lines), &request).unwrap();
    assert!(resolution.chosen["a"].yanked);
    let request = Request { update: Update::All, ..request };
    assert_eq!(chosen(&lines, &request), "a 1.0.0");
    let (code, text, _) = refused(&lines, &wanted(&["a@1.1"]));
    assert_eq!(code, "version_conflict");
    assert_eq!(text, "`savoir.toml` asks for `a` 1.1, and every version of that is yanked");
}

#[test]
fn pre_releases_need_request_or_no_alternative() {
    let lines = ["a 1.0.0", "a 1.1.0-rc.1", "b 1.0.0-rc.1", "b 1.0.0-rc.2", "d 2.0.0-rc.1"];
    assert_eq!(chosen(&lines, &wanted(&["a"])), "a 1.0.0");
    assert_eq!(chosen(&lines, &wanted(&["a@>=1.0.0-rc.1"])), "a 1.1.0-rc.1");
    assert_eq!(chosen(&lines, &wanted(&["b"])), "b 1.0.0-rc.2");
    assert_eq!(refused(&lines, &wanted(&["d@<2.0.0"])).0, "version_conflict");
    assert_eq!(
        chosen(&lines, &wanted(&["a@^1", "a@>=1.1.0-rc.1"])),
        "a 1.1.0-rc.1",
        "no release is both, so that the pre-release counts"
    );
    let lines = ["a 1.0.0 : c@^2", "a 1.1.0-rc.1 : c@^1", "c 1.0.0", "c 2.0.0"];
    let (code, ..) = refused(&lines, &wanted(&["a", "c@^1"]));
    assert_eq!(code, "version_conflict", "a pre-release of another skill is no way out");
}

#[test]
fn build_metadata_is_ignored_and_kept() {
    let lines = ["a 1.0.0+b", "a 1.0.0+a", "c 1.0.0+x : a@==1.0.0"];
    assert_eq!(chosen(&lines, &wanted(&["c"])), "a 1.0.0+b, c 1.0.0+x");
    let request = locked(wanted(&["c"]), &[("a", "1.0.0+a")]);
    assert_eq!(chosen(&lines, &request), "a 1.0.0+a, c 1.0.0+x");
}

#[test]
fn unsigned_dependencies_are_chosen_like_others() {
    let lines = ["a 1.0.0 : x", "x 1.0.0", "x 1.1.0 experimental"];
    assert_eq!(chosen(&lines, &wanted(&["a"])), "a 1.0.0, x 1.1.0");
}

#[test]
fn conflict_names_requesters() {
    let lines = ["a 1.2.0 : c@^2", "c 1.5.0", "c 2.0.0"];
    let (code, text, hints) = refused(&lines, &wanted(&["a", "c@^1"]));
    assert_eq!(code, "version_conflict");
    insta::assert_snapshot!(text, @r"
    `a` 1.2.0 needs `c` ^2, but `savoir.toml` asks for `c` ^1: no version of `c` is both
    `savoir.toml` asks for `a`
    ");
    assert_eq!(hints, ["ask for `c` ^2 in `savoir.toml`, or for another version of `a`"]);
}

#[test]
fn transitive_conflict_is_explained() {
    let lines = [
        "a 1.0.0 : b@^1", "a 1.1.0 : b@^1", "b 1.0.0 : d@^1", "b 1.4.0 : d@^1", "c 3.0.0 : d@>=2",
        "d 1.0.0", "d 2.0.0",
    ];
    let mut request = wanted(&["a@^1", "c"]);
    request.roots[1].asker = RootRequest::CommandLine;
    let (_, text, hints) = refused(&lines, &request);
    insta::assert_snapshot!(text, @r"
    `c` 3.0.0 needs `d` >=2, but `b` 1.4.0 and 1.0.0 need `d` ^1: no version of `d` is both
    `a` 1.1.0 and 1.0.0 need `b` ^1
    `savoir.toml` asks for `a` ^1
    the command line asks for `c`
    ");
    assert_eq!(hints, ["ask for another version of `c` or of `b`"]);
}

#[test]
fn empty_range_is_explained() {
    let lines = ["a 1.0.0", "a 1.1.0", "b 1.0.0 : a@^9", "b 1.1.0 unreadable"];
    let (_, text, hints) = refused(&lines, &wanted(&["a@^2"]));
    insta::assert_snapshot!(
        text,
        @"`savoir.toml` asks for `a` ^2, and no version of `a` is that: there are 1.1.0 and 1.0.0"
    );
    assert_eq!(hints, ["change the range of `a` in `savoir.toml`"]);
    let (_, text, _) = refused(&lines, &wanted(&["b"]));
    insta::assert_snapshot!(text, @r"
    `b` 1.1.0 cannot be used: its needs cannot be read
    `b` 1.0.0 needs `a` ^9, and no version of `a` is that: there are 1.1.0 and 1.0.0
    `savoir.toml` asks for `b`
    ");
    let (_, text, _) = refused(&lines, &wanted(&["a@^1.1", "a@1.0"]));
    insta::assert_snapshot!(
        text,
        @"`savoir.toml` asks for `a` ^1.1, but `savoir.toml` asks for `a` 1.0: no version of `a` is both"
    );
}

#[test]
fn unknown_name_suggests_similar() {
    let lines = ["web-search 1.0.0", "a 1.0.0 : web-serch", "b 1.0.0", "b 1.1.0 : nowhere"];
    let (code, text, hints) = refused(&lines, &wanted(&["web-seach"]));
    assert_eq!(code, "unknown_skill");
    assert_eq!(text, "`savoir.toml` asks for `web-seach`, and there is no skill of that name");
    assert_eq!(hints, ["did you mean `web-search`?"]);
    let (code, text, _) = refused(&lines, &wanted(&["a"]));
    assert_eq!(code, "unknown_skill");
    insta::assert_snapshot!(text, @r"
    `a` 1.0.0 needs `web-serch`, and there is no skill of that name
    `savoir.toml` asks for `a`
    ");
    assert_eq!(chosen(&lines, &wanted(&["b"])), "b 1.0.0", "an older one does without");
}

#[test]
fn dependency_cycle_is_printed() {
    let lines = ["a 1.0.0 : b", "b 1.0.0 : c", "c 1.0.0 : b", "s 1.0.0 : s"];
    let (code, text, _) = refused(&lines, &wanted(&["a"]));
    assert_eq!(code, "dependency_cycle");
    assert_eq!(text, "skills need each other in a circle: b → c → b");
    assert_eq!(refused(&lines, &wanted(&["s"])).1, "skills need each other in a circle: s → s");
}

#[test]
fn optional_skill_is_skipped() {
    let lines = ["a 1.0.0 : c@^1", "b 1.0.0 : c@^2", "c 1.0.0", "c 2.0.0", "d 1.0.0"];
    let mut request = wanted(&["b", "a", "d", "nowhere"]);
    for at in [0, 2, 3] {
        request.roots[at].need = Necessity::Optional;
    }
    let resolution = resolve(&Lines::new(&lines), &request).unwrap();
    assert_eq!(shown(&resolution), "a 1.0.0, c 1.0.0, d 1.0.0");
    let skipped: Vec<_> =
        resolution.skipped.iter().map(|s| (s.root.skill.name.as_str(), s.why.code())).collect();
    assert_eq!(skipped, [("b", "version_conflict"), ("nowhere", "unknown_skill")]);
}

#[test]
fn index_error_is_returned() {
    let (code, text, _) = refused(&["a 1.0.0 : unreachable"], &wanted(&["a"]));
    assert_eq!(code, "index");
    assert_eq!(text, "`unreachable` cannot be looked up: the registry does not answer");
}

#[test]
fn equal_demands_are_merged() {
    let lines = ["a 1.0.0 : c@>=1; c@<2", "c 1.0.0", "c 1.5.0", "c 2.0.0"];
    assert_eq!(chosen(&lines, &wanted(&["a"])), "a 1.0.0, c 1.5.0");
}
