//! Computes the install order.

use std::collections::BTreeMap;

use super::Chosen;

/// Returns all names, each after its dependencies; or a dependency cycle.
pub(super) fn dependencies_first(
    chosen: &BTreeMap<String, Chosen>,
) -> Result<Vec<String>, Vec<String>> {
    let mut order = Vec::with_capacity(chosen.len());
    let mut states: BTreeMap<&str, State> = BTreeMap::new();
    for start in chosen.keys() {
        if states.contains_key(start.as_str()) {
            continue;
        }
        states.insert(start, State::Open);
        // An explicit stack instead of recursion, because dependency chains can be long.
        let mut path = vec![(start.as_str(), needs(chosen, start))];
        while let Some((name, rest)) = path.last_mut() {
            let name = *name;
            let Some(next) = rest.next() else {
                states.insert(name, State::Done);
                order.push(name.to_owned());
                path.pop();
                continue;
            };
            match states.get(next) {
                Some(State::Done) => {}
                Some(State::Open) => {
                    return Err(cycle_names(path.iter().map(|(name, _)| *name), next));
                }
                None => {
                    states.insert(next, State::Open);
                    path.push((next, needs(chosen, next)));
                }
            }
        }
    }
    Ok(order)
}

#[derive(Clone, Copy)]
enum State {
    /// On the current path.
    Open,
    /// In the order, after its dependencies.
    Done,
}

fn needs<'a>(
    chosen: &'a BTreeMap<String, Chosen>,
    name: &str,
) -> Box<dyn Iterator<Item = &'a str> + 'a> {
    match chosen.get(name) {
        Some(entry) => Box::new(entry.needs.iter().map(|need| need.name.as_str())),
        None => Box::new(std::iter::empty()),
    }
}

fn cycle_names<'a>(path: impl Iterator<Item = &'a str>, again: &'a str) -> Vec<String> {
    let names = path.skip_while(|name| *name != again).chain([again]);
    names.map(str::to_owned).collect()
}
