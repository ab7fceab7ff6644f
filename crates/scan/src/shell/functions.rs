//! Tracks the arguments of shell functions and the items of loops. Both can become part of an
//! address.

use std::{collections::HashMap, rc::Rc};

use savoir_skill::Span;

use super::{
    FETCHERS, ShellReader,
    expansion::MAX_WORD_BYTES,
    program,
    programs::path_taint,
    tokens::{Command, Word},
};
use crate::{action::Taint, host};

/// Maximum number of different calls of one function that are followed, and of commands that are
/// read again for them. Reaching a limit is recorded.
const MAX_CALLS: usize = 256;
const MAX_REPEATS: usize = 4_000;

/// Maximum number of arguments of a call. Reaching the limit is recorded.
const MAX_ARGUMENTS: usize = 64;

/// What there is too much of if an argument does not fit into a word.
const TOO_LONG: &str = "longer arguments than are inserted";

/// Value of `calling` while a command is read again for a loop item instead of a call.
const LOOP_ITEM: usize = usize::MAX;

#[derive(Clone, Default)]
pub(crate) struct ShellFunction {
    /// The file that defines the function.
    pub(super) home: Option<Rc<str>>,
    argument_taints: Vec<Taint>,
    /// Taint of the standard input of the function.
    pub(super) input: Taint,
    pub(super) prints: Taint,
    /// Calls that have an address among their arguments: the words and their taint.
    calls: Vec<(Vec<String>, Vec<Taint>)>,
    known: HashMap<Vec<String>, usize>,
    is_cut: bool,
}

impl ShellFunction {
    pub(super) fn of(home: &Rc<str>) -> Self {
        Self { home: Some(Rc::clone(home)), ..Self::default() }
    }

    /// Stores a call and returns whether it is new.
    fn add_call(&mut self, texts: Vec<String>, taints: Vec<Taint>) -> bool {
        if let Some((_, before)) = self.known.get(&texts).and_then(|at| self.calls.get_mut(*at)) {
            before.iter_mut().zip(&taints).for_each(|(before, taint)| before.add(taint));
        } else if self.calls.len() < MAX_CALLS {
            self.known.insert(texts.clone(), self.calls.len());
            self.calls.push((texts, taints));
            return true;
        } else {
            self.is_cut = true;
        }
        false
    }
}

