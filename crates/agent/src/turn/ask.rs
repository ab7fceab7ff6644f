//! Sends one request to the model and collects its streamed reply.

use std::{collections::HashSet, panic::AssertUnwindSafe};

use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use savoir_flow::{event::Gone, services::broken};
use savoir_knowledge::chunk::estimate_tokens;
use savoir_model::{ChatRequest, Chunk, Message, ModelError, ToolCall, ToolDefinition, Usage};

use super::{TurnRun, conversation::tokens, limits::Limit};

/// What a model said, as far as it came.
#[derive(Debug, Default)]
pub(super) struct ModelReply {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) error: Option<ModelError>,
    pub(super) limit: Option<Limit>,
}

impl TurnRun<'_> {
    /// Asks, and tells each piece of the answer. Ends as soon as nobody listens or a limit is
    /// reached.
    pub(super) async fn ask(
        &self,
        messages: Vec<Message>,
        tools: Vec<ToolDefinition>,
    ) -> Result<ModelReply, Gone> {
        // What was told so far goes out before the question is put together.
        tokio::task::yield_now().await;
        let failed = |error| ModelReply { error: Some(error), ..ModelReply::default() };
        let asked = input_tokens(&messages, &tools);
        if asked > self.meter.rest_of_tokens() {
            return Ok(ModelReply { limit: Some(self.meter.spent()), ..ModelReply::default() });
        }
        let services = &self.agent.services;
        let choice = match services.models.choose(self.agent.model.as_deref()).await {
            Ok(choice) => choice,
            Err(error) => return Ok(failed(error)),
        };
        let temperature = self.agent.temperature;
        let model = choice.model.clone();
        let request = ChatRequest { model, messages, temperature, max_tokens: None, tools };
        let client = &choice.client;
        // A client that breaks down is a model that fails.
        let stream = std::panic::catch_unwind(AssertUnwindSafe(|| client.answer(request)));
        let Ok(stream) = stream else { return Ok(failed(broken(&choice.provider))) };
        let mut partial = PartialReply { asked, ..PartialReply::default() };
        let told = self.receive(stream, &choice.provider, &mut partial).await;
        self.meter.spend(partial.cost());
        services.note(self.agent.user, &choice.provider, &choice.model, partial.usage).await;
        name_calls(&mut partial.reply.calls);
        told.map(|()| partial.reply)
    }

    /// Hears an answer to its end, or until something ends it.
    async fn receive(
        &self,
        mut stream: BoxStream<'static, Result<Chunk, ModelError>>,
        provider: &str,
        partial: &mut PartialReply,
    ) -> Result<(), Gone> {
        loop {
            let chunk = tokio::select! {
                biased;
                () = self.events.out.gone() => return Err(Gone),
                () = tokio::time::sleep_until(self.meter.deadline()) => {
                    partial.reply.limit = Some(self.meter.late());
                    return Ok(());
                }
                chunk = AssertUnwindSafe(stream.next()).catch_unwind() => {
                    chunk.unwrap_or_else(|_| Some(Err(broken(provider))))
                }
            };
            match chunk {
                Some(Ok(Chunk::Text(text))) => {
                    partial.received += estimate_tokens(&text) as u64;
                    partial.reply.text.push_str(&text);
                    self.events.send_text(&text).await?;
                }
                Some(Ok(Chunk::ToolCall(call))) => {
                    partial.received += estimate_tokens(&call.arguments.to_string()) as u64;
                    partial.reply.calls.push(call);
                }
                Some(Ok(Chunk::Usage(usage))) => partial.usage = Some(usage),
                Some(Ok(Chunk::End(_))) | None => return Ok(()),
                Some(Err(error)) => {
                    partial.reply.error = Some(error);
                    return Ok(());
                }
            }
            // Who never ends is ended.
            if partial.asked + partial.received > self.meter.rest_of_tokens() {
                partial.reply.limit = Some(self.meter.spent());
                return Ok(());
            }
        }
    }
}

/// An answer as it is heard, and what it costs.
#[derive(Debug, Default)]
struct PartialReply {
    reply: ModelReply,
    /// Tokens of the question, by estimate.
    asked: u64,
    /// Tokens of the answer so far, by estimate.
    received: u64,
    /// What the provider tells.
    usage: Option<Usage>,
}

impl PartialReply {
    /// What the provider tells counts; one that tells nothing, or nothing but zeros, is estimated.
    fn cost(&self) -> u64 {
        let told = self.usage.map_or(0, |usage| usage.input.saturating_add(usage.output));
        if told > 0 { told } else { self.asked + self.received }
    }
}

fn input_tokens(messages: &[Message], tools: &[ToolDefinition]) -> u64 {
    let said = messages.iter().map(tokens).sum::<usize>();
    let told = tools.iter().map(|tool| {
        estimate_tokens(&tool.name)
            + estimate_tokens(&tool.description)
            + estimate_tokens(&tool.parameters.to_string())
    });
    (said + told.sum::<usize>()) as u64
}

/// Calls that share a name cannot be answered one by one.
fn name_calls(calls: &mut [ToolCall]) {
    let mut seen = HashSet::new();
    for (place, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() || seen.contains(&call.id) {
            call.id = format!("call_{}_{}", place + 1, uuid::Uuid::now_v7().simple());
        }
        seen.insert(call.id.clone());
    }
}
