//! A node that searches a knowledge base.

use savoir_knowledge::{Passage, SearchError, limits};

use super::{Done, Given, Stop};
use crate::{
    event::{Emitter, Thought},
    prompt::first_chars,
    retrieval::numbered,
};

/// What clients are told when they can do nothing about it.
const FAILED: &str = "Retrieval failed";

pub(super) async fn perform(
    base: Option<&str>,
    given: &Given<'_>,
    out: &Emitter,
) -> Result<Done, Stop> {
    let base = base.ok_or_else(|| Stop::failed("Knowledge base not configured"))?;
    let input = given.input_text();
    let query = first_chars(&input, limits::QUERY_CHARS);
    let thought = |status| Thought::new("retrieval", status).with("node_id", given.id);
    out.emit(thought("start").with("kb_id", base).with("query", query)).await?;
    let passages = search(base, query, given).await?;
    out.emit(thought("complete").with("results_count", passages.len())).await?;
    Ok(Done { output: numbered(&passages).into(), ..Done::default() })
}

async fn search(base: &str, query: &str, given: &Given<'_>) -> Result<Vec<Passage>, Stop> {
    let Some(knowledge) = &given.host.services.knowledge else {
        return Err(Stop::failed(FAILED));
    };
    let found = knowledge.search(base, given.run.user, query, limits::PASSAGES).await;
    found.map_err(|error| match error {
        SearchError::UnknownBase(_) | SearchError::OtherModel => Stop::Failed(error.to_string()),
        SearchError::Store(_) => {
            tracing::warn!(knowledge_base = base, %error, "a search failed");
            Stop::failed(FAILED)
        }
    })
}
