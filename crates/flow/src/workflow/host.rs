//! Defines the services and policies that a workflow run can use.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use savoir_sandbox::{HostError, HostPattern};
use tokio::sync::Semaphore;

use super::limits;
use crate::{
    event::{Emitter, ListenerDisconnected},
    services::{Answer, Question, Services},
    skill_lookup::SkillLookup,
};

/// Everything that a workflow run may use. Clones share it.
#[derive(Clone, Debug)]
pub struct WorkflowHost {
    /// Models and knowledge.
    pub services: Services,
    /// The skills that the user who runs the workflow can see.
    pub skill_lookup: Arc<dyn SkillLookup>,
    /// The dangerous node types that are enabled.
    pub features: Features,
    /// The servers to which HTTP nodes may send requests.
    pub http: HttpPolicy,
    /// The limit on concurrent code nodes.
    pub code: CodePolicy,
    /// Answers LLM nodes with skills and tools; without it, they ask the model alone.
    pub agent: Option<Arc<dyn NodeAgent>>,
}

/// Answers LLM nodes with an agent, which lists the available skills to its model and can call
/// tools.
pub trait NodeAgent: fmt::Debug + Send + Sync {
    /// Answers the last message of a question. The first one is the prompt of the node.
    fn ask<'a>(
        &'a self,
        question: Question<'a>,
        out: &'a Emitter,
    ) -> BoxFuture<'a, Result<Answer, ListenerDisconnected>>;
}

/// The dangerous node types that are enabled. None is by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Nodes that send HTTP requests.
    pub http: bool,
    /// Nodes that run code.
    pub code: bool,
}

/// The servers to which HTTP nodes may send requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpPolicy {
    /// The allowed hosts; `None` allows every host.
    pub allowed: Option<Vec<HostPattern>>,
    /// Whether non-public addresses are allowed.
    pub private: bool,
}

impl HttpPolicy {
    /// Creates a policy from a list of domains, each including its subdomains. An empty list allows
    /// every host.
    ///
    /// ```
    /// use savoir_flow::workflow::HttpPolicy;
    ///
    /// let policy = HttpPolicy::only(["example.com", "192.0.2.7"])?;
    /// assert_eq!(policy.allowed.map(|list| list.len()), Some(2));
    /// assert_eq!(HttpPolicy::only([""; 0])?, HttpPolicy::default());
    /// # Ok::<(), savoir_sandbox::HostError>(())
    /// ```
    pub fn only<T: AsRef<str>>(domains: impl IntoIterator<Item = T>) -> Result<Self, HostError> {
        let patterns = domains.into_iter().map(|domain| pattern(domain.as_ref().trim()));
        let allowed: Vec<HostPattern> = patterns.collect::<Result<_, _>>()?;
        Ok(Self { allowed: Some(allowed).filter(|list| !list.is_empty()), private: false })
    }
}

/// Parses a domain. `example.com`, `.example.com` and `*.example.com` mean the same here.
fn pattern(domain: &str) -> Result<HostPattern, HostError> {
    let bare = domain.strip_prefix("*.").or_else(|| domain.strip_prefix('.')).unwrap_or(domain);
    let host = savoir_sandbox::Host::parse(bare)?;
    Ok(match host.name() {
        Some(_) => HostPattern::Domain(host),
        None => HostPattern::Exact(host),
    })
}

/// The limit on concurrent code nodes. Clones share the count.
#[derive(Clone, Debug)]
pub struct CodePolicy {
    at_once: Arc<Semaphore>,
}

impl CodePolicy {
    /// Allows `at_once` programs at the same time; further ones wait.
    pub fn new(at_once: usize) -> Self {
        Self { at_once: Arc::new(Semaphore::new(at_once)) }
    }

    pub(super) fn slots(&self) -> &Arc<Semaphore> {
        &self.at_once
    }
}

impl Default for CodePolicy {
    fn default() -> Self {
        Self::new(limits::MAX_CONCURRENT_CODE)
    }
}
