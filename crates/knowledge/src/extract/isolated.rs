//! PDFs are read by a program of their own, in the sandbox.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use savoir_sandbox::{
    Counted, End, Killer, Limits, PathGrant, Policy, Process, Sandbox, SandboxError, Stream,
};

use super::{ExtractError, PdfFault, pdf::Way};
use crate::limits;

/// A program that reads PDFs as [`child_main`](super::child_main) does.
///
/// It sees no file but what it needs to start, speaks to nobody, and has little memory and time.
#[derive(Clone, Debug)]
pub struct Isolated {
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// What comes after its name.
    pub arguments: Vec<String>,
}

/// How one reading ended.
enum Reading {
    Answered(Result<String, PdfFault>),
    BrokeOff,
}

impl Isolated {
    /// The text of a PDF. Ends the program when the future is dropped.
    pub async fn extract(&self, bytes: Bytes) -> Result<String, ExtractError> {
        let first = self.read(Way::Layout, bytes.clone()).await?;
        // What ends the one way may be nothing to the other.
        let text = match first {
            Reading::Answered(Ok(text)) => Ok(text),
            Reading::Answered(Err(fault @ (PdfFault::Encrypted | PdfFault::TooSlow))) => Err(fault),
            Reading::Answered(Err(fault)) => match self.read(Way::Order, bytes).await? {
                Reading::Answered(Ok(text)) => Ok(text),
                _ => Err(fault),
            },
            Reading::BrokeOff => match self.read(Way::Order, bytes).await? {
                Reading::Answered(answer) => answer,
                Reading::BrokeOff => Err(PdfFault::BrokeOff),
            },
        };
        Ok(text?)
    }

    async fn read(&self, way: Way, bytes: Bytes) -> Result<Reading, ExtractError> {
        let stop = StopOnDrop::default();
        let (isolated, stopped) = (self.clone(), Arc::clone(&stop.0));
        let read = tokio::task::spawn_blocking(move || isolated.run(way, &bytes, &stopped));
        read.await.unwrap_or(Ok(Reading::BrokeOff))
    }

    fn run(&self, way: Way, bytes: &[u8], stop: &Mutex<Stop>) -> Result<Reading, ExtractError> {
        let refuse = |error: SandboxError| ExtractError::PdfUnsupported(error.to_string());
        let sandbox = Sandbox::new(self.policy()).map_err(refuse)?;
        let process = sandbox.start(&self.program, &self.arguments).map_err(refuse)?;
        if !hand_over(&process, stop) {
            process.stop();
            return Ok(Reading::BrokeOff);
        }
        let way = serde_json::to_vec(&way).unwrap_or_default();
        let input = [&way, &b"\n"[..], bytes].concat();
        let (mut output, mut complaint) = (Vec::new(), Vec::new());
        let outcome = process.drive(&input, |stream, bytes| match stream {
            Stream::Output => output.extend_from_slice(bytes),
            Stream::Error => complaint.extend_from_slice(bytes),
        });
        let answer = match outcome.end {
            End::Exited(0) => serde_json::from_slice(&output).ok(),
            End::TimedOut => Some(Err(PdfFault::TooSlow)),
            End::TooMuchOutput => return Err(ExtractError::TooMuchText),
            _ => None,
        };
        Ok(answer.map_or_else(
            || {
                let complaint = String::from_utf8_lossy(&complaint);
                let line = complaint.lines().find(|line| !line.is_empty()).unwrap_or_default();
                tracing::debug!(end = ?outcome.end, line, "a PDF broke off its reader");
                Reading::BrokeOff
            },
            Reading::Answered,
        ))
    }

    fn policy(&self) -> Policy {
        Policy {
            // A run must start somewhere; this is empty.
            paths: vec![PathGrant::private("/tmp")],
            programs: vec![self.program.clone()],
            directory: "/tmp".into(),
            limits: Limits {
                wall: Some(limits::PDF_TIME),
                cpu: Some(limits::PDF_TIME.as_secs()),
                memory: limits::PDF_MEMORY,
                // Threads of a runtime reserve far more addresses than they use.
                counted: Counted::Data,
                processes: limits::PDF_THREADS,
                file_size: 0,
                scratch: 1 << 20,
                output: limits::DOCUMENT_TEXT as u64,
                ..Limits::default()
            },
            ..Policy::default()
        }
    }
}

/// What ends a program whose text nobody waits for any more.
#[derive(Debug, Default)]
enum Stop {
    #[default]
    NotStarted,
    Running(Killer),
    Wanted,
}

#[derive(Debug, Default)]
struct StopOnDrop(Arc<Mutex<Stop>>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let mut stop = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Stop::Running(killer) = std::mem::replace(&mut *stop, Stop::Wanted) {
            killer.kill();
        }
    }
}

/// Lets a program be ended from elsewhere; false if it should end already.
fn hand_over(process: &Process, stop: &Mutex<Stop>) -> bool {
    let mut stop = stop.lock().unwrap_or_else(PoisonError::into_inner);
    match (&*stop, process.killer()) {
        (Stop::Wanted, _) => false,
        (_, killer) => {
            *stop = killer.map_or(Stop::NotStarted, Stop::Running);
            true
        }
    }
}
