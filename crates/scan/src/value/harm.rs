//! Harm that several calls do together.

use savoir_skill::Span;

use crate::act::{Act, Acts};

/// What a program was seen to do with the files and the clipboard of its user.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that was seen")]
pub(crate) struct Harm {
    /// It goes through folders, and encrypts what it reads.
    pub(crate) walks: bool,
    pub(crate) encrypts: bool,
    /// It makes random bytes.
    pub(crate) noise: bool,
    /// It deletes single files while it goes through them, or writes over them.
    pub(crate) deletes: Option<Span>,
    pub(crate) overwrites: Option<Span>,
    /// It reads the clipboard again and again, looks for something in it and writes to it.
    pub(crate) pastes: bool,
    pub(crate) matches: bool,
    pub(crate) copies: Option<Span>,
}

impl Harm {
    /// Reports what the calls come to.
    pub(crate) fn report(&self, acts: &mut Acts) {
        if let Some(span) = self.deletes.filter(|_| self.walks && self.encrypts) {
            acts.push(Act::Deletes("the user's files after encrypting them".into()), span);
        }
        let spoils = self.walks && (self.encrypts || self.noise);
        if let Some(span) = self.overwrites.filter(|_| spoils) {
            acts.push(Act::Deletes("the user's files by writing over them".into()), span);
        }
        if let Some(span) = self.copies.filter(|_| self.pastes && self.matches) {
            acts.push(Act::Obscures("what the user copies is replaced"), span);
        }
    }
}
