//! Finds inputs in code blocks that a runtime can execute.

use savoir_lint::{Diagnostic, Span};

use crate::{
    check::{Context, rule::rule},
    markdown::code_interpreter,
    render::{Placeholders, input_variable},
    skill::Mode,
    template::{self, Grammar},
};

rule! {
    /// A code block contains a placeholder for an input.
    ///
    /// ## Why
    ///
    /// `savoir run --exec-fences` runs the code blocks that are marked as bash, sh, python or node.
    /// An input with a quote or a semicolon would become part of the code, so a block with a
    /// placeholder is never run. A model that reads the skill is not affected.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// runtime:
    ///   type: markdown-skill
    /// inputs:
    ///   - name: page-url
    ///     type: url
    ///     required: true
    /// ---
    /// Load the page:
    ///
    /// ```bash
    /// curl -sS {{ page-url }}
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// runtime:
    ///   type: markdown-skill
    /// inputs:
    ///   - name: page-url
    ///     type: url
    ///     required: true
    /// ---
    /// Load the page:
    ///
    /// ```bash
    /// curl -sS "$INPUT_PAGE_URL"
    /// ```
    /// ````
    INPUT_IN_CODE_BLOCK = "input-in-code-block", Warning, run input_in_code_block
}

fn input_in_code_block(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let skill = &context.reading.skill;
    let is_skillrt = context.placeholders() == Placeholders::Skillrt;
    if !is_skillrt || skill.mode != Mode::Structured || skill.inputs.is_empty() {
        return;
    }
    let document = &context.reading.document;
    let (text, start) = (document.text(), document.body_span().start);
    let blocks: Vec<(Span, &str)> = document
        .outline()
        .fences
        .iter()
        .filter(|fence| fence.closed)
        .filter_map(|fence| Some((fence.content, code_interpreter(fence.info.slice(text))?)))
        .collect();
    let mut reported: Vec<(usize, String)> = Vec::new();
    for place in template::scan(document.body(), Grammar::Skillrt) {
        let span = Span::new(place.span.start, place.span.end).shifted(start);
        let is_around = |block: &&(Span, _)| block.0.start <= span.start && span.end <= block.0.end;
        let Some((block, program)) = blocks.iter().find(is_around) else { continue };
        let once = (block.start, place.name.clone());
        let is_input = skill.inputs.iter().any(|input| input.name == place.name);
        if !is_input || reported.contains(&once) {
            continue;
        }
        reported.push(once);
        let message = format!(
            "`{}` is in a code block, which --exec-fences refuses to run: the value would become code",
            place.name
        );
        let variable = input_variable(&place.name);
        let instead = match *program {
            "python3" => format!("os.environ[\"{variable}\"]"),
            "node" => format!("process.env.{variable}"),
            _ => format!("\"${variable}\""),
        };
        found.push(
            Diagnostic::warning(INPUT_IN_CODE_BLOCK.code, span, message)
                .help(format!("write `{instead}`, the variable that contains the value")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find, places};

    fn skill(body: &str) -> String {
        format!(
            "---\nname: x\nversion: 1.0.0\ndescription: d\nruntime: {{type: markdown-skill}}\n\
             inputs: [{{name: a-b, type: string}}]\n---\n{{{{ a-b }}}}\n\n{body}"
        )
    }

    #[test]
    fn each_language_has_its_own_rewrite() {
        for (language, instead) in [
            ("bash title=x", "`\"$INPUT_A_B\"`"),
            ("Python", "`os.environ[\"INPUT_A_B\"]`"),
            ("node", "`process.env.INPUT_A_B`"),
        ] {
            let text = skill(&format!("```{language}\nf {{{{ a-b }}}} {{{{a-b}}}}\n```\n"));
            let found = find(INPUT_IN_CODE_BLOCK.code, &text);
            assert_eq!(found.len(), 1, "{language}: {found:?}");
            assert_eq!(found[0].span.slice(&text), "{{ a-b }}");
            assert!(found[0].help.as_deref().is_some_and(|help| help.contains(instead)));
            assert!(!found[0].is_error());
        }
    }

    #[test]
    fn blocks_that_are_not_run_may_contain_inputs() {
        for body in [
            "```text\n{{ a-b }}\n```\n", "```\n{{ a-b }}\n```\n", "```bash\n{{ other }}\n```\n",
            "```bash\necho {{ a-b }}\n", "`echo {{ a-b }}`\n",
        ] {
            assert!(places(INPUT_IN_CODE_BLOCK.code, &skill(body)).is_empty(), "{body}");
        }
    }
}
