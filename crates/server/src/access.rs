//! Defines the token scope and the rate limit of each route.

use axum::http::Method;

use crate::config::RateLimits;

/// A scope that an API token may have. A user who logs in has all scopes that apply to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    SkillsRead,
    SkillsWrite,
    /// Create drafts, which a person reviews, and nothing else.
    SkillsDraft,
    SkillsRun,
    Chat,
    KnowledgeRead,
    KnowledgeWrite,
    WorkflowsRead,
    WorkflowsWrite,
    WorkflowsRun,
    /// Users, settings and usage: for administrators only.
    Admin,
    /// Read the own account.
    Account,
    /// Actions that only a logged-in person may do: manage tokens, log out.
    Person,
}

impl Scope {
    /// Scopes that a token can have.
    pub(crate) const GRANTABLE: &[Self] = &[
        Self::SkillsRead,
        Self::SkillsWrite,
        Self::SkillsDraft,
        Self::SkillsRun,
        Self::Chat,
        Self::KnowledgeRead,
        Self::KnowledgeWrite,
        Self::WorkflowsRead,
        Self::WorkflowsWrite,
        Self::WorkflowsRun,
        Self::Admin,
    ];

    /// Whether a token that is created without a list of scopes gets this scope.
    pub(crate) fn is_default(self) -> bool {
        // `SkillsWrite` includes drafts.
        !matches!(self, Self::Admin | Self::SkillsDraft)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::SkillsRead => "skills:read",
            Self::SkillsWrite => "skills:write",
            Self::SkillsDraft => "skills:draft",
            Self::SkillsRun => "skills:run",
            Self::Chat => "chat",
            Self::KnowledgeRead => "knowledge:read",
            Self::KnowledgeWrite => "knowledge:write",
            Self::WorkflowsRead => "workflows:read",
            Self::WorkflowsWrite => "workflows:write",
            Self::WorkflowsRun => "workflows:run",
            Self::Admin => "admin",
            Self::Account => "account",
            Self::Person => "person",
        }
    }

    /// The error message for a token without this scope.
    pub(crate) fn missing_scope_message(self) -> String {
        match self {
            Self::Person => "Only a person who logged in can do this".to_owned(),
            scope => format!("This token lacks the scope {}", scope.as_str()),
        }
    }

    /// The error message for an agent, with a hint for its user.
    pub(crate) fn missing_scope_hint(self) -> String {
        let scope = self.as_str();
        format!(
            "the token of this agent lacks the scope `{scope}`; ask the user to create one that has \
             it beside `skills:read`, with POST /api/v1/auth/tokens after logging in, and to put it \
             into the settings of the agent"
        )
    }

    /// Whether the list of granted scopes includes this one.
    pub(crate) fn is_granted_by(self, granted: &[String]) -> bool {
        self == Self::Account || granted.iter().any(|scope| scope == self.as_str())
    }
}

/// The scope that a route requires. Routes that are not in the table are for logged-in people only.
pub(crate) fn scope(method: &Method, route: &str) -> Scope {
    let reads = *method == Method::GET || *method == Method::HEAD;
    if route == crate::mcp::PATH {
        return Scope::SkillsRead;
    }
    let Some(rest) = route.strip_prefix("/api/v1/") else { return Scope::Person };
    match rest {
        "auth/me" => Scope::Account,
        "skills/{name}/run" | "skills/{name}/tools/{tool}/run" => Scope::SkillsRun,
        "runs/{id}/approvals/{question}" => Scope::Person,
        "workflows/{id}/execute" | "workflows/executions/{id}/resume" => Scope::WorkflowsRun,
        "chat/models" | "settings/feature-flags" | "settings/embedding" if reads => Scope::Account,
        _ => match rest.split('/').next().unwrap_or_default() {
            "skills" | "personal-skills" if reads => Scope::SkillsRead,
            "skills" => Scope::SkillsWrite,
            "check" | "convert" | "dialects" => Scope::SkillsRead,
            "runs" => Scope::SkillsRun,
            "chat" => Scope::Chat,
            "knowledge" if reads => Scope::KnowledgeRead,
            "knowledge" => Scope::KnowledgeWrite,
            "workflows" if reads => Scope::WorkflowsRead,
            "workflows" => Scope::WorkflowsWrite,
            "admin" | "settings" | "observability" => Scope::Admin,
            _ => Scope::Person,
        },
    }
}

/// Maximum number of requests of one user to a route per minute. A page of the web app sends
/// several requests when it opens, and more while its user types, so only the limit for all routes
/// applies to it.
pub(crate) fn limit(limits: &RateLimits, route: &str, from_app: bool) -> u32 {
    match route {
        "/api/v1/skills/{name}/run"
        | "/api/v1/skills/{name}/tools/{tool}/run"
        | "/api/v1/chat/completions"
        | "/api/v1/workflows/{id}/execute"
        | "/api/v1/workflows/executions/{id}/resume" => limits.runs,
        _ if from_app => limits.all,
        // Agents send all requests to one path, so the limit for all routes applies.
        crate::mcp::PATH => limits.all,
        _ => limits.routes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_routes_need_login() {
        assert_eq!(scope(&Method::GET, "/api/v1/brand-new"), Scope::Person);
        assert_eq!(scope(&Method::POST, "/api/v1/auth/tokens"), Scope::Person);
        assert_eq!(scope(&Method::POST, "/api/v1/skills/{name}/run"), Scope::SkillsRun);
        assert_eq!(scope(&Method::DELETE, "/api/v1/skills/{name}"), Scope::SkillsWrite);
        assert!(!Scope::GRANTABLE.contains(&Scope::Person));
    }

    #[test]
    fn mcp_has_higher_rate_limit() {
        let limits = RateLimits { runs: 1, routes: 2, all: 3 };
        let of = |route| limit(&limits, route, false);
        assert_eq!(of("/api/v1/chat/completions"), 1);
        assert_eq!(of("/api/v1/skills"), 2);
        assert_eq!(of(crate::mcp::PATH), 3);
        assert_eq!(limit(&limits, "/api/v1/skills", true), 3);
        assert_eq!(limit(&limits, "/api/v1/chat/completions", true), 1);
    }
}
