//! Sends one request to the model and collects its streamed reply.

use std::{collections::HashSet, panic::AssertUnwindSafe, time::Instant};

use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use savoir_flow::{
    event::{ListenerDisconnected, ModelCall},
    services::{broken, explain},
};
use savoir_knowledge::chunk::estimate_tokens;
use savoir_model::{
    ChatRequest, Chunk, Finish, Message, ModelError, ToolCall, ToolDefinition, Usage,
};

use super::{TurnRun, conversation::message_tokens, limits::Limit};

/// The part of a reply that was received.
#[derive(Debug, Default)]
pub(super) struct ModelReply {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) error: Option<ModelError>,
    pub(super) limit: Option<Limit>,
}

impl TurnRun<'_> {
    /// Asks the model and emits each piece of the answer. Ends when the listener is gone or a limit is
    /// reached.
    pub(super) async fn ask(
        &self,
        messages: Vec<Message>,
        tools: Vec<ToolDefinition>,
    ) -> Result<ModelReply, ListenerDisconnected> {
        // Earlier events are sent before the request is built.
        tokio::task::yield_now().await;
        let failed = |error| ModelReply { error: Some(error), ..ModelReply::default() };
        let input_tokens_sent = input_tokens(&messages, &tools);
        if input_tokens_sent > self.meter.remaining_tokens() {
            return Ok(ModelReply {
                limit: Some(self.meter.used_tokens()),
                ..ModelReply::default()
            });
        }
        let services = &self.agent.services;
        let choice = match services.models.choose(self.agent.model.as_deref()).await {
            Ok(choice) => choice,
            Err(error) => {
                let model = self.agent.model.as_deref();
                self.events.out.note_model_call(ModelCall::unsent(model, &error));
                return Ok(failed(error));
            }
        };
        let (temperature, max_tokens) = (self.agent.temperature, self.agent.max_tokens);
        let model = choice.model.clone();
        let request = ChatRequest { model, messages, temperature, max_tokens, tools };
        let client = &choice.client;
        // A panic in the client counts as a failure of the model.
        let stream = std::panic::catch_unwind(AssertUnwindSafe(|| client.answer(request)));
        let Ok(stream) = stream else { return Ok(failed(broken(&choice.provider))) };
        let mut partial = PartialReply { input_tokens_sent, ..PartialReply::default() };
        let began = Instant::now();
        let received = self.receive(stream, &choice.provider, &mut partial).await;
        // Providers report the usage at the end, which a stopped answer does not reach.
        let is_estimate = received.is_err() && partial.finish.is_none();
        if is_estimate {
            let reported = partial.usage.unwrap_or_default();
            partial.usage = Some(Usage {
                input: reported.input.max(partial.input_tokens_sent),
                output: reported.output.max(partial.received),
            });
        }
        self.events.out.note_model_call(ModelCall {
            node: None,
            model: format!("{}:{}", choice.provider, choice.model),
            usage: partial.usage,
            is_estimate,
            finish: partial.finish,
            error: partial.reply.error.as_ref().map(explain),
            duration: began.elapsed(),
        });
        self.meter.add_tokens(partial.cost());
        services.note(self.agent.user, &choice.provider, &choice.model, partial.usage).await;
        assign_call_ids(&mut partial.reply.calls);
        received.map(|()| partial.reply)
    }

    /// Receives an answer until its end, a limit, or a disconnected client.
    async fn receive(
        &self,
        mut stream: BoxStream<'static, Result<Chunk, ModelError>>,
        provider: &str,
        partial: &mut PartialReply,
    ) -> Result<(), ListenerDisconnected> {
        loop {
            let chunk = tokio::select! {
                biased;
                () = self.events.out.gone() => return Err(ListenerDisconnected),
                () = tokio::time::sleep_until(self.meter.deadline()) => {
                    partial.reply.limit = Some(self.meter.is_past_deadline());
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
                Some(Ok(Chunk::End(end))) => {
                    partial.finish = Some(end);
                    return Ok(());
                }
                None => return Ok(()),
                Some(Err(error)) => {
                    partial.reply.error = Some(error);
                    return Ok(());
                }
            }
            // Stops an answer that uses up the remaining tokens.
            if partial.input_tokens_sent + partial.received > self.meter.remaining_tokens() {
                partial.reply.limit = Some(self.meter.used_tokens());
                return Ok(());
            }
        }
    }
}

/// The part of an answer that was received so far, and its cost.
#[derive(Debug, Default)]
struct PartialReply {
    reply: ModelReply,
    /// The estimated tokens of the request.
    input_tokens_sent: u64,
    /// The estimated tokens of the answer so far.
    received: u64,
    /// The usage that the provider reports.
    usage: Option<Usage>,
    finish: Option<Finish>,
}

impl PartialReply {
    /// The usage that the provider reports, or an estimate if it reports nothing or only zeros.
    fn cost(&self) -> u64 {
        let reported = self.usage.map_or(0, |usage| usage.input.saturating_add(usage.output));
        if reported > 0 { reported } else { self.input_tokens_sent + self.received }
    }
}

fn input_tokens(messages: &[Message], tools: &[ToolDefinition]) -> u64 {
    let message_total = messages.iter().map(message_tokens).sum::<usize>();
    let tool_tokens = tools.iter().map(|tool| {
        estimate_tokens(&tool.name)
            + estimate_tokens(&tool.description)
            + estimate_tokens(&tool.parameters.to_string())
    });
    (message_total + tool_tokens.sum::<usize>()) as u64
}

/// Gives every call its own ID: calls with the same ID could not be answered one by one.
fn assign_call_ids(calls: &mut [ToolCall]) {
    let mut seen = HashSet::new();
    for (index, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() || seen.contains(&call.id) {
            call.id = format!("call_{}_{}", index + 1, uuid::Uuid::now_v7().simple());
        }
        seen.insert(call.id.clone());
    }
}
