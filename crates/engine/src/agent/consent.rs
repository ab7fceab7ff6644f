//! Whoever is asked before a tool of a skill runs.

use std::fmt;

use futures::future::BoxFuture;

use crate::approval::{Line, Request, why, words};

/// Somebody who can be asked, or nobody.
pub trait Asker: fmt::Debug + Send + Sync {
    /// Shows a question and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Consent>;
}

/// What somebody is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Everything that the run would get.
    pub request: Request,
    /// Why the question comes.
    pub reasons: Vec<String>,
    /// What to shout.
    pub warnings: Vec<String>,
}

impl Question {
    /// The question in lines, of which none can be mistaken for another.
    pub fn lines(&self) -> Vec<Line> {
        words(&self.request).into_iter().chain(why(&self.reasons, &self.warnings)).collect()
    }
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Yes, this time.
    Once,
    /// Yes, until the skill changes.
    Always,
    /// No.
    Declined,
    /// There is nobody to ask.
    Nobody,
}

/// Nobody is there: only what needs no question runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Asker for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }
}
