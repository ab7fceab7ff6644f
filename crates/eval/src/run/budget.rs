//! Ends a run that costs too much.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{analyze::Prices, trace::TokenUsage};

/// What a run may use up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    pub tokens: Option<u64>,
    /// Dollars, at these prices.
    pub cost: Option<(f64, Prices)>,
    pub time: Option<Duration>,
}

/// What a run has used up so far.
#[derive(Debug)]
pub struct Spending {
    budget: Budget,
    began: Instant,
    tokens: AtomicU64,
    usage: Mutex<TokenUsage>,
}

impl Spending {
    pub fn new(budget: Budget) -> Self {
        Self { budget, began: Instant::now(), tokens: AtomicU64::new(0), usage: Mutex::default() }
    }

    pub fn add(&self, usage: TokenUsage) {
        self.tokens.fetch_add(usage.total(), Ordering::Relaxed);
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) += usage;
    }

    pub fn usage(&self) -> TokenUsage {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Why nothing more may be started.
    pub(super) fn exhausted(&self) -> Option<String> {
        let Budget { tokens, cost, time } = self.budget;
        if let Some(most) = tokens
            && self.tokens.load(Ordering::Relaxed) >= most
        {
            return Some(format!("it was not run: the budget of {most} tokens is used up"));
        }
        if let Some((most, prices)) = cost
            && prices.cost(self.usage()) >= most
        {
            return Some(format!("it was not run: the budget of ${most} is used up"));
        }
        if let Some(most) = time
            && self.began.elapsed() >= most
        {
            let seconds = most.as_secs();
            return Some(format!("it was not run: the time limit of {seconds} s is reached"));
        }
        None
    }

    /// The time that is left for a trial.
    pub(super) fn remaining_time(&self) -> Option<Duration> {
        self.budget.time.map(|most| most.saturating_sub(self.began.elapsed()))
    }
}
