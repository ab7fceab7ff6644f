//! Limits the steps, tokens and time of a turn.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use thiserror::Error;
use tokio::time::Instant;

/// The limits of a turn, including all forks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Maximum number of requests to the model.
    pub steps: u32,
    /// Maximum number of tokens that are sent and received.
    pub tokens: u64,
    /// Maximum wall-clock time, including the time in which the user is asked.
    pub time: Duration,
    /// Maximum time of one tool call.
    pub call: Duration,
    /// Maximum number of concurrent tool calls.
    pub parallel: usize,
    /// Maximum size of a tool's answer in bytes.
    pub answer_bytes: usize,
    /// Maximum number of tokens of the list of skills in the system prompt.
    pub preamble: usize,
    /// Maximum number of tokens of one request.
    pub context: usize,
    /// Maximum number of model requests of a fork.
    pub apart_steps: u32,
    /// Maximum size of a fork's result in bytes.
    pub apart_bytes: usize,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            // Typical tasks need five to twenty requests.
            steps: 32,
            // About twice the context of current models.
            tokens: 400_000,
            time: Duration::from_mins(30),
            // Longer than the time limit of any tool, because the user may need time to answer a
            // question.
            call: Duration::from_mins(10),
            parallel: 8,
            // The largest file that can be read, and the text around it.
            answer_bytes: 260 * 1024,
            // A tenth of the context: the lines of about a hundred skills.
            preamble: 10_000,
            context: 100_000,
            apart_steps: 16,
            apart_bytes: 8 * 1024,
        }
    }
}

/// A limit that ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Limit {
    /// Requests to the model.
    #[error("the limit of {0} steps is reached")]
    Steps(u32),
    #[error("the budget of {0} tokens is used up")]
    Tokens(u64),
    #[error("the time limit of {} s is reached", .0.as_secs())]
    Time(Duration),
}

impl Limit {
    /// The stable code of the limit.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Steps(_) => "step-limit",
            Self::Tokens(_) => "token-budget",
            Self::Time(_) => "time-limit",
        }
    }
}

/// Counts the steps, tokens and time of a turn. A fork's meter also counts for its caller.
pub(super) struct TurnMeter {
    most_steps: u32,
    most_tokens: u64,
    time: Duration,
    deadline: Instant,
    steps: AtomicU32,
    tokens: AtomicU64,
    outer: Option<Arc<Self>>,
}

impl TurnMeter {
    pub(super) fn new(limits: &TurnLimits) -> Self {
        Self {
            most_steps: limits.steps,
            most_tokens: limits.tokens,
            time: limits.time,
            deadline: Instant::now() + limits.time,
            steps: AtomicU32::new(0),
            tokens: AtomicU64::new(0),
            outer: None,
        }
    }

    /// Limits for a sub-agent: some steps, and half of the remaining tokens, so that the caller can
    /// still report the result.
    pub(super) fn child_meter(self: &Arc<Self>, steps: u32) -> Self {
        Self {
            most_steps: steps.min(self.remaining_steps()),
            most_tokens: self.remaining_tokens() / 2,
            time: self.time,
            deadline: self.deadline,
            steps: AtomicU32::new(0),
            tokens: AtomicU64::new(0),
            outer: Some(Arc::clone(self)),
        }
    }

    /// Starts a step, or returns the limit that prevents it.
    pub(super) fn start_step(&self) -> Result<(), Limit> {
        if self.steps.fetch_add(1, Ordering::Relaxed) >= self.most_steps {
            return Err(Limit::Steps(self.most_steps));
        }
        if Instant::now() >= self.deadline {
            return Err(self.is_past_deadline());
        }
        if self.remaining_tokens() == 0 {
            return Err(self.used_tokens());
        }
        self.outer.as_ref().map_or(Ok(()), |outer| outer.start_step())
    }

    pub(super) fn add_tokens(&self, tokens: u64) {
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spent| {
            Some(spent.saturating_add(tokens))
        });
        if let Some(outer) = &self.outer {
            outer.add_tokens(tokens);
        }
    }

    pub(super) fn remaining_tokens(&self) -> u64 {
        let own = self.most_tokens.saturating_sub(self.tokens.load(Ordering::Relaxed));
        self.outer.as_ref().map_or(own, |outer| own.min(outer.remaining_tokens()))
    }

    fn remaining_steps(&self) -> u32 {
        self.most_steps.saturating_sub(self.steps.load(Ordering::Relaxed))
    }

    pub(super) fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed).min(self.most_steps)
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn is_past_deadline(&self) -> Limit {
        Limit::Time(self.time)
    }

    pub(super) fn used_tokens(&self) -> Limit {
        Limit::Tokens(self.most_tokens)
    }
}

impl fmt::Debug for TurnMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Meter({} steps, {} tokens left)",
            self.remaining_steps(),
            self.remaining_tokens()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(steps: u32, tokens: u64) -> Arc<TurnMeter> {
        Arc::new(TurnMeter::new(&TurnLimits { steps, tokens, ..TurnLimits::default() }))
    }

    #[test]
    fn fork_usage_counts_for_the_turn() {
        let whole = meter(3, 1000);
        whole.start_step().unwrap();
        let part = whole.child_meter(10);
        assert_eq!((part.remaining_steps(), part.remaining_tokens()), (2, 500));
        part.start_step().unwrap();
        part.add_tokens(400);
        assert_eq!((whole.remaining_steps(), whole.remaining_tokens()), (1, 600));
        part.add_tokens(200);
        assert_eq!(part.start_step(), Err(Limit::Tokens(500)));
        whole.start_step().unwrap();
        assert_eq!(whole.start_step(), Err(Limit::Steps(3)));
        assert_eq!(whole.steps(), 3);
    }

    #[test]
    fn token_overflow_uses_up_the_budget() {
        let whole = meter(3, 1000);
        whole.add_tokens(u64::MAX);
        whole.add_tokens(1);
        assert_eq!(whole.start_step(), Err(Limit::Tokens(1000)));
    }

    #[test]
    fn parallel_forks_share_one_budget() {
        let whole = meter(4, 1000);
        let (one, other) = (whole.child_meter(4), whole.child_meter(4));
        one.add_tokens(500);
        other.add_tokens(450);
        assert_eq!((one.remaining_tokens(), other.remaining_tokens()), (0, 50));
        whole.add_tokens(50);
        assert_eq!(other.start_step(), Err(Limit::Tokens(500)));
        let (one, other) = (whole.child_meter(4), whole.child_meter(4));
        assert_eq!((one.remaining_tokens(), other.remaining_tokens()), (0, 0));
    }

    #[tokio::test]
    async fn deadline_ends_a_turn() {
        let limits = TurnLimits { time: Duration::ZERO, ..TurnLimits::default() };
        let is_past_deadline = TurnMeter::new(&limits).start_step().unwrap_err();
        assert_eq!(
            (is_past_deadline.code(), is_past_deadline.to_string().as_str()),
            ("time-limit", "the time limit of 0 s is reached")
        );
    }
}
