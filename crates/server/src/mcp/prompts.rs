//! Offers skills as MCP prompts: skills with inputs, and skills that only users start.

use std::{borrow::Cow, sync::Arc};

use rmcp::{
    ErrorData,
    model::{
        CacheScope, GetPromptRequestParams, GetPromptResult, JsonObject, ListPromptsResult, Prompt,
        PromptArgument, PromptMessage, Role,
    },
};
use savoir_agent::library::Opened;
use savoir_lint::harmless;
use savoir_skill::{
    Skill,
    name::shorten_name,
    render::{ARGUMENTS, as_user_invoked, input_names, render, takes_arguments},
};

use super::{
    resources::{RESULT_TTL_MS, SkillResources, failed, page_after},
    session::invalid,
    tools::origin,
};

/// Maximum prompts in a page, and skills that are read for one.
const PROMPTS_PER_PAGE: usize = 50;
const MAX_SKILLS_LOADED_PER_PAGE: usize = 200;

impl SkillResources {
    /// A page of prompts. The cursor is the name of the last skill that was read.
    pub(super) async fn prompts(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut names = self.library.choices().await.map_err(|error| failed(&error))?;
        names.sort_unstable();
        let names = page_after(&names, cursor)?;
        let (mut prompts, mut next) = (Vec::new(), None);
        for (index, name) in names.iter().enumerate() {
            // Skip skills that cannot be read.
            if let Ok(opened) = self.library.choose(name).await {
                prompts.extend(prompt(&as_user_invoked(&opened.skill)));
            }
            let full = prompts.len() == PROMPTS_PER_PAGE || index + 1 == MAX_SKILLS_LOADED_PER_PAGE;
            if full && index + 1 < names.len() {
                next = Some(name.clone());
                break;
            }
        }
        let mut page = ListPromptsResult::with_all_items(prompts)
            .with_ttl_ms(RESULT_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        page.next_cursor = next;
        Ok(page)
    }

    /// A prompt with its inputs filled in, and the skill that the user chose with it.
    pub(super) async fn prompt(
        &self,
        request: GetPromptRequestParams,
    ) -> Result<(GetPromptResult, Arc<Opened>), ErrorData> {
        let GetPromptRequestParams { name, arguments, .. } = request;
        let opened = self.library.choose(&name).await.map_err(invalid)?;
        opened.check_ready().map_err(invalid)?;
        let skill: Cow<'_, Skill> = as_user_invoked(&opened.skill);
        if prompt(&skill).is_none() {
            return Err(invalid(format!(
                "the skill `{name}` takes no inputs; load it with use_skill"
            )));
        }
        let directory = self.files.directory(&name);
        let arguments = check_arguments(arguments.unwrap_or_default())?;
        let text = render(&skill, &arguments, directory.as_deref());
        let text = text.map_err(|error| invalid(format!("{name}: {error}")))?;
        self.library.used(&name).await;
        let meta = Some(origin(Some(&name)));
        let message = PromptMessage::new_text_with_meta(Role::User, text, meta);
        let result = GetPromptResult::new(vec![message])
            .with_description(harmless(skill.truncated_description()));
        Ok((result, opened))
    }
}

/// The arguments of a prompt; the protocol allows only texts.
fn check_arguments(mut arguments: JsonObject) -> Result<JsonObject, ErrorData> {
    arguments.retain(|_, value| !value.is_null());
    match arguments.iter().find(|(_, value)| !value.is_string()) {
        Some((name, _)) => {
            Err(invalid(format!("the argument `{}` must be a text", shorten_name(name))))
        }
        None => Ok(arguments),
    }
}

/// A skill as a prompt, if it has inputs or only users may call it.
fn prompt(skill: &Skill) -> Option<Prompt> {
    let names: Vec<String> =
        input_names(skill).into_iter().filter(|name| has_input(skill, name)).collect();
    if names.is_empty() && skill.policy.model_invocable != Some(false) {
        return None;
    }
    let arguments = names.into_iter().map(|name| argument(skill, name)).collect();
    let description = harmless(skill.truncated_description());
    let prompt = Prompt::new(&skill.name, Some(description), Some(arguments));
    Some(prompt.with_meta(origin(Some(&skill.name))))
}

/// Whether a skill takes arguments. Every skill of Claude Code can be called with some, but not all
/// use them.
fn has_input(skill: &Skill, name: &str) -> bool {
    name != ARGUMENTS || takes_arguments(skill)
}

fn argument(skill: &Skill, name: String) -> PromptArgument {
    let input = skill.inputs.iter().find(|input| input.name == name);
    let argument = PromptArgument::new(name);
    let Some(input) = input else { return argument.with_required(false) };
    let argument = argument.with_required(input.required && input.default.is_none());
    match input.description.as_ref().or(input.label.as_ref()) {
        Some(description) => argument.with_description(harmless(description)),
        None => argument,
    }
}
