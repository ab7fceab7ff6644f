//! Runs knowledge nodes, which search a knowledge base.

use savoir_knowledge::{Passage, SearchError, limits};

use super::{NodeContext, NodeError, NodeResult};
use crate::{
    event::{Emitter, Thought},
    prompt::first_chars,
    retrieval::numbered,
};

/// The error for clients if the search fails.
const FAILED: &str = "Retrieval failed";

pub(super) async fn run(
    base: Option<&str>,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<NodeResult, NodeError> {
    let base = base.ok_or_else(|| NodeError::failed("Knowledge base not configured"))?;
    let input = context.input_text();
    let query = first_chars(&input, limits::MAX_QUERY_CHARS);
    let thought = |status| Thought::new("retrieval", status).with("node_id", context.id);
    out.emit(thought("start").with("kb_id", base).with("query", query)).await?;
    let passages = search(base, query, context).await?;
    out.emit(thought("complete").with("results_count", passages.len())).await?;
    Ok(NodeResult { output: numbered(&passages).into(), ..NodeResult::default() })
}

async fn search(
    base: &str,
    query: &str,
    context: &NodeContext<'_>,
) -> Result<Vec<Passage>, NodeError> {
    let Some(knowledge) = &context.host.services.knowledge else {
        return Err(NodeError::failed(FAILED));
    };
    let found = knowledge.search(base, context.run.user, query, limits::DEFAULT_PASSAGES).await;
    found.map_err(|error| match error {
        SearchError::UnknownBase(_) | SearchError::OtherModel => {
            NodeError::Failed(error.to_string())
        }
        SearchError::Store(_) => {
            tracing::warn!(knowledge_base = base, %error, "a search failed");
            NodeError::failed(FAILED)
        }
    })
}
