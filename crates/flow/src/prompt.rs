//! Runs a prompt skill: fills in its inputs, searches passages and asks a model.

use std::borrow::Cow;

use savoir_engine::structured;
use savoir_knowledge::limits::MAX_QUERY_CHARS;
use savoir_model::Message;
use savoir_skill::{
    Dialect, Skill, check,
    dialect::agent_flow::model_settings,
    render,
    skill::{Input, InputKind, Output},
};
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use crate::{
    event::{Done, Emitter, Event, ListenerDisconnected, Thought},
    retrieval::{Search, system_message},
    services::{Answer, Question, Services},
};

/// Maximum bytes of a prompt after values are inserted. No model accepts as much.
const MAX_FILLED_BYTES: usize = 16 * 1024 * 1024;

/// Maximum characters of a search query that are shown.
const SHOWN_QUERY_CHARS: usize = 200;

/// The input of a skill that declares none: what the skill works on. Its value follows the
/// instructions.
pub const REQUEST: &str = "request";

/// A skill with its inputs.
#[derive(Clone, Copy, Debug)]
pub struct PromptRun<'a> {
    pub skill: &'a Skill,
    /// The values of its inputs and of its undeclared placeholders; [`REQUEST`] for a skill without
    /// any. Other names are ignored.
    pub inputs: &'a Map<String, Value>,
    /// The skill's folder, for prompts that name it.
    pub directory: Option<&'a str>,
    /// `provider:model` or a model's name; `None` for the default.
    pub model: Option<&'a str>,
    /// The user who runs the skill.
    pub user: Option<i64>,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The answer, possibly incomplete.
    pub text: String,
    /// Why the run failed: the message of the last event.
    pub error: Option<Failure>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason, for users.
    pub message: String,
    /// The stable identifier of the error, if it has one.
    pub code: Option<&'static str>,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, code: None }
    }
}

impl Outcome {
    /// Returns the last event of the run.
    pub fn done(&self) -> Done {
        match &self.error {
            None => Done::Success { message: "Skill execution completed successfully" },
            Some(Failure { message, .. }) => Done::Error { message: message.clone() },
        }
    }
}

/// Checks that this machine can run a skill: that it is for this runtime, and that the programs
/// that it needs are on `PATH`.
pub fn check_ready(skill: &Skill) -> Result<(), Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    structured::check_ready(skill, &path).map_err(|error| {
        let code = Some(error.code());
        Failure { message: format!("{}: {error}", skill.name), code }
    })
}

/// The emitter for the answer of a skill: without tokens if the answer is checked when it is
/// complete.
pub(crate) fn answer_emitter(skill: &Skill, out: &Emitter) -> Emitter {
    if is_checked(skill) { out.without_tokens() } else { out.clone() }
}

fn is_checked(skill: &Skill) -> bool {
    skill.outputs.as_ref().is_some_and(Output::is_checked)
}

/// Checks a complete answer against the declared outputs of its skill, and emits it if it was not
/// emitted as it arrived. Returns the failure if it does not match.
pub(crate) async fn check_answer(
    skill: &Skill,
    answer: &str,
    out: &Emitter,
) -> Result<Option<Failure>, ListenerDisconnected> {
    let Some(outputs) = skill.outputs.clone().filter(Output::is_checked) else { return Ok(None) };
    let text = answer.to_owned();
    // Parsing and validating a long answer takes seconds.
    let checked = spawn_blocking(move || structured::validate_answer(&outputs, &text)).await;
    let failure = match checked {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(Failure { message: error.to_string(), code: Some(error.code()) }),
        Err(error) => Some(Failure::from(format!("the answer cannot be checked: {error}"))),
    };
    if failure.is_none() {
        out.emit(Event::token(answer)).await?;
    }
    Ok(failure)
}

/// Runs a skill and emits all events, including the last one.
pub async fn run(
    services: &Services,
    run: PromptRun<'_>,
    out: &Emitter,
) -> Result<Outcome, ListenerDisconnected> {
    let outcome = steps(services, run, out).await?;
    out.emit(Event::Done(outcome.done())).await?;
    Ok(outcome)
}

/// Runs a skill as part of a larger run: without the last event.
pub async fn steps(
    services: &Services,
    run: PromptRun<'_>,
    out: &Emitter,
) -> Result<Outcome, ListenerDisconnected> {
    let mut answer = Answer::default();
    let steps = all_steps(services, run, out, &mut answer);
    let limit = services.limits.answer;
    let error = if let Ok(error) = tokio::time::timeout(limit, steps).await {
        error?
    } else {
        let message = format!("Skill execution timed out ({}s)", limit.as_secs());
        out.emit(Event::error(message)).await?;
        Some("Timeout".to_owned().into())
    };
    Ok(Outcome { text: answer.text, error })
}

