//! The context that rules read from and report to.

use savoir_skill::{Reading, Source, Span, folder::is_skill_file, read};

use super::{
    Confidence, Files, Finding, Rule, Severity,
    action::{Action, Actions},
    fragment::{Role, TextFragment},
    quoted_attacks,
    topic::{self, SkillTopic},
};

/// Maximum number of findings of one rule that are less than severe. Severe ones are all reported.
const MAX_MINOR_FINDINGS_PER_RULE: usize = 20;

/// Maximum number of findings of one rule, because each is located by reading its file again. The
/// worst are kept, and the last one says how many more there are.
const MAX_FINDINGS_PER_RULE: usize = 200;

/// A fragment with the actions of its code.
pub(super) struct AnalyzedFragment<'a> {
    pub(super) fragment: TextFragment<'a>,
    pub(super) actions: Actions,
}

/// The skill that is scanned, and the findings so far.
pub(super) struct Context<'a> {
    pub(super) files: &'a Files<'a>,
    pub(super) reading: Option<Reading>,
    pub(super) fragments: Vec<AnalyzedFragment<'a>>,
    pub(super) findings: Vec<Finding>,
}

/// A finding without its position.
pub(super) struct FindingDraft {
    pub(super) severity: Severity,
    pub(super) confidence: Confidence,
    pub(super) message: String,
}

impl FindingDraft {
    pub(super) fn new(
        severity: Severity,
        confidence: Confidence,
        message: impl Into<String>,
    ) -> Self {
        Self { severity, confidence, message: message.into() }
    }
}

impl<'a> Context<'a> {
    pub(super) fn new(files: &'a Files<'a>) -> Self {
        let file = files.iter().find(|(path, _)| is_skill_file(path) && !path.contains('/'));
        let source = file.and_then(|(_, bytes)| Source::from_bytes(bytes.to_vec()).ok());
        let reading = source.map(|source| read(source, None));
        Self { files, reading, fragments: Vec::new(), findings: Vec::new() }
    }

    /// A context without any fragments.
    pub(super) fn empty(files: &'a Files<'a>) -> Self {
        Self { files, reading: None, fragments: Vec::new(), findings: Vec::new() }
    }

    /// What the skill is about.
    pub(super) fn topic(&self) -> SkillTopic {
        let mut fragments = self.fragments.iter().map(|analyzed| &analyzed.fragment);
        let instructions = fragments.find(|fragment| topic::is_instructions(fragment));
        instructions.map(SkillTopic::of).unwrap_or_default()
    }

    /// Checks every action of every fragment against a rule.
    pub(super) fn for_each_action(
        &mut self,
        rule: &'static Rule,
        judge: impl Fn(&TextFragment<'a>, &Action, &Actions) -> Option<FindingDraft>,
    ) {
        let mut drafts = Vec::new();
        for (index, analyzed) in self.fragments.iter().enumerate() {
            for seen in &analyzed.actions.located {
                if let Some(draft) = judge(&analyzed.fragment, &seen.action, &analyzed.actions) {
                    drafts.push((index, seen.span, draft));
                }
            }
        }
        self.report_all(rule, drafts);
    }

    /// Checks every fragment against a rule.
    pub(super) fn for_each_fragment(
        &mut self,
        rule: &'static Rule,
        judge: impl Fn(&TextFragment<'a>) -> Vec<(Span, FindingDraft)>,
    ) {
        let mut drafts = Vec::new();
        for (index, analyzed) in self.fragments.iter().enumerate() {
            drafts.extend(
                judge(&analyzed.fragment).into_iter().map(|(span, draft)| (index, span, draft)),
            );
        }
        self.report_all(rule, drafts);
    }

    fn report_all(&mut self, rule: &'static Rule, mut drafts: Vec<(usize, Span, FindingDraft)>) {
        let is_severe = |draft: &FindingDraft| draft.severity >= Severity::High;
        if drafts.iter().any(|(_, _, draft)| is_severe(draft)) && self.topic().is_about_attacks() {
            for (index, span, draft) in drafts.iter_mut().filter(|(_, _, draft)| is_severe(draft)) {
                if quoted_attacks::is_example(&self.fragments[*index].fragment, *span) {
                    draft.severity = Severity::Medium;
                    draft.message.push_str(", in an example of an attack");
                }
            }
        }
        // The worst come first, so that many harmless findings cannot hide a severe one.
        drafts.sort_by_key(|(_, _, draft)| std::cmp::Reverse((draft.severity, draft.confidence)));
        let severe = drafts.iter().take_while(|(_, _, draft)| draft.severity >= Severity::High);
        let kept = severe.count().clamp(MAX_MINOR_FINDINGS_PER_RULE, MAX_FINDINGS_PER_RULE);
        let more = drafts.len().saturating_sub(kept);
        drafts.truncate(kept);
        if let Some((_, _, last)) = drafts.last_mut().filter(|_| more > 0) {
            last.message = format!("{} ({more} more places like this)", last.message);
        }
        for (index, span, draft) in drafts {
            let finding = finding_at(&self.fragments[index].fragment, rule, span, draft);
            self.findings.push(finding);
        }
    }

    /// Reports something about a file as a whole.
    pub(super) fn report_file(&mut self, rule: &'static Rule, path: &str, draft: FindingDraft) {
        self.report_at(rule, path, (1, 1), draft);
    }

    /// Whether there are so many findings of a rule that others of the same severity are not kept.
    pub(super) fn has_enough(&self, rule: &'static Rule) -> bool {
        let found = self.findings.iter().filter(|finding| finding.rule == rule);
        found.count() >= MAX_MINOR_FINDINGS_PER_RULE
    }

    /// Reports something at a line and column of a file. The worst findings of a rule are kept.
    pub(super) fn report_at(
        &mut self,
        rule: &'static Rule,
        path: &str,
        (line, column): (usize, usize),
        draft: FindingDraft,
    ) {
        if self.has_enough(rule) {
            let weight = |finding: &Finding| (finding.severity, finding.confidence);
            let mildest = self
                .findings
                .iter()
                .enumerate()
                .filter(|(_, finding)| finding.rule == rule)
                .min_by_key(|(_, finding)| weight(finding));
            match mildest {
                Some((at, mildest)) if weight(mildest) < (draft.severity, draft.confidence) => {
                    self.findings.remove(at);
                }
                _ => return,
            }
        }
        self.findings.push(Finding {
            rule,
            path: path.to_owned(),
            line,
            column,
            excerpt: String::new(),
            severity: draft.severity,
            confidence: draft.confidence,
            message: draft.message,
        });
    }
}

fn finding_at(
    fragment: &TextFragment<'_>,
    rule: &'static Rule,
    span: Span,
    draft: FindingDraft,
) -> Finding {
    let (line, column) = fragment.position(span.start);
    let message = match fragment.hidden_in {
        Some(hidden_in) => format!("{}, hidden in {hidden_in}", draft.message),
        None => draft.message,
    };
    Finding {
        rule,
        path: fragment.path.to_string(),
        line,
        column,
        excerpt: fragment.excerpt(span),
        severity: draft.severity,
        confidence: draft.confidence,
        message,
    }
}

/// Confidence that code is meant to run, and is not only an example.
pub(super) fn confidence_that_code_runs(fragment: &TextFragment<'_>) -> Confidence {
    match (fragment.role, fragment.hidden_in) {
        (_, Some(_)) | (Role::Script | Role::Instructions, _) => Confidence::High,
        (Role::Document | Role::Data, _) => Confidence::Medium,
    }
}
