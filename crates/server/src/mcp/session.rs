//! Handles the requests of one MCP session.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult,
        ErrorCode, GetPromptRequestParams, GetPromptResponse, Implementation, JsonObject,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, Role, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{Peer, RequestContext, SubscriptionContext, SubscriptionSink},
};
use savoir_agent::{allowed_tools::AllowedTools, library::Library};
use savoir_skill::name::shorten_name;

use super::{
    McpContext,
    elicitation::{self, CallOutcome, PendingCalls},
    resources::{self, RESULT_TTL_MS, SKILLS_EXTENSION, SkillResources},
    tools::{self, SessionTools},
};

/// The instructions that a client gets at the start.
const INSTRUCTIONS: &str = "Skills are instructions for particular tasks, with files and tools. \
Before a task that a skill may know how to do, find one with search_skills and load it with \
use_skill. While a skill is followed, only the tools that it allows can be called here.";

/// Known methods. A request for one that was not recognized has wrong parameters.
const KNOWN_METHODS: [&str; 14] = [
    "completion/complete", "initialize", "logging/setLevel", "ping", "prompts/get", "prompts/list",
    "resources/list", "resources/read", "resources/subscribe", "resources/templates/list",
    "resources/unsubscribe", "server/discover", "tools/call", "tools/list",
];

/// The state between two requests: the skill in use, its tools, and subscriptions.
#[derive(Debug)]
pub(super) struct SessionState {
    counter: Arc<SessionTools>,
    /// Subscribers to changes of tools or skills, in protocol revisions with subscriptions.
    listeners: Mutex<Vec<SubscriptionSink>>,
    /// The edition of the library that the client knows; zero before the first request.
    known_edition: AtomicU64,
}

impl SessionState {
    pub(super) fn new(context: McpContext) -> Self {
        Self::with_allowed_tools(context, Arc::default())
    }

    /// Creates the state with a list of allowed tools that is shared with other states.
    pub(super) fn with_allowed_tools(
        context: McpContext,
        allowed_tools: Arc<AllowedTools>,
    ) -> Self {
        let counter = Arc::new(SessionTools::new(context, allowed_tools));
        Self { counter, listeners: Mutex::default(), known_edition: AtomicU64::new(0) }
    }

    fn sinks(&self) -> Vec<SubscriptionSink> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notifies a client, once, that the skills changed since it last read them.
    pub(super) async fn notify_skills_changed(
        &self,
        library: &dyn Library,
        peer: &Peer<RoleServer>,
    ) {
        let Some(now) = library.edition() else { return };
        let before = self.known_edition.swap(now, Ordering::AcqRel);
        if before == 0 || before == now {
            return;
        }
        // Errors are ignored: a client that no longer listens does not need the notification.
        if is_initialized(peer) {
            let _ = peer.notify_tool_list_changed().await;
            let _ = peer.notify_prompt_list_changed().await;
            let _ = peer.notify_resource_list_changed().await;
        }
        for sink in self.sinks() {
            let _ = sink.notify_tool_list_changed().await;
            let _ = sink.notify_prompt_list_changed().await;
            let _ = sink.notify_resource_list_changed().await;
        }
    }
}

/// Whether the client started with a handshake of a protocol revision in which a server may send
/// messages by itself.
fn is_initialized(peer: &Peer<RoleServer>) -> bool {
    let info = peer.peer_info();
    info.is_some_and(|info| info.protocol_version < ProtocolVersion::V_2026_07_28)
}

/// One client.
#[derive(Debug)]
pub(super) struct Session {
    state: Arc<SessionState>,
    /// The state for a request without a session, where each request has its own client.
    shared: Option<Arc<SessionState>>,
    resources: SkillResources,
    pending_calls: Arc<PendingCalls>,
}

impl Session {
    pub(super) fn new(context: McpContext, pending_calls: Arc<PendingCalls>) -> Self {
        let (library, files) = (Arc::clone(&context.library), Arc::clone(&context.files));
        let state = Arc::new(SessionState::new(context));
        Self { state, shared: None, resources: SkillResources { library, files }, pending_calls }
    }

