//! How much is published at once: an upload takes memory, and vetting it takes time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Uploads at once, of everybody.
const MOST: usize = 32;
/// Uploads at once, of one person.
const MOST_OF_ONE: usize = 8;
/// Packages that are vetted at once; the others wait.
const MOST_VETTED: usize = 2;

#[derive(Debug)]
pub(crate) struct Gate {
    inside: Arc<Mutex<HashMap<i64, usize>>>,
    vetting: Arc<Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { inside: Arc::default(), vetting: Arc::new(Semaphore::new(MOST_VETTED)) }
    }
}

/// A place at the gate, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    inside: Arc<Mutex<HashMap<i64, usize>>>,
    user: i64,
}

impl Gate {
    /// A place for somebody's upload, if there is one.
    pub(crate) fn enter(&self, user: i64) -> Option<Pass> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = inside.values().sum();
        let own = inside.get(&user).copied().unwrap_or_default();
        if all >= MOST || own >= MOST_OF_ONE {
            return None;
        }
        inside.insert(user, own + 1);
        Some(Pass { inside: Arc::clone(&self.inside), user })
    }

    /// Waits for one's turn to be vetted.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.vetting).acquire_owned().await.ok()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = inside.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                inside.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_places() {
        let gate = Gate::default();
        let mine: Vec<Pass> = std::iter::from_fn(|| gate.enter(1)).collect();
        assert_eq!(mine.len(), MOST_OF_ONE);
        let others: Vec<Pass> = (2..100).filter_map(|user| gate.enter(user)).collect();
        assert_eq!(mine.len() + others.len(), MOST);
        drop(mine);
        assert!(gate.enter(1).is_some());
        drop(others);
        assert!(gate.inside.lock().unwrap().is_empty());
    }
}
