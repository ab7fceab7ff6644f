//! Searches a knowledge base and puts the passages into the prompt.

use savoir_knowledge::{Passage, limits::DEFAULT_PASSAGES};
use serde_json::{Value, json};

use crate::{
    event::{CitedSource, Emitter, Event, ListenerDisconnected, Thought},
    services::Services,
};

/// The start of the system message.
const ASSISTANT: &str = "You are a helpful AI assistant.";

/// Maximum passages in a prompt.
const PASSAGES_IN_PROMPT: usize = 3;

/// Maximum characters of a passage that are shown.
const SHOWN_CHARS: usize = 200;

/// A search in a knowledge base.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The knowledge base, by id or name.
    pub base: &'a str,
    pub query: &'a str,
    /// The user who searches.
    pub user: Option<i64>,
}

impl Search<'_> {
    /// A step of the search.
    pub fn thought(&self, status: &'static str) -> Thought {
        Thought::new("retrieval", status).with("kb_id", self.base)
    }

    /// Searches passages and emits events: the thought that `thought` builds for each step, then
    /// all results as sources. A failed search returns no passages.
    pub async fn search_and_emit(
        &self,
        services: &Services,
        thought: impl Fn(&'static str) -> Thought,
        out: &Emitter,
    ) -> Result<Vec<Passage>, ListenerDisconnected> {
        out.emit(thought("start")).await?;
        out.emit(thought("searching")).await?;
        match self.find(services).await {
            Ok(passages) => {
                out.emit(complete(thought("complete"), &passages)).await?;
                if !passages.is_empty() {
                    out.emit(citation(&passages)).await?;
                }
                Ok(passages)
            }
            Err(error) => {
                tracing::warn!(knowledge_base = self.base, error, "a search failed");
                out.emit(thought("error").with("error", "Retrieval failed")).await?;
                Ok(Vec::new())
            }
        }
    }

    async fn find(&self, services: &Services) -> Result<Vec<Passage>, String> {
        let knowledge = services.knowledge.as_ref().ok_or("there is no knowledge here")?;
        let found = knowledge.search(self.base, self.user, self.query, DEFAULT_PASSAGES).await;
        found.map_err(|error| error.to_string())
    }
}

fn complete(thought: Thought, passages: &[Passage]) -> Thought {
    let top = passages.iter().take(PASSAGES_IN_PROMPT).map(|passage| {
        json!({"text": shown(&passage.text), "doc_id": passage.doc_id, "score": passage.score})
    });
    let top: Vec<Value> = top.collect();
    thought.with("results_count", passages.len()).with("top_results", top)
}

fn citation(passages: &[Passage]) -> Event {
    let sources = passages.iter().map(|passage| CitedSource {
        doc_id: passage.doc_id.clone(),
        chunk_index: passage.chunk_index,
        score: passage.score,
        text: shown(&passage.text),
    });
    Event::Citation { node: None, sources: sources.collect() }
}

/// Builds the system message with the passages.
pub fn system_message(passages: &[Passage]) -> String {
    if passages.is_empty() {
        return ASSISTANT.to_owned();
    }
    format!(
        "{ASSISTANT}\n\nAnswer the user's request based on the provided context. If the context \
         doesn't contain relevant information, say so clearly.\n\nContext:\n{}",
        numbered(passages)
    )
}

/// Formats the best passages, numbered and separated by blank lines.
pub fn numbered(passages: &[Passage]) -> String {
    let best = passages.iter().take(PASSAGES_IN_PROMPT).enumerate();
    let best = best.map(|(at, passage)| format!("[{}] {}", at + 1, passage.text));
    best.collect::<Vec<_>>().join("\n\n")
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
