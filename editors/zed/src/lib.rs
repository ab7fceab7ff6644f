//! Tells Zed how to start `savoir lsp`.

use zed_extension_api::{self as zed, serde_json, settings::LspSettings};

struct Savoir;

impl zed::Extension for Savoir {
    fn new() -> Self {
        Self
    }

    fn language_server_command(
        &mut self,
        server: &zed::LanguageServerId,
        worktree: &zed::Worktree,
    ) -> zed::Result<zed::Command> {
        let settings = LspSettings::for_worktree(server.as_ref(), worktree).ok();
        let chosen = settings.and_then(|settings| settings.binary?.path);
        let command = chosen.or_else(|| worktree.which("savoir")).ok_or_else(|| {
            "savoir is not on the PATH: install it, or set lsp.savoir.binary.path".to_string()
        })?;
        Ok(zed::Command { command, args: vec!["lsp".to_string()], env: worktree.shell_env() })
    }

    fn language_server_initialization_options(
        &mut self,
        _: &zed::LanguageServerId,
        _: &zed::Worktree,
    ) -> zed::Result<Option<serde_json::Value>> {
        // Zed cannot carry out the commands of code lenses.
        Ok(Some(serde_json::json!({ "codeLens": false })))
    }
}

zed::register_extension!(Savoir);
