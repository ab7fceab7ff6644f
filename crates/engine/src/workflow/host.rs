//! Services and policies that a workflow run can use.

use std::sync::Arc;

use savoir_sandbox::{HostError, HostPattern};
use tokio::sync::Semaphore;

use super::limits;
use crate::{services::Services, skill_lookup::SkillLookup};

/// What a run of a workflow may use. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Host {
    /// Models and knowledge.
    pub services: Services,
    /// Skills, as the person who runs the workflow sees them.
    pub shelf: Arc<dyn SkillLookup>,
    /// Which dangerous nodes may run at all.
    pub features: Features,
    /// Which servers may be asked.
    pub http: HttpPolicy,
    /// How much code may run.
    pub code: CodePolicy,
}

/// Which dangerous nodes may run at all. None, unless someone says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Nodes that ask servers.
    pub http: bool,
    /// Nodes that run code.
    pub code: bool,
}

/// Which servers may be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpPolicy {
    /// Only these; `None` is every one.
    pub allowed: Option<Vec<HostPattern>>,
    /// Whether addresses that are not public may be asked.
    pub private: bool,
}

impl HttpPolicy {
    /// A policy with a list of domains, each with everything below it. An empty list is no list.
    ///
    /// ```
    /// use savoir_engine::workflow::HttpPolicy;
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

/// `example.com`, `.example.com` and `*.example.com` mean the same here.
fn pattern(domain: &str) -> Result<HostPattern, HostError> {
    let bare = domain.strip_prefix("*.").or_else(|| domain.strip_prefix('.')).unwrap_or(domain);
    let host = savoir_sandbox::Host::parse(bare)?;
    Ok(match host.name() {
        Some(_) => HostPattern::Domain(host),
        None => HostPattern::Exact(host),
    })
}

/// How much code may run. Clones share the count.
#[derive(Clone, Debug)]
pub struct CodePolicy {
    at_once: Arc<Semaphore>,
}

impl CodePolicy {
    /// So many programs at once; the others wait.
    pub fn new(at_once: usize) -> Self {
        Self { at_once: Arc::new(Semaphore::new(at_once)) }
    }

    pub(super) fn slots(&self) -> &Arc<Semaphore> {
        &self.at_once
    }
}

impl Default for CodePolicy {
    fn default() -> Self {
        Self::new(limits::CODE_AT_ONCE)
    }
}
