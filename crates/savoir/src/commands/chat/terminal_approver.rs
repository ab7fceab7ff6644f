//! The user at the terminal, who types messages and answers questions.
//!
//! One thread reads all lines, so that a cancelled question does not consume the next line.

use std::{
    io::{self, BufRead as _, Write as _},
    sync::Arc,
    thread,
};

use futures::future::BoxFuture;
use savoir_agent::consent::{Asker, Consent, HostQuestion};
use savoir_engine::approval::{ApprovalQuestion, QuestionLine};
use tokio::sync::{Mutex, mpsc};

use crate::{ask, output};

/// How often a question is repeated after an invalid answer.
const MAX_ATTEMPTS: usize = 3;

/// Lines that the user types.
#[derive(Debug)]
pub(super) struct InputLines(Mutex<mpsc::Receiver<String>>);

impl InputLines {
    /// Reads lines of standard input when they are requested.
    pub(super) fn of_terminal() -> Self {
        let (sender, receiver) = mpsc::channel(1);
        // The thread ends with the program.
        thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if sender.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Self(Mutex::new(receiver))
    }

    /// Prints the prompt and waits for the next line; `None` at the end of input. Ctrl-C prints the
    /// prompt again.
    pub(super) async fn ask(&self, prompt: &str) -> Option<String> {
        loop {
            show(prompt);
            let mut lines = self.0.lock().await;
            tokio::select! {
                line = lines.recv() => {
                    if line.is_none() {
                        show("\n");
                    }
                    return line;
                }
                _ = tokio::signal::ctrl_c() => output::note("(type /quit to quit)"),
            }
        }
    }

    async fn answer(&self, prompt: &str) -> Option<String> {
        show(prompt);
        self.0.lock().await.recv().await
    }
}

fn show(text: &str) {
    let mut err = io::stderr().lock();
    // If standard error is closed, nobody can read the question.
    let _ = write!(err, "{text}").and_then(|()| err.flush());
}

/// Asks the user before something runs. Without a terminal, nobody is asked.
#[derive(Debug)]
pub(super) struct TerminalApprover {
    lines: Option<Arc<InputLines>>,
    /// One question at a time.
    turn: Mutex<()>,
}

impl TerminalApprover {
    pub(super) fn at(lines: Arc<InputLines>) -> Self {
        let lines = ask::is_interactive().then_some(lines);
        Self { lines, turn: Mutex::new(()) }
    }

    /// Asks on standard input and error, if they are a terminal.
    pub(super) fn of_terminal() -> Self {
        let lines = ask::is_interactive().then(|| Arc::new(InputLines::of_terminal()));
        Self { lines, turn: Mutex::new(()) }
    }

    async fn decide(&self, lines: Vec<QuestionLine>, question: &str) -> Consent {
        let Some(typed) = &self.lines else { return Consent::Nobody };
        let _turn = self.turn.lock().await;
        // Lets the printer show earlier events before the question.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        let shown = ask::show_lines(&mut anstream::stderr(), lines);
        if shown.is_err() {
            return Consent::Nobody;
        }
        for _ in 0..MAX_ATTEMPTS {
            let Some(line) = typed.answer(question).await else { return Consent::Declined };
            match ask::Choices::OnceOrAlways.answer(&line) {
                Some(ask::Answer::Once) => return Consent::Once,
                Some(ask::Answer::Always) => return Consent::Always,
                Some(ask::Answer::No) => return Consent::Declined,
                None => {}
            }
        }
        Consent::Declined
    }
}

impl Asker for TerminalApprover {
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        let words = ask::Choices::OnceOrAlways.question();
        Box::pin(self.decide(question.lines(), words))
    }

    fn ask_host<'a>(&'a self, question: &'a HostQuestion) -> BoxFuture<'a, Consent> {
        let words = "Do it? [y]es once, [a]lways in this conversation, [N]o: ";
        Box::pin(self.decide(question.lines(), words))
    }
}
