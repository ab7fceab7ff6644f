//! Defines a model that returns scripted answers.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use savoir_model::{
    ChatRequest, Chunk, Finish, LanguageModel, Message, ModelError, ToolCall, Usage,
};

/// A scripted answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// This text, then the end.
    Says(&'static [&'static str]),
    /// Calls a tool with these arguments, which are JSON.
    Calls(&'static str, &'static str),
    /// This text, then an error.
    Fails(&'static [&'static str]),
    /// This text, then an invalid chunk.
    Babbles(&'static [&'static str]),
    /// This text, and then the stream stays open without data.
    Hangs(&'static [&'static str]),
    /// This text, then a panic.
    Panics(&'static [&'static str]),
    /// A panic before the stream starts.
    PanicsAtOnce,
}

/// A model that returns scripted answers, and `Hello you` after the last one.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<ChatRequest>>,
    /// The number of answers in progress.
    open: Arc<AtomicUsize>,
}

struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scripted {
    pub(crate) fn new(answers: &[Answer]) -> Arc<Self> {
        let answers = Mutex::new(answers.iter().copied().collect());
        Arc::new(Self { answers, ..Self::default() })
    }

    /// Adds an answer to the script.
    pub(crate) fn next(&self, answer: Answer) {
        self.answers.lock().unwrap().push_back(answer);
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<ChatRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// The system prompt and the last message of the last request.
    pub(crate) fn last(&self) -> (String, String) {
        let request = self.asked().pop().unwrap();
        let text = |message: &Message| match message {
            Message::System(text) | Message::User(text) | Message::Assistant { text, .. } => {
                text.clone()
            }
            Message::Tool { content, .. } => content.clone(),
        };
        (text(request.messages.first().unwrap()), text(request.messages.last().unwrap()))
    }

    /// Waits until this many answers are in progress.
    pub(crate) async fn has_open(&self, count: usize) {
        for _ in 0..500 {
            if self.open.load(Ordering::SeqCst) == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} answers are waited for", self.open.load(Ordering::SeqCst));
    }
}

impl LanguageModel for Scripted {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        let answer = answer.unwrap_or(Answer::Says(&["Hello", " you"]));
        let provider = "stub".to_owned();
        let (words, rest): (_, BoxStream<'_, Result<Chunk, ModelError>>) = match answer {
            Answer::Says(words) => {
                let usage = Chunk::Usage(Usage { input: 7, output: 2 });
                (words, stream::iter([Ok(usage), Ok(Chunk::End(Finish::Stop))]).boxed())
            }
            Answer::Calls(name, arguments) => {
                let (id, name) = ("call-1".to_owned(), name.to_owned());
                let arguments = serde_json::from_str(arguments).unwrap();
                let call = Chunk::ToolCall(ToolCall { id, name, arguments });
                (&[], stream::iter([Ok(call), Ok(Chunk::End(Finish::ToolCalls))]).boxed())
            }
            Answer::Fails(words) => {
                let message = "the secret of the house".to_owned();
                let error = ModelError::Refused { provider, status: 500, message };
                (words, stream::iter([Err(error)]).boxed())
            }
            Answer::Babbles(words) => {
                let message = "expected value at line 1".to_owned();
                (
                    words,
                    stream::iter([Err(ModelError::InvalidResponse { provider, message })]).boxed(),
                )
            }
            Answer::Hangs(words) => (words, stream::pending().boxed()),
            Answer::Panics(words) => {
                (words, stream::once(async { panic!("the model broke down") }).boxed())
            }
            Answer::PanicsAtOnce => panic!("there is no model"),
        };
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(Arc::clone(&self.open));
        let words = stream::iter(words.iter().map(|word| Ok(Chunk::Text((*word).to_owned()))));
        let all = words.chain(rest);
        all.inspect(move |_| {
            let _ = &open;
        })
        .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        async { Ok(vec!["stub-1".to_owned()]) }.boxed()
    }
}
