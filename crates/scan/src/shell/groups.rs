//! Tracks groups of commands with their common input and output.
//!
//! `( a; b ) | c`, `{ a; b; } > file`, `for … do … done | c`, `if … fi | c`

use savoir_skill::Span;

use super::{
    ShellReader, program,
    tokens::{Command, Parser, Pipeline},
};
use crate::action::Taint;

/// The kind of a group, so that only the matching end closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    Bracket,
    /// A bracket that opens the body of a function.
    Body,
    Brace,
    /// `while` and `until`, whose condition reads the input as well.
    While,
    Loop,
    Choice,
    Case,
}

/// The beginning or the end of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupEdge {
    Opens,
    Closes,
}

/// How many open groups are searched for the matching beginning when an inner group was not closed.
const MAX_UNCLOSED_GROUPS: usize = 8;

/// Maximum length of the text that a group prints. Reaching the limit is recorded.
const MAX_GROUP_TEXT_BYTES: usize = 16 * 1024;

/// Maximum nesting of groups. Reaching the limit is recorded.
const MAX_OPEN_GROUPS: usize = 1_000;

/// What is reported about groups that are not closed.
pub(crate) const UNCLOSED_GROUPS: &str =
    "more groups in each other that do not end than are followed";

impl Parser<'_> {
    pub(super) fn open_group(&mut self, opened: GroupKind) {
        if self.opened.len() >= MAX_OPEN_GROUPS {
            return self.cut("more groups in each other than are followed");
        }
        self.opened.push((opened, self.pipelines.len()));
        self.edges.push(GroupEdge::Opens);
    }

    /// Closes the innermost group of one of these kinds. The next command may receive its output.
    pub(super) fn close_group(&mut self, wanted: &[GroupKind], command: &mut Command) -> bool {
        let back = self.opened.iter().rev().take(MAX_UNCLOSED_GROUPS);
        let Some(back) = back.into_iter().position(|(opened, _)| wanted.contains(opened)) else {
            if self.opened.len() > MAX_UNCLOSED_GROUPS {
                self.cut(UNCLOSED_GROUPS);
            }
            return false;
        };
        // A bracket also ends a pattern: `case x in a) …`.
        let pattern = self.is_open(GroupKind::Case) && wanted.contains(&GroupKind::Bracket);
        if pattern {
            return false;
        }
        let left = self.opened.len() - back - 1;
        self.closed = self.opened.get(left).map(|(_, first)| *first);
        self.opened.truncate(left);
        self.edges.extend(std::iter::repeat_n(GroupEdge::Closes, back + 1));
        let rest = self.rest().trim_start_matches([' ', '\t']);
        let rest = rest.strip_prefix("\\\n").map_or(rest, str::trim_start);
        let numbered = rest.strip_prefix(['0', '1', '2']).unwrap_or(rest);
        command.is_group = rest.starts_with('|') && !rest.starts_with("||")
            || numbered.starts_with(['>', '<'])
            || rest.starts_with("&>");
        true
    }

    pub(super) fn is_open(&self, wanted: GroupKind) -> bool {
        self.opened.last().is_some_and(|(opened, _)| *opened == wanted)
    }

    /// In `while read x; do …; done < file`, passes the file to the first command of the group.
    pub(super) fn pass_input_to_group(&mut self, pipeline: &Pipeline) {
        let Some(group) = pipeline.first().filter(|command| command.is_group) else { return };
        let reads = group.redirects.iter().filter(|redirect| !redirect.writes);
        let first = self.closed.and_then(|first| self.pipelines.get_mut(first)?.first_mut());
        if let Some(first) = first {
            first.redirects.extend(reads.cloned());
            if let (None, Some(here)) = (&first.here, &group.here) {
                first.here = Some(here.clone());
            }
        }
    }

    /// Handles keywords that open and close groups at the beginning of a command.
    pub(super) fn read_group_keyword(&mut self, word: &str, command: &mut Command) {
        match word {
            "{" => self.open_group(GroupKind::Brace),
            "while" | "until" => self.open_group(GroupKind::While),
            "do" if !self.is_open(GroupKind::While) => self.open_group(GroupKind::Loop),
            "if" => self.open_group(GroupKind::Choice),
            "case" => self.open_group(GroupKind::Case),
            "}" => drop(self.close_group(&[GroupKind::Brace], command)),
            "done" => drop(self.close_group(&[GroupKind::Loop, GroupKind::While], command)),
            "fi" => drop(self.close_group(&[GroupKind::Choice], command)),
            "esac" => drop(self.close_group(&[GroupKind::Case], command)),
            _ => {}
        }
    }
}