/// Whether a variable is an argument of the function or the script: `$1`, `$@`.
pub(super) fn is_argument(name: &str) -> bool {
    name == "@" || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_address(text: &str) -> bool {
    text.contains("://") || text.contains('.') && host::host_of_url(text).is_some()
}

impl ShellReader {
    /// Records a call of a function that is defined in the script.
    pub(super) fn record_function_call(
        &mut self,
        name: &str,
        arguments: &[Word],
        flow: &Taint,
        span: Span,
    ) -> Taint {
        if !self.functions.contains_key(name) {
            return Taint::default();
        }
        if arguments.len() > MAX_ARGUMENTS {
            self.actions.cut("more arguments of a call than are tracked", span);
        }
        let mut taints = Vec::new();
        for word in arguments.iter().take(MAX_ARGUMENTS) {
            let mut taint = self.word_taint(word, span);
            taint.add(&path_taint(&word.text));
            taints.push(taint);
        }
        let Some(function) = self.functions.get_mut(name) else { return Taint::default() };
        for (index, own) in taints.iter().enumerate() {
            let mut taint = own.clone();
            taint.add(flow);
            match function.argument_taints.get_mut(index) {
                Some(before) => before.add(&taint),
                None => function.argument_taints.push(taint),
            }
        }
        function.input.add(flow);
        let prints = function.prints.clone();
        if arguments.iter().any(|word| is_address(&word.text)) {
            let texts = arguments.iter().take(MAX_ARGUMENTS).map(|word| word.text.clone());
            self.is_new |= function.add_call(texts.collect(), taints);
        }
        prints
    }

    /// Returns the taint of `$1` or `$@` in the body of the current function.
    pub(super) fn argument_taint(&self, variable: &str) -> Option<Taint> {
        let function = self.functions.get(self.function.as_ref()?)?;
        let call = self.calling.and_then(|at| function.calls.get(at));
        let argument_taints = call.map_or(&function.argument_taints, |(_, taints)| taints);
        if variable == "@" {
            let mut all = Taint::default();
            for taint in argument_taints {
                all.add(taint);
            }
            return Some(all);
        }
        let index: usize = variable.parse().ok()?;
        argument_taints.get(index.checked_sub(1)?).cloned()
    }

    /// Reads a network command again for each call of the enclosing function and for each item of
    /// the loop, because `$1` or the loop variable may be part of the address.
    pub(super) fn read_again_per_call(&mut self, command: &Command, span: Span, flow: &Taint) {
        if self.calling.is_some() {
            return;
        }
        let Some((name, arguments)) = program(command) else { return };
        if !FETCHERS.contains(&name.as_str()) && !self.functions.contains_key(name.as_str()) {
            return;
        }
        let variables = || arguments.iter().flat_map(|word| &word.variables);
        if let Some(name) = variables().find(|name| self.loops.contains_key(*name)) {
            let items = self.loops.get(name).cloned().unwrap_or_default();
            for item in items.iter().filter(|item| is_address(item)) {
                let mut one = command.clone();
                for word in one.words.iter_mut().filter(|word| word.variables.contains(name)) {
                    if !replace_name(&mut word.text, &format!("${name}"), item) {
                        self.actions.cut(TOO_LONG, span);
                    }
                }
                self.read_again_for_call(&one, LOOP_ITEM, span, flow);
            }
        }
        if !variables().any(|name| is_argument(name)) {
            return;
        }
        let Some(function) = self.function.as_ref().and_then(|name| self.functions.get(name))
        else {
            return;
        };
        if function.is_cut {
            self.actions.cut("more calls of a function than are followed", span);
        }
        let left = MAX_REPEATS.saturating_sub(self.repeats) + 1;
        let calls: Vec<Vec<String>> =
            function.calls.iter().take(left).map(|(texts, _)| texts.clone()).collect();
        for (at, texts) in calls.iter().enumerate() {
            let mut one = command.clone();
            let mut is_cut = false;
            let words = command.words.iter();
            one.words = words.flat_map(|word| insert_arguments(word, texts, &mut is_cut)).collect();
            if is_cut {
                self.actions.cut(TOO_LONG, span);
            }
            if !self.read_again_for_call(&one, at, span, flow) {
                return;
            }
        }
    }

    fn read_again_for_call(
        &mut self,
        command: &Command,
        call: usize,
        span: Span,
        flow: &Taint,
    ) -> bool {
        if self.repeats >= MAX_REPEATS {
            self.actions.cut("more calls of a function than are followed", span);
            return false;
        }
        // Long words cost as much as many short commands.
        let length: usize = command.words.iter().map(|word| word.text.len()).sum();
        self.repeats += 1 + length / 1024;
        self.calling = Some(call);
        self.command(command, span, flow);
        self.calling = None;
        true
    }
}

/// Replaces a name by a value, unless the text would become too long.
fn replace_name(text: &mut String, name: &str, value: &str) -> bool {
    let length = text.len() + text.matches(name).count() * value.len();
    if length > MAX_WORD_BYTES {
        return false;
    }
    *text = text.replace(name, value);
    true
}

/// Returns a word with the arguments of a call inserted.
fn insert_arguments(word: &Word, texts: &[String], is_cut: &mut bool) -> Vec<Word> {
    if !word.variables.iter().any(|name| is_argument(name)) {
        return vec![word.clone()];
    }
    if word.text == "$@" {
        let each = texts.iter().enumerate().map(|(index, text)| Word {
            text: text.clone(),
            variables: vec![(index + 1).to_string()],
            span: word.span,
            ..Word::default()
        });
        return each.collect();
    }
    let mut word = word.clone();
    // Replace `$10` before `$1`.
    for number in (1..=MAX_ARGUMENTS).rev() {
        let name = number.to_string();
        if word.variables.contains(&name) {
            let text = texts.get(number - 1).map_or("", String::as_str);
            *is_cut |= !replace_name(&mut word.text, &format!("${name}"), text);
        }
    }
    if word.variables.iter().any(|name| name == "@") {
        *is_cut |= !replace_name(&mut word.text, "$@", &texts.join(" "));
    }
    vec![word]
}
