//! Files of the workspace.

use std::path::Path;

use super::{HostTools, Wrong, workspace::Inside};
use crate::{
    agent::{allowance::Fence, consent::Deed, toolset::ToolAnswer},
    grant,
};

/// Whether git takes a folder above a path for a repository once something lies there.
fn makes_a_repository(path: &Path, root: &Path) -> bool {
    path.ancestors().take_while(|part| *part != root).any(|part| {
        let folder = part.parent().unwrap_or(root);
        let there =
            |sign: &str| part.ends_with(sign) || folder.join(sign).symlink_metadata().is_ok();
        grant::is_repository(there)
    })
}

impl HostTools {
    pub(super) fn read_file(&self, path: &str) -> Result<ToolAnswer, Wrong> {
        Ok(ToolAnswer::text(self.workspace.read(&self.workspace.inside(path)?)?))
    }

    pub(super) fn list_dir(&self, path: &str) -> Result<ToolAnswer, Wrong> {
        let names = self.workspace.list(&self.workspace.inside(path)?)?;
        Ok(ToolAnswer::text(if names.is_empty() { "(empty)".to_owned() } else { names.join("\n") }))
    }

    pub(super) async fn write_file(
        &self,
        path: &str,
        text: &str,
        fence: Fence<'_>,
    ) -> Result<ToolAnswer, Wrong> {
        let inside = self.writable(path)?;
        self.keep(&inside, text, fence).await
    }

    pub(super) async fn edit_file(
        &self,
        path: &str,
        old: &str,
        new: &str,
        fence: Fence<'_>,
    ) -> Result<ToolAnswer, Wrong> {
        let inside = self.writable(path)?;
        let text = self.workspace.read(&inside)?;
        let unfit = |message: String| Err(("passage-not-found", message));
        match text.matches(old).count() {
            _ if old.is_empty() => unfit("`old_text` is empty".to_owned()),
            0 => unfit(format!("`old_text` is not in `{path}`; read it again and copy exactly")),
            1 => self.keep(&inside, &text.replacen(old, new, 1), fence).await,
            count => unfit(format!("`old_text` is there {count} times; take a longer passage")),
        }
    }

    /// A path that may be written: nothing that others execute or obey.
    fn writable(&self, path: &str) -> Result<Inside, Wrong> {
        let inside = self.workspace.inside(path)?;
        let root = self.workspace.root();
        let whole = inside.below(root);
        let is_kept = grant::is_protected(&whole, &self.ground)
            || self.obeyed().covers(&whole, root)
            || makes_a_repository(&whole, root);
        if is_kept {
            let message =
                format!("`{path}` is never written by tools, since other programs obey it");
            return Err(("protected-path", message));
        }
        Ok(inside)
    }

    async fn keep(&self, path: &Inside, text: &str, fence: Fence<'_>) -> Result<ToolAnswer, Wrong> {
        let bytes = text.len();
        self.agree(Deed::Write { path: path.text(), bytes }, fence).await?;
        self.workspace.write(path, text)?;
        Ok(ToolAnswer::text(format!("`{}` is written, {bytes} bytes", path.text())))
    }
}