/// An open group.
#[derive(Clone, Default)]
pub(super) struct Group {
    input: Taint,
    prints: Taint,
    /// The literal text that the commands print.
    text: String,
}

impl Group {
    pub(super) fn with_input(input: &Taint) -> Self {
        Self { input: input.clone(), ..Self::default() }
    }
}

impl ShellReader {
    /// Passes the output of a command to process substitutions: `tee >(a)`, `> >(a)`.
    pub(super) fn read_process_substitutions(
        &mut self,
        command: &Command,
        taint: &Taint,
        span: Span,
    ) {
        let targets = command.redirects.iter().map(|redirect| &redirect.target);
        for sink in command.words.iter().chain(targets).flat_map(|word| &word.sinks) {
            self.follow(sink, taint, span);
        }
    }

    /// Opens and closes the groups before a command; `flow` is the taint of the pipe. Returns the
    /// taint of the output of closed groups.
    pub(super) fn apply_group_edges(&mut self, command: &Command, flow: &Taint) -> Taint {
        let mut closed = Taint::default();
        for edge in &command.edges {
            match edge {
                GroupEdge::Opens => {
                    let mut input = flow.clone();
                    if let Some(around) = self.groups.last() {
                        input.add(&around.input);
                    }
                    self.groups.push(Group { input, ..Group::default() });
                }
                GroupEdge::Closes => {
                    let group = self.groups.pop().unwrap_or_default();
                    closed = group.prints;
                    if let Some(around) = self.groups.last_mut() {
                        around.prints.add(&closed);
                    }
                    self.group_text = group.text;
                }
            }
        }
        closed
    }

    /// Returns the taint that the first command of a pipeline reads from the group or the function.
    pub(super) fn group_input(&self, pipeline: &Pipeline) -> Taint {
        let first = pipeline.first().and_then(program);
        if first.is_none_or(|(name, _)| matches!(name.as_str(), "echo" | "printf")) {
            return Taint::default();
        }
        let mut input = self.groups.last().map(|group| group.input.clone()).unwrap_or_default();
        let function = self.function.as_ref().and_then(|name| self.functions.get(name));
        if let Some(function) = function {
            input.add(&function.input);
        }
        input
    }

    pub(super) fn add_group_output(&mut self, flow: &Taint, text: Option<&str>, span: Span) {
        let Some(group) = self.groups.last_mut() else { return };
        group.prints.add(flow);
        let Some(text) = text else { return };
        if group.text.len() + text.len() > MAX_GROUP_TEXT_BYTES {
            return self.actions.cut("longer texts that a group prints than are read", span);
        }
        group.text.push_str(text);
        group.text.push('\n');
    }

    /// Records that a group writes its output to a file: `{ a; b; } >> file`.
    pub(super) fn record_group_write(&mut self, command: &Command, flow: &Taint, span: Span) {
        let text = std::mem::take(&mut self.group_text);
        for redirect in command.redirects.iter().filter(|redirect| redirect.writes) {
            self.files.insert(redirect.target.text.clone(), flow.clone());
            self.record_write(&redirect.target, &text, span);
            self.actions.push_embedded(text.clone(), None, None, span);
        }
    }
}
