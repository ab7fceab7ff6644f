//! Tracks groups of commands with their common input and output.
//!
//! `( a; b ) | c`, `{ a; b; } > file`, `for … do … done | c`, `if … fi | c`

use savoir_skill::Span;

use super::{
    Reader, program,
    tokens::{Command, Parser, Pipeline},
};
use crate::act::Taint;

/// The kind of a group, so that only the matching end closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
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
pub(crate) enum Edge {
    Opens,
    Closes,
}

/// How many open groups are searched for the matching beginning when an inner group was not closed.
const FARTHEST: usize = 8;

impl Parser<'_> {
    pub(super) fn opens(&mut self, opened: Opened) {
        self.opened.push((opened, self.pipelines.len()));
        self.edges.push(Edge::Opens);
    }

    /// Closes the innermost group of one of these kinds. The next command may receive its output.
    pub(super) fn closes(&mut self, wanted: &[Opened], command: &mut Command) -> bool {
        let back = self.opened.iter().rev().take(FARTHEST);
        let Some(back) = back.into_iter().position(|(opened, _)| wanted.contains(opened)) else {
            return false;
        };
        // A bracket also ends a pattern: `case x in a) …`.
        let pattern = self.is_open(Opened::Case) && wanted.contains(&Opened::Bracket);
        if pattern {
            return false;
        }
        let left = self.opened.len() - back - 1;
        self.closed = self.opened.get(left).map(|(_, first)| *first);
        self.opened.truncate(left);
        self.edges.extend(std::iter::repeat_n(Edge::Closes, back + 1));
        let rest = self.rest().trim_start_matches([' ', '\t']);
        let rest = rest.strip_prefix("\\\n").map_or(rest, str::trim_start);
        let numbered = rest.strip_prefix(['0', '1', '2']).unwrap_or(rest);
        command.is_group = rest.starts_with('|') && !rest.starts_with("||")
            || numbered.starts_with(['>', '<'])
            || rest.starts_with("&>");
        true
    }

    pub(super) fn is_open(&self, wanted: Opened) -> bool {
        self.opened.last().is_some_and(|(opened, _)| *opened == wanted)
    }

    /// In `while read x; do …; done < file`, passes the file to the first command of the group.
    pub(super) fn feed(&mut self, pipeline: &Pipeline) {
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
    pub(super) fn group_word(&mut self, word: &str, command: &mut Command) {
        match word {
            "{" => self.opens(Opened::Brace),
            "while" | "until" => self.opens(Opened::While),
            "do" if !self.is_open(Opened::While) => self.opens(Opened::Loop),
            "if" => self.opens(Opened::Choice),
            "case" => self.opens(Opened::Case),
            "}" => drop(self.closes(&[Opened::Brace], command)),
            "done" => drop(self.closes(&[Opened::Loop, Opened::While], command)),
            "fi" => drop(self.closes(&[Opened::Choice], command)),
            "esac" => drop(self.closes(&[Opened::Case], command)),
            _ => {}
        }
    }
}

/// An open group.
#[derive(Clone, Default)]
pub(super) struct Group {
    input: Taint,
    prints: Taint,
}

impl Group {
    pub(super) fn reading(input: &Taint) -> Self {
        Self { input: input.clone(), prints: Taint::default() }
    }
}

impl Reader {
    /// Passes the output of a command to process substitutions: `tee >(a)`, `> >(a)`.
    pub(super) fn sinks(&mut self, command: &Command, taint: &Taint, span: Span) {
        let targets = command.redirects.iter().map(|redirect| &redirect.target);
        for sink in command.words.iter().chain(targets).flat_map(|word| &word.sinks) {
            self.follow(sink, taint, span);
        }
    }

    /// Opens and closes the groups before a command; `flow` is the taint of the pipe. Returns the
    /// taint of the output of closed groups.
    pub(super) fn edges(&mut self, command: &Command, flow: &Taint) -> Taint {
        let mut closed = Taint::default();
        for edge in &command.edges {
            match edge {
                Edge::Opens => {
                    let mut input = flow.clone();
                    if let Some(around) = self.groups.last() {
                        input.add(&around.input);
                    }
                    self.groups.push(Group { input, prints: Taint::default() });
                }
                Edge::Closes => {
                    closed = self.groups.pop().map(|group| group.prints).unwrap_or_default();
                    if let Some(around) = self.groups.last_mut() {
                        around.prints.add(&closed);
                    }
                }
            }
        }
        closed
    }

    /// Returns the taint that the first command of a pipeline reads from the group or the function.
    pub(super) fn input(&self, pipeline: &Pipeline) -> Taint {
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

    pub(super) fn prints(&mut self, flow: &Taint) {
        if let Some(group) = self.groups.last_mut() {
            group.prints.add(flow);
        }
    }
}
