//! Detects harm that several calls cause together, such as ransomware and clipboard hijacking.

use savoir_skill::Span;

use crate::act::{Act, Acts};

/// Calls of a program that are harmless alone and harmful in combination.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that was seen")]
pub(crate) struct Harm {
    /// The program walks through folders, and it encrypts data.
    pub(crate) walks: bool,
    pub(crate) encrypts: bool,
    /// The program generates random bytes.
    pub(crate) noise: bool,
    /// Positions where the program deletes or overwrites single files.
    pub(crate) deletes: Option<Span>,
    pub(crate) overwrites: Option<Span>,
    /// The program reads the clipboard, searches it with a pattern, and writes to it.
    pub(crate) pastes: bool,
    pub(crate) matches: bool,
    pub(crate) copies: Option<Span>,
}

impl Harm {
    /// Records an act for each harmful combination of calls.
    pub(crate) fn report(&self, acts: &mut Acts) {
        if let Some(span) = self.deletes.filter(|_| self.walks && self.encrypts) {
            acts.push(Act::Deletes("the user's files after encrypting them".into()), span);
        }
        let spoils = self.walks && (self.encrypts || self.noise);
        if let Some(span) = self.overwrites.filter(|_| spoils) {
            acts.push(Act::Deletes("the user's files by writing over them".into()), span);
        }
        if let Some(span) = self.copies.filter(|_| self.pastes && self.matches) {
            acts.push(Act::Obscures("the clipboard content of the user is replaced"), span);
        }
    }
}
