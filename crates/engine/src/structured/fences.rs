//! Finds the code blocks of a body that a runtime may execute. By default they are only text.

use savoir_skill::{
    Span,
    markdown::{Outline, code_hint, code_interpreter},
};
use thiserror::Error;

/// A code block that can be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The language hint as written.
    pub language: String,
    /// The program that runs it.
    pub interpreter: &'static str,
    /// The lines between the fences.
    pub code: String,
    /// The range in the body.
    pub span: Span,
}

/// Why the code blocks must not be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the value of an input would become code; code blocks find inputs in variables such as INPUT_NAME"
)]
pub struct FenceError;

impl FenceError {
    /// The stable identifier of the error.
    pub fn code(self) -> &'static str {
        "code-in-input"
    }
}

/// The code blocks of a body that can be executed, in order; with `language`, only those whose
/// hint means the same program. A block that is not closed is not run, because its end is unknown.
pub fn fences(body: &str, language: Option<&str>) -> Vec<Fence> {
    let wanted = language.map(code_interpreter);
    let outline = Outline::new(body, Span::new(0, body.len()));
    let closed = outline.fences.into_iter().filter(|fence| fence.closed);
    closed
        .filter_map(|fence| {
            let language = code_hint(fence.info.slice(body)).to_owned();
            let interpreter = code_interpreter(&language)?;
            let code = fence.content.slice(body).to_owned();
            Some(Fence { language, interpreter, code, span: fence.content })
        })
        .filter(|fence| wanted.is_none_or(|wanted| wanted == Some(fence.interpreter)))
        .collect()
}

/// Returns the code blocks of a body. Fails if filling in the inputs changed, opened or closed a
/// code block, because the text of an input must not become code. Code reads its inputs from
/// environment variables.
pub fn fences_of(
    template: &str,
    rendered: &str,
    language: Option<&str>,
) -> Result<Vec<Fence>, FenceError> {
    let unchanged = fences(template, language);
    let code = |list: &[Fence]| list.iter().map(|fence| fence.code.clone()).collect::<Vec<_>>();
    let same = code(&unchanged) == code(&fences(rendered, language));
    if same && skeleton(template) == skeleton(rendered) { Ok(unchanged) } else { Err(FenceError) }
}

/// The language hints of all blocks in order, and whether each block is closed.
fn skeleton(body: &str) -> Vec<(String, bool)> {
    let outline = Outline::new(body, Span::new(0, body.len()));
    let fences = outline.fences.iter();
    fences.map(|fence| (code_hint(fence.info.slice(body)).to_owned(), fence.closed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "a\n```bash title=x\necho 1\n```\n```json\n{}\n```\n~~~Python\nprint()\n~~~\n```js\n```\n```sh\nopen";

    #[test]
    fn only_closed_blocks_with_a_known_hint() {
        let found: Vec<_> =
            fences(BODY, None).into_iter().map(|fence| (fence.interpreter, fence.code)).collect();
        assert_eq!(found, [("bash", "echo 1\n".to_owned()), ("python3", "print()\n".to_owned())]);
        let python = fences(BODY, Some("python3"));
        assert_eq!((python.len(), python[0].language.as_str()), (1, "Python"));
        assert_eq!(python[0].span.slice(BODY), "print()\n");
        assert!(fences(BODY, Some("ruby")).is_empty());
    }

    #[test]
    fn values_must_not_become_code() {
        let template = "```bash\necho $INPUT_X\n```\n{{ y }}\n";
        let good = "```bash\necho $INPUT_X\n```\ntext\n";
        assert_eq!(fences_of(template, good, None).unwrap()[0].code, "echo $INPUT_X\n");
        let bad = "```bash\necho $INPUT_X\n```\n```bash\nrm -r x\n```\n";
        assert_eq!(fences_of(template, bad, None).unwrap_err().code(), "code-in-input");
        let closed_early = "```bash\necho $INPUT_X\n```\nfree text\n```\n```\ntext\n";
        assert!(fences_of(template, closed_early, None).is_err());
        let inside = ("```bash\necho {{ x }}\n```\n", "```bash\necho 1; rm -r x\n```\n");
        assert!(fences_of(inside.0, inside.1, None).is_err());
    }
}