/// Returns the failure if the run failed.
async fn all_steps(
    services: &Services,
    run: PromptRun<'_>,
    out: &Emitter,
    answer: &mut Answer,
) -> Result<Option<Failure>, ListenerDisconnected> {
    out.emit(Thought::new("validation", "start")).await?;
    let checked = check_ready(run.skill).and_then(|()| filled(run).map_err(Failure::from));
    let prompt = match checked {
        Ok(prompt) => prompt,
        Err(failure) => {
            let thought = Thought::new("validation", "error");
            out.emit(thought.with("error", failure.message.as_str())).await?;
            return Ok(Some(failure));
        }
    };
    let complete = |topic, message: &str| Thought::new(topic, "complete").with("message", message);
    out.emit(complete("validation", "All required inputs provided")).await?;
    out.emit(Thought::new("substitution", "start")).await?;
    out.emit(complete("substitution", "Variables substituted")).await?;

    let passages = match &run.skill.policy.knowledge_base {
        Some(base) => {
            let query = first_chars(&prompt, MAX_QUERY_CHARS);
            let search = Search { base, query, user: owner(run.skill).or(run.user) };
            let shown = first_chars(&prompt, SHOWN_QUERY_CHARS);
            let thought = |status| match status {
                "searching" => search.thought(status).with("query", shown),
                _ => search.thought(status),
            };
            search.search_and_emit(services, thought, out).await?
        }
        None => Vec::new(),
    };

    out.emit(Thought::new("generation", "start")).await?;
    let settings = model_settings(run.skill);
    let question = Question {
        model: run.model,
        messages: vec![Message::System(system_message(&passages)), Message::User(prompt)],
        temperature: Some(settings.temperature),
        max_tokens: Some(settings.max_tokens),
        user: run.user,
        skill: Some(run.skill),
    };
    services.ask_into(question, &answer_emitter(run.skill, out), answer).await?;
    let failure = match &answer.error {
        None => check_answer(run.skill, &answer.text, out).await?,
        Some(error) => {
            let help = error.help();
            tracing::warn!(skill = run.skill.name, %error, help, "a model failed");
            Some("Generation failed".to_owned().into())
        }
    };
    if let Some(Failure { message, code }) = failure.clone() {
        out.emit(Event::Error { message, code }).await?;
    }
    Ok(failure)
}

/// Returns the owner of a skill, whose knowledge bases are preferred when the skill names one.
fn owner(skill: &Skill) -> Option<i64> {
    skill.policy.owner.as_deref()?.parse().ok()
}

/// Returns the prompt; fails if it is too long, because one value can be inserted thousands of
/// times.
fn filled(run: PromptRun<'_>) -> Result<String, String> {
    let PromptRun { skill, inputs, directory, .. } = run;
    let count = |mark: &str| skill.body.matches(mark).count();
    let places = count("{{") + count("$") + count("{baseDir}");
    let length = |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len);
    let lengths = inputs.values().map(length).chain(directory.map(str::len));
    let longest = lengths.max().unwrap_or(0);
    if places.saturating_mul(longest) > MAX_FILLED_BYTES {
        return Err("The inputs make the prompt too long".to_owned());
    }
    let implied = undeclared_inputs(skill);
    let request = inputs.get(REQUEST).and_then(Value::as_str).map_or("", str::trim);
    let takes_request = skill.inputs.is_empty() && implied.is_empty() && !request.is_empty();
    let skill = if implied.is_empty() {
        Cow::Borrowed(skill)
    } else {
        let mut inputs = skill.inputs.clone();
        inputs.extend(implied.into_iter().map(optional_text));
        Cow::Owned(Skill { inputs, ..skill.clone() })
    };
    let fill = |inputs: &Map<String, Value>| {
        render::fill(&skill, inputs, directory).map_err(|error| error.to_string())
    };
    if takes_request && skill.dialect == Dialect::CLAUDE_CODE && render::takes_arguments(&skill) {
        return fill(&Map::from_iter([(render::ARGUMENTS.to_owned(), request.into())]));
    }
    let prompt = fill(inputs)?;
    Ok(if takes_request { format!("{}\n\n{request}", prompt.trim_end()) } else { prompt })
}

/// The placeholders of a skill that its author did not declare as inputs. Only imported skills have
/// some: a skill that is written here must declare all.
pub fn undeclared_inputs(skill: &Skill) -> Vec<String> {
    if skill.dialect == Dialect::AGENT_FLOW {
        check::undeclared_placeholders(skill)
    } else {
        Vec::new()
    }
}

fn optional_text(name: String) -> Input {
    Input {
        name,
        label: None,
        kind: InputKind::Text,
        required: false,
        default: None,
        description: None,
    }
}

pub(crate) fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

/// Returns inputs with the text as the value of the first required input, else of the first one.
pub fn first_input(skill: &Skill, text: &str) -> Map<String, Value> {
    let inputs = &skill.inputs;
    let input = inputs.iter().find(|input| input.required).or_else(|| inputs.first());
    input.map(|input| (input.name.clone(), text.into())).into_iter().collect()
}

/// Like [`first_input`], for what a user writes after the name of a skill: without a declared input,
/// it is the value of the first undeclared placeholder, or the request.
///
/// A skill with several inputs also takes one line `name: value` for each of them. Further lines of
/// a value are indented by two spaces.
pub fn inputs_of_message(skill: &Skill, text: &str) -> Map<String, Value> {
    if let Some(named) = named_inputs(skill, text) {
        return named;
    }
    let declared = first_input(skill, text);
    if !declared.is_empty() {
        return declared;
    }
    let undeclared = undeclared_inputs(skill).into_iter().next();
    let name = undeclared.unwrap_or_else(|| REQUEST.to_owned());
    Map::from_iter([(name, text.into())])
}

