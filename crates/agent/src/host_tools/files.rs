//! Reads and writes files of the workspace.

use std::{path::Path, sync::Arc};

use savoir_engine::grant::{self, ProtectedPaths, WritePolicy};

use super::{
    HostTools, ToolFailure, unusable,
    workspace::{self, Inside},
};
use crate::{
    allowed_tools::CallGuard,
    consent::{FileDiff, HostAction},
    toolset::ToolAnswer,
};

/// Whether writing to a path would make a parent folder a git repository.
fn would_create_repository(path: &Path, root: &Path) -> bool {
    path.ancestors().take_while(|part| *part != root).any(|part| {
        let folder = part.parent().unwrap_or(root);
        let there =
            |sign: &str| part.ends_with(sign) || folder.join(sign).symlink_metadata().is_ok();
        grant::is_repository(there)
    })
}

impl HostTools {
    pub(super) fn read_file(&self, path: &str) -> Result<ToolAnswer, ToolFailure> {
        let inside = self.workspace.inside(path)?;
        let whole = inside.below(self.workspace.root());
        if grant::stored_secrets(&self.run_env).any(|secrets| whole.starts_with(secrets)) {
            return Err(("protected-path", "the stored secrets of the user are there".to_owned()));
        }
        Ok(ToolAnswer::text(self.workspace.read(&inside)?))
    }

    pub(super) fn list_dir(&self, path: &str) -> Result<ToolAnswer, ToolFailure> {
        let names = self.workspace.list(&self.workspace.inside(path)?)?;
        Ok(ToolAnswer::text(if names.is_empty() { "(empty)".to_owned() } else { names.join("\n") }))
    }

    pub(super) async fn write_file(
        &self,
        path: &str,
        text: &str,
        call_guard: CallGuard<'_>,
    ) -> Result<ToolAnswer, ToolFailure> {
        workspace::fits(text)?;
        let protected = self.find_protected_paths().await?;
        let before = self.workspace.read(&self.writable(path, &protected)?);
        let shown = match &before {
            Ok(text) => text,
            Err(("no-such-file", _)) => "",
            Err(("link-not-followed", _)) => return before.map(ToolAnswer::text),
            Err((_, why)) => &format!("[it cannot be shown: {why}]"),
        };
        self.agree_to_write(path, (shown, text), &protected, call_guard).await?;
        let _turn = self.writes.lock().await;
        let inside = self.writable(path, &protected)?;
        // The user agreed to replace the content that was shown, so it must not have changed.
        if self.workspace.read(&inside) != before {
            let message = format!("`{path}` was changed by others meanwhile; read it again");
            return Err(("file-changed", message));
        }
        self.write_text(&inside, text, &protected)
    }

    pub(super) async fn edit_file(
        &self,
        path: &str,
        old: &str,
        new: &str,
        call_guard: CallGuard<'_>,
    ) -> Result<ToolAnswer, ToolFailure> {
        let protected = self.find_protected_paths().await?;
        let edited = || {
            let inside = self.writable(path, &protected)?;
            let before = self.workspace.read(&inside)?;
            let after = replace_once(path, &before, old, new)?;
            Ok((inside, before, after))
        };
        let (_, before, after) = edited()?;
        self.agree_to_write(path, (&before, &after), &protected, call_guard).await?;
        // The file may have changed while the user was asked.
        let _turn = self.writes.lock().await;
        let (inside, _, after) = edited()?;
        self.write_text(&inside, &after, &protected)
    }

    /// Finds all protected paths, including those that links or git settings refer to.
    async fn find_protected_paths(&self) -> Result<ProtectedPaths, ToolFailure> {
        let (workspace, baseline) = (Arc::clone(&self.workspace), Arc::clone(&self.baseline));
        let (protected, home) = (self.protected(), self.run_env.home.clone());
        let look = move || {
            baseline
                .resolve_protected(workspace.folder_to_look_at(), protected, &home)
                .map_err(unusable)
        };
        let looked = tokio::task::spawn_blocking(look).await;
        looked.unwrap_or_else(|error| Err(("file-failed", error.to_string())))
    }

    /// Resolves a path that may be written; refuses paths that other programs execute or obey.
    fn writable(&self, path: &str, protected: &ProtectedPaths) -> Result<Inside, ToolFailure> {
        let inside = self.workspace.inside(path)?;
        let root = self.workspace.root();
        let whole = inside.below(root);
        let is_kept = grant::is_protected(&whole, &self.run_env)
            || self.write_policy(&whole, protected) == Some(WritePolicy::ReadOnly)
            || would_create_repository(&whole, root);
        if is_kept {
            let message =
                format!("`{path}` is never written by tools, since other programs obey it");
            return Err(("protected-path", message));
        }
        Ok(inside)
    }

    /// Returns the write policy of a path, including rules of the repositories around it.
    fn write_policy(&self, path: &Path, protected: &ProtectedPaths) -> Option<WritePolicy> {
        let (root, mut protected) = (self.workspace.root(), protected.clone());
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != root) {
            let led = grant::paths_from_git_config(folder, &self.run_env.home);
            protected.add(led.into_iter().map(|place| (place, WritePolicy::ReadOnly)), root);
        }
        protected.strictest(path, root)
    }

    async fn agree_to_write(
        &self,
        path: &str,
        (before, after): (&str, &str),
        protected: &ProtectedPaths,
        call_guard: CallGuard<'_>,
    ) -> Result<(), ToolFailure> {
        let inside = self.workspace.inside(path)?;
        let is_obeyed =
            self.write_policy(&inside.below(self.workspace.root()), protected).is_some();
        let (path, change) = (inside.text(), FileDiff::between(before, after));
        self.ask_consent(
            HostAction::Write { path, bytes: after.len(), change, is_obeyed },
            call_guard,
        )
        .await
    }

    fn write_text(
        &self,
        path: &Inside,
        text: &str,
        protected: &ProtectedPaths,
    ) -> Result<ToolAnswer, ToolFailure> {
        let root = self.workspace.root();
        let write = || self.workspace.write(path, text);
        if protected.strictest(&path.below(root), root).is_some() {
            self.baseline.write_approved(
                self.workspace.folder_to_look_at(),
                &path.below(Path::new("")),
                protected,
                write,
            )?;
        } else {
            write()?;
        }
        let (path, bytes) = (path.text(), text.len());
        Ok(ToolAnswer::text(format!("`{path}` is written, {bytes} bytes")))
    }
}

/// Replaces a passage that must occur exactly once in the text.
fn replace_once(path: &str, text: &str, old: &str, new: &str) -> Result<String, ToolFailure> {
    let unfit = |message: String| Err(("passage-not-found", message));
    match text.matches(old).count() {
        _ if old.is_empty() => unfit("`old_text` is empty".to_owned()),
        0 => unfit(format!("`old_text` is not in `{path}`; read it again and copy exactly")),
        1 => Ok(text.replacen(old, new, 1)),
        count => unfit(format!("`old_text` is there {count} times; take a longer passage")),
    }
}
