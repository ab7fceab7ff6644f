//! Detects harm that several calls cause together, such as ransomware and clipboard hijacking.

use savoir_skill::Span;

use crate::action::{Action, Actions};

/// Calls of a program that are harmless alone and harmful in combination.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that was seen")]
pub(crate) struct HarmfulCalls {
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

impl HarmfulCalls {
    /// Records an action for each harmful combination of calls.
    pub(crate) fn report(&self, actions: &mut Actions) {
        if let Some(span) = self.deletes.filter(|_| self.walks && self.encrypts) {
            actions
                .push(Action::DestroysData("the user's files after encrypting them".into()), span);
        }
        let spoils = self.walks && (self.encrypts || self.noise);
        if let Some(span) = self.overwrites.filter(|_| spoils) {
            actions
                .push(Action::DestroysData("the user's files by writing over them".into()), span);
        }
        if let Some(span) = self.copies.filter(|_| self.pastes && self.matches) {
            actions.push(Action::Obfuscates("the clipboard content of the user is replaced"), span);
        }
    }
}
