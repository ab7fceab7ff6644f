//! Finds scripts of a skill that no program can run.

use savoir_lint::{Diagnostic, Span};

use super::command_templates::ToolCommand;
use crate::{
    check::{Context, rule::rule},
    folder::Folder,
};

rule! {
    /// A command starts a script that does not say which program runs it.
    ///
    /// ## Why
    ///
    /// A tool is started without a shell. A text file starts with a line such as
    /// `#!/usr/bin/env bash`, or ends in a known extension such as `.sh` or `.py`; otherwise every
    /// call of the tool fails with "Permission denied".
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish with=scripts/count
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### count_files
    ///
    /// Count the files of a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// ./scripts/count
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish with=scripts/count.sh
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### count_files
    ///
    /// Count the files of a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// ./scripts/count.sh
    /// ```
    /// ````
    SCRIPT_WITHOUT_INTERPRETER = "script-without-interpreter", Error
}

/// Extensions of scripts whose program is known.
const KNOWN_EXTENSIONS: [&str; 14] =
    ["sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php", "lua"];

/// How many bytes tell a script from a program.
const HEAD_BYTES: usize = 256;

impl ToolCommand<'_> {
    pub(super) fn interpreter(
        &self,
        context: &Context<'_>,
        path: &str,
        span: Span,
        found: &mut Vec<Diagnostic>,
    ) {
        let Some(folder) = context.folder else { return };
        if has_known_extension(path) || is_program_or_has_interpreter(folder, path) {
            return;
        }
        let message = format!("`{path}` does not say which program runs it");
        found.push(
            Diagnostic::error(SCRIPT_WITHOUT_INTERPRETER.code, span, message)
                .field(self.tool.name.clone())
                .help("start the file with a line such as `#!/usr/bin/env bash`"),
        );
    }
}

fn has_known_extension(path: &str) -> bool {
    let extension = path.rsplit('/').next().and_then(|name| Some(name.rsplit_once('.')?.1));
    extension
        .is_some_and(|end| KNOWN_EXTENSIONS.iter().any(|known| end.eq_ignore_ascii_case(known)))
}

/// Whether the kernel can start a file: it starts with `#!`, or is not text.
fn is_program_or_has_interpreter(folder: &Folder, path: &str) -> bool {
    // A file that cannot be read is reported by other rules.
    let Ok(head) = folder.read_up_to(path, HEAD_BYTES) else { return true };
    head.starts_with(b"#!") || head.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::{Options, rules::testing::find_with},
        dialect::Dialect,
        folder::File,
    };

    fn is_reported(path: &str, content: &'static [u8]) -> bool {
        let text = format!(
            "---\nname: demo\nversion: 1.0.0\ndescription: d\n---\n### t\n\nDoes.\n\n#### Parameters\n\nNone.\n\n\
             #### Command\n\n```bash\n./{path}\n```\n"
        );
        let files = vec![File { path: path.to_owned(), link: false }];
        let folder = Folder::in_memory(Some("demo"), files, |_| Some(content.to_vec()));
        let options = Options { dialect: Some(Dialect::GIBBERISH), ..Options::default() };
        !find_with(SCRIPT_WITHOUT_INTERPRETER.code, &text, Some(&folder), &options).is_empty()
    }

    #[test]
    fn scripts_need_a_first_line_or_a_known_extension() {
        assert!(is_reported("scripts/count", b"echo hi\n"));
        assert!(is_reported("scripts/thing.foo", b"echo hi\n"));
        assert!(!is_reported("scripts/count", b"#!/bin/sh\necho hi\n"));
        assert!(!is_reported("scripts/count.SH", b"echo hi\n"));
        assert!(!is_reported("bin/tool", b"\x7fELF\0\0"));
    }
}
