//! Reads PDFs in a separate process in the sandbox.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use savoir_sandbox::{
    CountedMemory, KillHandle, Limits, PathGrant, Policy, Process, ProcessEnd, Sandbox,
    SandboxError, Stream,
};

use super::{ExtractError, PdfFault, pdf::PdfMethod};
use crate::limits;

/// A program that reads PDFs with [`child_main`](super::child_main).
///
/// The process can read only the files that it needs to start. It has no network, and limited
/// memory and time.
#[derive(Clone, Debug)]
pub struct Isolated {
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
}

/// The result of one attempt.
enum Reading {
    Answered(Result<String, PdfFault>),
    BrokeOff,
}

impl Isolated {
    /// Returns the text of a PDF. Kills the process if the future is dropped.
    pub async fn extract(&self, bytes: Bytes) -> Result<String, ExtractError> {
        let first = self.read(PdfMethod::Layout, bytes.clone()).await?;
        // A PDF that fails with one method may work with the other.
        let text = match first {
            Reading::Answered(Ok(text)) => Ok(text),
            Reading::Answered(Err(fault @ (PdfFault::Encrypted | PdfFault::TooSlow))) => Err(fault),
            Reading::Answered(Err(fault)) => match self.read(PdfMethod::Order, bytes).await? {
                Reading::Answered(Ok(text)) => Ok(text),
                _ => Err(fault),
            },
            Reading::BrokeOff => match self.read(PdfMethod::Order, bytes).await? {
                Reading::Answered(answer) => answer,
                Reading::BrokeOff => Err(PdfFault::BrokeOff),
            },
        };
        Ok(text?)
    }

    async fn read(&self, method: PdfMethod, bytes: Bytes) -> Result<Reading, ExtractError> {
        let stop = StopOnDrop::default();
        let (isolated, stopped) = (self.clone(), Arc::clone(&stop.0));
        let read = tokio::task::spawn_blocking(move || isolated.run(method, &bytes, &stopped));
        read.await.unwrap_or(Ok(Reading::BrokeOff))
    }

    fn run(
        &self,
        method: PdfMethod,
        bytes: &[u8],
        stop: &Mutex<Stop>,
    ) -> Result<Reading, ExtractError> {
        let refuse = |error: SandboxError| ExtractError::PdfUnsupported(error.to_string());
        let sandbox = Sandbox::new(self.policy()).map_err(refuse)?;
        let process = sandbox.start(&self.program, &self.arguments).map_err(refuse)?;
        if !hand_over(&process, stop) {
            process.stop();
            return Ok(Reading::BrokeOff);
        }
        let method = serde_json::to_vec(&method).unwrap_or_default();
        let input = [&method, &b"\n"[..], bytes].concat();
        let (mut output, mut complaint) = (Vec::new(), Vec::new());
        let outcome = process.communicate(&input, |stream, bytes| match stream {
            Stream::Output => output.extend_from_slice(bytes),
            Stream::Error => complaint.extend_from_slice(bytes),
        });
        let answer = match outcome.end {
            ProcessEnd::Exited(0) => serde_json::from_slice(&output).ok(),
            ProcessEnd::TimedOut => Some(Err(PdfFault::TooSlow)),
            ProcessEnd::TooMuchOutput => return Err(ExtractError::TooMuchText),
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
            // The working directory, an empty folder.
            paths: vec![PathGrant::scratch("/tmp")],
            programs: vec![self.program.clone()],
            directory: "/tmp".into(),
            limits: Limits {
                wall: Some(limits::PDF_TIMEOUT),
                cpu: Some(limits::PDF_TIMEOUT.as_secs()),
                memory: limits::MAX_PDF_MEMORY_BYTES,
                // The threads of the runtime reserve much more address space than they use.
                counted_memory: CountedMemory::Data,
                processes: limits::MAX_PDF_THREADS,
                file_size: 0,
                scratch: 1 << 20,
                output: limits::MAX_DOCUMENT_TEXT_BYTES as u64,
                ..Limits::default()
            },
            ..Policy::default()
        }
    }
}

/// Kills the process when its result is no longer needed.
#[derive(Debug, Default)]
enum Stop {
    #[default]
    NotStarted,
    Running(KillHandle),
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

/// Allows another thread to kill the process; returns false if it should stop already.
fn hand_over(process: &Process, stop: &Mutex<Stop>) -> bool {
    let mut stop = stop.lock().unwrap_or_else(PoisonError::into_inner);
    match (&*stop, process.kill_handle()) {
        (Stop::Wanted, _) => false,
        (_, killer) => {
            *stop = killer.map_or(Stop::NotStarted, Stop::Running);
            true
        }
    }
}