/// Parses the lines `name: value` of a message; `None` if it does not start with one.
fn named_inputs(skill: &Skill, text: &str) -> Option<Map<String, Value>> {
    if skill.inputs.len() < 2 {
        return None;
    }
    let named = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let input = skill.inputs.iter().find(|input| input.name == name.trim_end())?;
        Some((input.name.clone(), value.trim().to_owned()))
    };
    let mut values: Vec<(String, String)> = Vec::new();
    for line in text.trim().lines() {
        let found = named(line).filter(|(name, _)| values.iter().all(|(known, _)| known != name));
        if let Some(found) = found {
            values.push(found);
            continue;
        }
        // A message that starts with another line is a value as a whole.
        let (_, value) = values.last_mut()?;
        if !value.is_empty() {
            value.push('\n');
        }
        value.push_str(line.strip_prefix("  ").unwrap_or(line));
    }
    (!values.is_empty())
        .then(|| values.into_iter().map(|(name, value)| (name, value.into())).collect())
}

#[cfg(test)]
mod tests {
    use savoir_skill::{Source, read_as};
    use serde_json::json;

    use super::*;

    fn skill(text: &str, dialect: Dialect) -> Skill {
        read_as(Source::new(text.to_owned()), dialect, None).skill
    }

    fn prompt(skill: &Skill, inputs: &Value) -> String {
        let inputs = &inputs.as_object().cloned().unwrap();
        let (directory, model, user) = (None, None, None);
        filled(PromptRun { skill, inputs, directory, model, user }).unwrap()
    }

    #[test]
    fn undeclared_placeholders_are_optional_inputs() {
        let text = "---\nname: a\ninputs: [{name: x, type: text}]\n---\n{{x}} for {{who}}.";
        let letter = skill(text, Dialect::AGENT_FLOW);
        assert_eq!(undeclared_inputs(&letter), ["who"]);
        assert_eq!(prompt(&letter, &json!({"x": "A letter", "who": "Ada"})), "A letter for Ada.");
        assert_eq!(prompt(&letter, &json!({"x": "A letter", "request": "b"})), "A letter for .");
        // Another dialect has no such placeholders.
        let other = skill("---\nname: a\n---\nSay {{who}}.", Dialect::CLAUDE_CODE);
        assert_eq!(undeclared_inputs(&other), [""; 0]);
    }

    #[test]
    fn skill_without_inputs_takes_a_request() {
        let polish = skill("---\nname: a\n---\nPolish the text.\n", Dialect::AGENT_FLOW);
        assert_eq!(prompt(&polish, &json!({"request": " it \n"})), "Polish the text.\n\nit");
        assert_eq!(prompt(&polish, &json!({"request": " ", "other": "b"})), "Polish the text.");
        let command = skill("---\nname: a\n---\nPolish $ARGUMENTS now.", Dialect::CLAUDE_CODE);
        assert_eq!(prompt(&command, &json!({"request": "it"})), "Polish it now.");
    }

    #[test]
    fn message_becomes_the_first_input() {
        let inputs_of = |text: &str| inputs_of_message(&skill(text, Dialect::AGENT_FLOW), "b");
        let declared = "---\nname: a\ninputs: [{name: x, type: text}]\n---\n{{x}} {{y}}";
        assert_eq!(Value::from(inputs_of(declared)), json!({"x": "b"}));
        assert_eq!(Value::from(inputs_of("---\nname: a\n---\n{{y}} {{z}}")), json!({"y": "b"}));
        assert_eq!(Value::from(inputs_of("---\nname: a\n---\nDo it.")), json!({"request": "b"}));
    }

    #[test]
    fn message_with_names_sets_several_inputs() {
        let two = "---\nname: a\ninputs: [{name: to, type: text}, {name: text, type: text}]\n---\n";
        let two = skill(two, Dialect::AGENT_FLOW);
        let inputs_of = |text: &str| Value::from(inputs_of_message(&two, text));
        assert_eq!(inputs_of("to: Ada\ntext: Hello"), json!({"to": "Ada", "text": "Hello"}));
        let long = "text: Dear\n  to: you\n\n    and me\nto: Ada";
        assert_eq!(inputs_of(long), json!({"text": "Dear\nto: you\n\n  and me", "to": "Ada"}));
        assert_eq!(inputs_of("Hello\nto: Ada"), json!({"to": "Hello\nto: Ada"}));
        assert_eq!(inputs_of("from: Ada"), json!({"to": "from: Ada"}));
        // A skill with one input takes the whole text.
        let one =
            skill("---\nname: a\ninputs: [{name: to, type: text}]\n---\n", Dialect::AGENT_FLOW);
        assert_eq!(Value::from(inputs_of_message(&one, "to: Ada")), json!({"to": "to: Ada"}));
    }
}
