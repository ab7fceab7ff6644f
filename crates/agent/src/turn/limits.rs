//! Limits on the steps, tokens and time of a turn.

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

/// What a turn may take, all skills that are carried out apart included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Questions to the model.
    pub steps: u32,
    /// Tokens that are sent and received.
    pub tokens: u64,
    /// Time on the clock, that of questions to people included.
    pub time: Duration,
    /// Time of one call.
    pub call: Duration,
    /// Calls at once.
    pub parallel: usize,
    /// Bytes of one answer of a tool.
    pub answer_bytes: usize,
    /// Tokens of the lines that tell which skills there are.
    pub preamble: usize,
    /// Tokens of all that is sent at once.
    pub context: usize,
    /// Questions to the model by a skill that is carried out apart.
    pub apart_steps: u32,
    /// Bytes of what such a skill comes to.
    pub apart_bytes: usize,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            // Real tasks take five to twenty.
            steps: 32,
            // About what a model of today holds at once, twice.
            tokens: 400_000,
            time: Duration::from_mins(30),
            // Longer than any sandbox lets a tool run; a person may think about a question.
            call: Duration::from_mins(10),
            parallel: 8,
            // The largest file that can be read, and what is said around it.
            answer_bytes: 260 * 1024,
            preamble: 2_000,
            context: 100_000,
            apart_steps: 16,
            apart_bytes: 8 * 1024,
        }
    }
}

/// A limit that ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Limit {
    /// Questions to the model.
    #[error("the limit of {0} steps is reached")]
    Steps(u32),
    /// Tokens.
    #[error("the budget of {0} tokens is used up")]
    Tokens(u64),
    /// Time.
    #[error("the time limit of {} s is reached", .0.as_secs())]
    Time(Duration),
}

impl Limit {
    /// A stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Steps(_) => "step-limit",
            Self::Tokens(_) => "token-budget",
            Self::Time(_) => "time-limit",
        }
    }
}

/// Counts what a turn takes. What is counted within counts outside, too.
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
    pub(super) fn part(self: &Arc<Self>, steps: u32) -> Self {
        Self {
            most_steps: steps.min(self.rest_of_steps()),
            most_tokens: self.rest_of_tokens() / 2,
            time: self.time,
            deadline: self.deadline,
            steps: AtomicU32::new(0),
            tokens: AtomicU64::new(0),
            outer: Some(Arc::clone(self)),
        }
    }

    /// Begins a step, or tells which limit is in the way.
    pub(super) fn begin_step(&self) -> Result<(), Limit> {
        if self.steps.fetch_add(1, Ordering::Relaxed) >= self.most_steps {
            return Err(Limit::Steps(self.most_steps));
        }
        if Instant::now() >= self.deadline {
            return Err(self.late());
        }
        if self.rest_of_tokens() == 0 {
            return Err(self.spent());
        }
        self.outer.as_ref().map_or(Ok(()), |outer| outer.begin_step())
    }

    pub(super) fn spend(&self, tokens: u64) {
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spent| {
            Some(spent.saturating_add(tokens))
        });
        if let Some(outer) = &self.outer {
            outer.spend(tokens);
        }
    }

    pub(super) fn rest_of_tokens(&self) -> u64 {
        let own = self.most_tokens.saturating_sub(self.tokens.load(Ordering::Relaxed));
        self.outer.as_ref().map_or(own, |outer| own.min(outer.rest_of_tokens()))
    }

    fn rest_of_steps(&self) -> u32 {
        self.most_steps.saturating_sub(self.steps.load(Ordering::Relaxed))
    }

    pub(super) fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed).min(self.most_steps)
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn late(&self) -> Limit {
        Limit::Time(self.time)
    }

    pub(super) fn spent(&self) -> Limit {
        Limit::Tokens(self.most_tokens)
    }
}

impl fmt::Debug for TurnMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meter({} steps, {} tokens left)", self.rest_of_steps(), self.rest_of_tokens())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(steps: u32, tokens: u64) -> Arc<TurnMeter> {
        Arc::new(TurnMeter::new(&TurnLimits { steps, tokens, ..TurnLimits::default() }))
    }

    #[test]
    fn what_is_counted_within_counts_outside() {
        let whole = meter(3, 1000);
        whole.begin_step().unwrap();
        let part = whole.part(10);
        assert_eq!((part.rest_of_steps(), part.rest_of_tokens()), (2, 500));
        part.begin_step().unwrap();
        part.spend(400);
        assert_eq!((whole.rest_of_steps(), whole.rest_of_tokens()), (1, 600));
        part.spend(200);
        assert_eq!(part.begin_step(), Err(Limit::Tokens(500)));
        whole.begin_step().unwrap();
        assert_eq!(whole.begin_step(), Err(Limit::Steps(3)));
        assert_eq!(whole.steps(), 3);
    }

    #[test]
    fn more_than_can_be_counted_is_used_up() {
        let whole = meter(3, 1000);
        whole.spend(u64::MAX);
        whole.spend(1);
        assert_eq!(whole.begin_step(), Err(Limit::Tokens(1000)));
    }

    #[test]
    fn parts_at_once_take_from_the_same_whole() {
        let whole = meter(4, 1000);
        let (one, other) = (whole.part(4), whole.part(4));
        one.spend(500);
        other.spend(450);
        assert_eq!((one.rest_of_tokens(), other.rest_of_tokens()), (0, 50));
        whole.spend(50);
        assert_eq!(other.begin_step(), Err(Limit::Tokens(500)));
        let (one, other) = (whole.part(4), whole.part(4));
        assert_eq!((one.rest_of_tokens(), other.rest_of_tokens()), (0, 0));
    }

    #[tokio::test]
    async fn time_is_a_limit_too() {
        let limits = TurnLimits { time: Duration::ZERO, ..TurnLimits::default() };
        let late = TurnMeter::new(&limits).begin_step().unwrap_err();
        assert_eq!(
            (late.code(), late.to_string().as_str()),
            ("time-limit", "the time limit of 0 s is reached")
        );
    }
}
