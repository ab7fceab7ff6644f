//! Limits the bytes of documents that wait to be indexed.
//!
//! The writer of tantivy queues ten thousand documents, of any size. This queue counts bytes, so
//! that indexing many long skills does not need memory for all of them.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use tantivy::{Document, TantivyDocument};

/// Maximum bytes of queued documents.
const MAX_WAITING_BYTES: usize = 8_000_000;
/// How long one document waits for room. After that the writer has failed, and reports it for the
/// next document.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// Counts the bytes of queued documents.
#[derive(Clone, Debug, Default)]
pub(super) struct DocumentQueue(Arc<(Mutex<usize>, Condvar)>);

/// A queued document. Dropping it frees its bytes in the queue.
#[derive(Debug)]
pub(super) struct QueuedDocument {
    document: TantivyDocument,
    bytes: usize,
    queue: DocumentQueue,
}

impl DocumentQueue {
    /// Waits until there is room for a document. A document that is larger than the whole queue
    /// waits until the queue is empty.
    pub(super) fn enter(&self, document: TantivyDocument, bytes: usize) -> QueuedDocument {
        let (waiting, freed) = &*self.0;
        let used = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |used: &mut usize| *used > 0 && *used + bytes > MAX_WAITING_BYTES;
        let waited = freed.wait_timeout_while(used, QUEUE_TIMEOUT, full);
        let (mut used, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *used += bytes;
        QueuedDocument { document, bytes, queue: self.clone() }
    }
}

impl Drop for QueuedDocument {
    fn drop(&mut self) {
        let (waiting, freed) = &*self.queue.0;
        *waiting.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        freed.notify_all();
    }
}

impl Document for QueuedDocument {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn document_waits_for_queue_space() {
        let queue = DocumentQueue::default();
        let first = queue.enter(TantivyDocument::new(), MAX_WAITING_BYTES - 1);
        let small = queue.enter(TantivyDocument::new(), 1);
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let huge = queue.enter(TantivyDocument::new(), 2 * MAX_WAITING_BYTES);
                sender.send(()).unwrap();
                drop(huge);
            });
            receiver.recv_timeout(Duration::from_millis(50)).unwrap_err();
            drop((first, small));
            receiver.recv_timeout(QUEUE_TIMEOUT).unwrap();
        });
        assert_eq!(*queue.0.0.lock().unwrap(), 0);
    }
}
