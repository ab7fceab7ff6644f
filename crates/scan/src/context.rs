//! What rules look at and report to.

use savoir_skill::{Reading, Source, Span, folder::is_skill_file, read};

use super::{
    Confidence, Files, Finding, Rule, Severity,
    act::{Act, Acts},
    piece::{Piece, Role},
};

/// Most findings of one rule in one skill.
const MOST_PER_RULE: usize = 20;

/// A piece with what its code does.
pub(super) struct Part<'a> {
    pub(super) piece: Piece<'a>,
    pub(super) acts: Acts,
}

/// One skill, read.
pub(super) struct Context<'a> {
    pub(super) files: &'a Files<'a>,
    pub(super) reading: Option<Reading>,
    pub(super) parts: Vec<Part<'a>>,
    pub(super) findings: Vec<Finding>,
}

/// A finding before it is told.
pub(super) struct Told {
    pub(super) severity: Severity,
    pub(super) confidence: Confidence,
    pub(super) message: String,
}

impl Told {
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
        Self { files, reading, parts: Vec::new(), findings: Vec::new() }
    }

    /// One about which nothing is known.
    pub(super) fn empty(files: &'a Files<'a>) -> Self {
        Self { files, reading: None, parts: Vec::new(), findings: Vec::new() }
    }

    /// Holds every act of every piece against a rule.
    pub(super) fn each_act(
        &mut self,
        rule: &'static Rule,
        judge: impl Fn(&Piece<'a>, &Act, &Acts) -> Option<Told>,
    ) {
        let mut found = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            for seen in &part.acts.seen {
                if let Some(told) = judge(&part.piece, &seen.act, &part.acts) {
                    found.push((index, seen.span, told));
                }
            }
        }
        self.tell_all(rule, found);
    }

    /// Holds every piece against a rule.
    pub(super) fn each_piece(
        &mut self,
        rule: &'static Rule,
        judge: impl Fn(&Piece<'a>) -> Vec<(Span, Told)>,
    ) {
        let mut found = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            found.extend(judge(&part.piece).into_iter().map(|(span, told)| (index, span, told)));
        }
        self.tell_all(rule, found);
    }

    fn tell_all(&mut self, rule: &'static Rule, mut found: Vec<(usize, Span, Told)>) {
        // The worst are kept. Only for these the place is looked up, which takes the whole file.
        found.sort_by_key(|(_, _, told)| std::cmp::Reverse((told.severity, told.confidence)));
        found.truncate(MOST_PER_RULE);
        for (index, span, told) in found {
            let finding = finding(&self.parts[index].piece, rule, span, told);
            self.findings.push(finding);
        }
    }

    /// Reports something about a file as a whole.
    pub(super) fn tell_file(&mut self, rule: &'static Rule, path: &str, told: Told) {
        let count = self.findings.iter().filter(|finding| finding.rule == rule).count();
        if count < MOST_PER_RULE {
            self.findings.push(Finding {
                rule,
                path: path.to_owned(),
                line: 1,
                column: 1,
                excerpt: String::new(),
                severity: told.severity,
                confidence: told.confidence,
                message: told.message,
            });
        }
    }
}

fn finding(piece: &Piece<'_>, rule: &'static Rule, span: Span, told: Told) -> Finding {
    let (line, column) = piece.position(span.start);
    let message = match piece.cloak {
        Some(cloak) => format!("{}, hidden in {cloak}", told.message),
        None => told.message,
    };
    Finding {
        rule,
        path: piece.path.to_string(),
        line,
        column,
        excerpt: piece.excerpt(span),
        severity: told.severity,
        confidence: told.confidence,
        message,
    }
}

/// How sure one can be that code is meant to run, and not only shown.
pub(super) fn sureness(piece: &Piece<'_>) -> Confidence {
    match (piece.role, piece.cloak) {
        (_, Some(_)) | (Role::Script | Role::Instructions, _) => Confidence::High,
        (Role::Document | Role::Data, _) => Confidence::Medium,
    }
}
