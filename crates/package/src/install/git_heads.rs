//! Looks up the current commits of many git repositories, each with one request.

use std::{collections::BTreeMap, future::Future};

use futures::{StreamExt as _, stream};

use crate::{
    limits::MAX_ASKED_AT_ONCE,
    source::{Fetcher, GitUrl, HeadQuery, SkillHead},
};

/// A query about one skill of a repository.
pub(super) struct RepositoryQuery {
    pub(super) url: GitUrl,
    pub(super) asked: HeadQuery,
}

/// Returns the answers in the order of the queries. A failed query does not affect the others.
pub(super) async fn look_up_heads(
    fetcher: &Fetcher,
    questions: &[RepositoryQuery],
) -> Vec<Result<SkillHead, String>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, question) in questions.iter().enumerate() {
        groups.entry(question.url.as_str()).or_default().push(at);
    }
    let groups =
        stream::iter(groups.into_values().map(|group| look_up_one(fetcher, questions, group)));
    let found: Vec<_> = groups.buffer_unordered(MAX_ASKED_AT_ONCE).collect().await;
    let mut answers: Vec<_> = found.into_iter().flatten().collect();
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Processes groups in parallel, but the items of one group one after the other, because a cached
/// repository can only be used by one task at a time. Returns the results in the order of the
/// items.
pub(super) async fn run_grouped<K: Ord, T, R, F: Future<Output = R>>(
    things: impl IntoIterator<Item = (K, T)>,
    work: impl Fn(T) -> F,
) -> Vec<R> {
    let mut groups: BTreeMap<K, Vec<(usize, T)>> = BTreeMap::new();
    for (at, (key, thing)) in things.into_iter().enumerate() {
        groups.entry(key).or_default().push((at, thing));
    }
    let work = &work;
    let groups = groups.into_values().map(|group| async move {
        let mut done = Vec::with_capacity(group.len());
        for (at, thing) in group {
            done.push((at, work(thing).await));
        }
        done
    });
    let done = stream::iter(groups).buffer_unordered(MAX_ASKED_AT_ONCE).collect::<Vec<_>>().await;
    let mut done: Vec<(usize, R)> = done.into_iter().flatten().collect();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

async fn look_up_one(
    fetcher: &Fetcher,
    questions: &[RepositoryQuery],
    group: Vec<usize>,
) -> Vec<(usize, Result<SkillHead, String>)> {
    let Some(url) = group.first().map(|at| &questions[*at].url) else { return Vec::new() };
    let asked: Vec<HeadQuery> = group.iter().map(|at| questions[*at].asked.clone()).collect();
    match fetcher.heads(url, &asked).await {
        Ok(heads) => {
            let heads = heads.into_iter().map(|head| head.map_err(|error| error.to_string()));
            group.into_iter().zip(heads).collect()
        }
        Err(error) => {
            let error = error.to_string();
            group.into_iter().map(|at| (at, Err(error.clone()))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, time::Duration};

    use super::*;

    #[tokio::test]
    async fn requests_per_key_run_in_order() {
        let busy = RefCell::new(BTreeMap::new());
        let things = (0..40).map(|n| (n % 3, (n % 3, n)));
        let done = run_grouped(things, |(key, n)| {
            let busy = &busy;
            async move {
                assert_eq!(busy.borrow_mut().insert(key, n), None, "somebody is at work");
                tokio::time::sleep(Duration::from_millis(u64::from(n % 4 == 0))).await;
                busy.borrow_mut().remove(&key);
                n
            }
        });
        assert_eq!(done.await, (0..40).collect::<Vec<u32>>());
    }
}
