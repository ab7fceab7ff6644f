//! Rewrites placeholders in the body: `{{x}}`, `{{ x }}` and `$x` name the same input.

use std::borrow::Cow;

use crate::{
    dialect::Dialect,
    render::Placeholders,
    skill::Skill,
    template::{
        self, Grammar,
        claude::{self, Target},
    },
};

/// The syntax of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceholderStyle {
    /// `{{x}}`
    Tight,
    /// `{{ x }}`
    Spaced,
    /// `$x`
    Dollar,
}

impl PlaceholderStyle {
    const ALL: [Self; 3] = [Self::Tight, Self::Spaced, Self::Dollar];

    /// The name of the style, as stored in a converted file.
    pub(super) fn sample(self) -> &'static str {
        match self {
            Self::Tight => "{{x}}",
            Self::Spaced => "{{ x }}",
            Self::Dollar => "$x",
        }
    }

    pub(super) fn parse(sample: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|marks| marks.sample() == sample)
    }

    /// The styles that a dialect supports, the usual one first.
    fn of(dialect: Dialect) -> &'static [Self] {
        match dialect.language().placeholders() {
            Placeholders::AgentFlow => &[Self::Tight],
            Placeholders::Skillrt => &[Self::Spaced, Self::Tight],
            Placeholders::Claude => &[Self::Dollar],
            Placeholders::None | Placeholders::BaseDir => &[],
        }
    }

    fn write(self, name: &str) -> String {
        match self {
            Self::Tight => format!("{{{{{name}}}}}"),
            Self::Spaced => format!("{{{{ {name} }}}}"),
            Self::Dollar => format!("${name}"),
        }
    }
}

/// The result of translating a body to another dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// The body needs no change.
    Same,
    /// The placeholders were rewritten; `before` is their original style.
    Rewritten { body: String, before: PlaceholderStyle },
    /// The body uses inputs that the target cannot insert.
    Stuck,
}

/// Rewrites the placeholders of declared inputs for the target, if the change can be undone
/// exactly.
pub(super) fn translate(body: &str, skill: &Skill, target: Dialect) -> Translation {
    let names: Vec<&str> = skill.inputs.iter().map(|input| input.name.as_str()).collect();
    let (before, after) = (PlaceholderStyle::of(skill.dialect), PlaceholderStyle::of(target));
    let used: Vec<PlaceholderStyle> =
        before.iter().copied().filter(|marks| uses(body, &names, *marks)).collect();
    if used.iter().all(|marks| after.contains(marks)) {
        return Translation::Same;
    }
    let ([before], Some(to)) = (used.as_slice(), after.first()) else { return Translation::Stuck };
    let translated = rewrite(body, &names, *before, *to);
    if rewrite(&translated, &names, *to, *before) == body {
        Translation::Rewritten { body: translated, before: *before }
    } else {
        Translation::Stuck
    }
}

/// Undoes a translation and returns the original body.
pub(super) fn restore(body: &str, skill: &Skill, before: PlaceholderStyle) -> String {
    let names: Vec<&str> = skill.inputs.iter().map(|input| input.name.as_str()).collect();
    match PlaceholderStyle::of(skill.dialect).first() {
        Some(now) => rewrite(body, &names, *now, before),
        None => body.to_owned(),
    }
}

fn uses(body: &str, names: &[&str], marks: PlaceholderStyle) -> bool {
    rewrite_with(body, names, marks, |_| "\0".to_owned()) != body
}

fn rewrite(body: &str, names: &[&str], from: PlaceholderStyle, to: PlaceholderStyle) -> String {
    rewrite_with(body, names, from, |name| to.write(name))
}

fn rewrite_with(
    body: &str,
    names: &[&str],
    from: PlaceholderStyle,
    write: impl Fn(&str) -> String,
) -> String {
    let declared = |name: &str| names.contains(&name);
    match from {
        PlaceholderStyle::Tight => template::substitute(body, Grammar::AgentFlow, |name| {
            declared(name).then(|| Cow::Owned(write(name)))
        }),
        PlaceholderStyle::Spaced => {
            let mut result = String::with_capacity(body.len());
            let mut copied = 0;
            for found in template::scan(body, Grammar::Skillrt) {
                let text = body.get(found.span.clone()).unwrap_or_default();
                if declared(&found.name) && text == from.write(&found.name) {
                    result.push_str(body.get(copied..found.span.start).unwrap_or_default());
                    result.push_str(&write(&found.name));
                    copied = found.span.end;
                }
            }
            result.push_str(body.get(copied..).unwrap_or_default());
            result
        }
        PlaceholderStyle::Dollar => {
            let mut result = String::with_capacity(body.len());
            let mut copied = 0;
            for found in claude::scan(body, names) {
                let Target::Name(index) = found.target else { continue };
                let Some(name) = names.get(index) else { continue };
                result.push_str(body.get(copied..found.span.start).unwrap_or_default());
                result.push_str(&write(name));
                copied = found.span.end;
            }
            result.push_str(body.get(copied..).unwrap_or_default());
            result
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::Input;

    fn skill(dialect: Dialect, names: &[&str]) -> Skill {
        let mut skill = Skill::new(dialect);
        let input = |name: &&str| Input { name: (*name).to_owned(), ..Input::default() };
        skill.inputs = names.iter().map(input).collect();
        skill
    }

    #[test]
    fn declared_inputs_change_their_marks() {
        let flow = skill(Dialect::AGENT_FLOW, &["who"]);
        let translation = translate("Hi {{who}}, {{other}}.", &flow, Dialect::CLAUDE_CODE);
        let body = "Hi $who, {{other}}.".to_owned();
        assert_eq!(translation, Translation::Rewritten { body, before: PlaceholderStyle::Tight });
        let claude = skill(Dialect::CLAUDE_CODE, &["who"]);
        assert_eq!(
            restore("Hi $who, {{other}}.", &claude, PlaceholderStyle::Tight),
            "Hi {{who}}, {{other}}."
        );
    }

    #[test]
    fn irreversible_placeholders_are_not_rewritten() {
        let flow = skill(Dialect::AGENT_FLOW, &["who", "1"]);
        for body in ["{{who}}s", "{{who}} costs $who", "{{1}}"] {
            let translation = translate(body, &flow, Dialect::CLAUDE_CODE);
            assert_eq!(translation, Translation::Stuck, "{body}");
        }
        assert_eq!(translate("{{x}}", &flow, Dialect::CLAUDE_CODE), Translation::Same);
        assert_eq!(translate("{{who}}", &flow, Dialect::CODEX), Translation::Stuck);
    }

    #[test]
    fn skillrt_reads_both_forms() {
        let flow = skill(Dialect::AGENT_FLOW, &["a"]);
        assert_eq!(translate("{{a}}", &flow, Dialect::SKILLRT), Translation::Same);
        let skillrt = skill(Dialect::SKILLRT, &["a"]);
        let rewritten =
            Translation::Rewritten { body: "{{a}}!".into(), before: PlaceholderStyle::Spaced };
        assert_eq!(translate("{{ a }}!", &skillrt, Dialect::AGENT_FLOW), rewritten);
        let mixed = translate("{{ a }} {{a}}", &skillrt, Dialect::AGENT_FLOW);
        assert_eq!(mixed, Translation::Stuck);
    }
}