    /// Adds the state that requests without a session share.
    pub(super) fn with_shared_state(self, shared: Arc<SessionState>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// The state and the library, for the task that watches the skills.
    pub(super) fn state_and_library(&self) -> (Arc<SessionState>, Arc<dyn Library>) {
        (Arc::clone(&self.state), Arc::clone(&self.resources.library))
    }

    async fn notify_skills_changed(&self, context: &RequestContext<RoleServer>) {
        let state = self.state(context);
        state.notify_skills_changed(&*self.resources.library, &context.peer).await;
    }

    fn state(&self, context: &RequestContext<RoleServer>) -> &SessionState {
        self.shared.as_ref().filter(|_| has_subscriptions(context)).unwrap_or(&self.state)
    }

    /// Notifies a client that its tools changed.
    async fn notify_tools_changed(&self, context: &RequestContext<RoleServer>) {
        if !has_subscriptions(context) {
            if let Err(error) = context.peer.notify_tool_list_changed().await {
                tracing::debug!(%error, "a client could not be notified that its tools changed");
            }
            return;
        }
        for sink in self.state(context).sinks() {
            // Errors are ignored: a client that no longer listens does not need the notification.
            let _ = sink.notify_tool_list_changed().await;
        }
    }

    /// Adds the capability for notifications if changes of skills are watched.
    fn with_change_notifications(
        &self,
        mut capabilities: ServerCapabilities,
    ) -> ServerCapabilities {
        if self.resources.library.edition().is_some() {
            capabilities.prompts.get_or_insert_default().list_changed = Some(true);
            capabilities.resources.get_or_insert_default().list_changed = Some(true);
        }
        capabilities
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallOutcome {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let (modern, arguments) = (has_subscriptions(context), arguments.unwrap_or_default());
        if modern && let Some(state) = request_state {
            let answers = input_responses.unwrap_or_default();
            return self.pending_calls.resume(&state, &name, &arguments, &answers).await;
        }
        let counter = Arc::clone(&self.state(context).counter);
        let moment = counter.now();
        let work = counter.call(name.clone().into_owned(), arguments.clone(), moment);
        if !elicitation::can_ask(context) {
            CallOutcome::Answer(work.await)
        } else if modern {
            self.pending_calls.begin(&name, &arguments, work).await
        } else {
            CallOutcome::Answer(elicitation::with_client(context.peer.clone(), work).await)
        }
    }
}

/// Whether the client uses the protocol revision without sessions, where a server sends no
/// requests.
pub(super) fn has_subscriptions(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// The error for invalid parameters.
pub(super) fn invalid(message: impl std::fmt::Display) -> ErrorData {
    ErrorData::invalid_params(message.to_string(), None)
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let mut settings = JsonObject::new();
        settings.insert("directoryRead".to_owned(), true.into());
        let capabilities = ServerCapabilities::builder()
            .enable_extensions_with([(SKILLS_EXTENSION.to_owned(), settings)].into())
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let capabilities = self.with_change_notifications(capabilities);
        let version = env!("CARGO_PKG_VERSION");
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("savoir", version).with_title("Savoir"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // All tools are in one page.
        if request.and_then(|request| request.cursor).is_some() {
            return Err(resources::unknown_cursor());
        }
        self.notify_skills_changed(&context).await;
        let offered = self.state(&context).counter.offered().await;
        let tools = ListToolsResult::with_all_items(offered);
        // No caching: the tools change with the next `use_skill`.
        Ok(tools.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let listed = self.resources.prompts(cursor.as_deref()).await;
        self.notify_skills_changed(&context).await;
        listed
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (mut prompt, opened) = self.resources.prompt(request).await?;
        let counter = &self.state(&context).counter;
        // The user chose the skill, so its tool list applies as if a model had loaded it.
        let other_tools = counter.follow(&opened.skill);
        // The note is in our words, so it is separate from the text of the skill.
        let note = counter.note(&opened);
        prompt.messages.extend(note.map(|note| PromptMessage::new_text(Role::User, note)));
        if other_tools {
            self.notify_tools_changed(&context).await;
        }
        Ok(prompt.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let listed = self.resources.page(cursor.as_deref()).await;
        self.notify_skills_changed(&context).await;
        listed
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = ListResourceTemplatesResult::with_all_items(vec![resources::template()]);
        Ok(templates.with_ttl_ms(RESULT_TTL_MS))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(self.resources.contents(&request.uri).await?.into())
    }

    fn get_tool(&self, _: &str) -> Option<Tool> {
        // Arguments are validated by the tools themselves, with messages for a model.
        None
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let outcome = tokio::select! {
            outcome = self.answer(request, &context) => outcome,
            () = context.ct.cancelled() => {
                return Err(ErrorData::invalid_request("the call was cancelled", None));
            }
        };
        self.notify_skills_changed(&context).await;
        match outcome {
            CallOutcome::Answer(answered) => {
                if answered.brought {
                    self.notify_tools_changed(&context).await;
                }
                Ok(tools::result(answered).into())
            }
            CallOutcome::Question(question) => Ok(question.into()),
        }
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = wanted.tools_list_changed;
        if self.resources.library.edition().is_some() {
            accepted.prompts_list_changed = wanted.prompts_list_changed;
            accepted.resources_list_changed = wanted.resources_list_changed;
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // Only the protocol revision without sessions has subscriptions.
        let state = self.shared.as_ref().unwrap_or(&self.state);
        let listeners = || state.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let sink = context.sink().clone();
        listeners().push(sink.clone());
        context.cancelled().await;
        listeners().retain(|known| known.id() != sink.id());
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let params = params.as_ref();
        let result = match method.as_str() {
            "skills/list" => self.resources.skills(params).await,
            "skills/get" => self.resources.skill(params).await,
            "resources/directory/read" => self.resources.children(params).await,
            known if KNOWN_METHODS.contains(&known) => {
                Err(invalid(format!("the parameters of `{method}` have another shape")))
            }
            _ => {
                let message = format!("there is no method `{}`", shorten_name(&method));
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
            }
        };
        result.map(CustomResult::new)
    }
}
