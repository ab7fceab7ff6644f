//! Finds the paths of Savoir's data and cache folders.

use std::{
    env,
    ffi::OsString,
    path::{self, Path, PathBuf},
};

use crate::store::{self, StoreError};

/// The data and cache folders of Savoir. They are created when something is first stored in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    data: PathBuf,
    cache: PathBuf,
}

impl Home {
    /// `SAVOIR_HOME` with everything below it, else the folders of the XDG base directories.
    pub fn from_environment() -> Result<Self, StoreError> {
        Self::from_variables(|name| env::var_os(name), env::home_dir())
    }

    /// Both folders below one root.
    pub fn at(root: &Path) -> Self {
        Self { data: root.join("data"), cache: root.join("cache") }
    }

    fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
        home: Option<PathBuf>,
    ) -> Result<Self, StoreError> {
        if let Some(root) = variable("SAVOIR_HOME").filter(|root| !root.is_empty()) {
            let root = PathBuf::from(root);
            // A later change of the working folder must not move the home.
            let absolute = path::absolute(&root)
                .map_err(|source| StoreError::Folder { path: root, source })?;
            return Ok(Self::at(&absolute));
        }
        let home = home.filter(|home| home.is_absolute());
        let base = |name: &str, below_home: &str| {
            // The XDG specification says that relative paths are ignored.
            let set = variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
            set.or_else(|| Some(home.as_ref()?.join(below_home)))
                .map(|base| base.join("savoir"))
                .ok_or(StoreError::NoHome)
        };
        Ok(Self {
            data: base("XDG_DATA_HOME", ".local/share")?,
            cache: base("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// The folder for data that must not be lost: approvals, records, installed skills.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The folder for data that can be created again.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns a folder of [`data`](Self::data), and creates it if necessary; an empty name is the
    /// folder itself.
    pub fn data_folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        made(&self.data, name)
    }

    /// Returns a folder of [`cache`](Self::cache), and creates it if necessary.
    pub fn cache_folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        made(&self.cache, name)
    }
}

fn made(base: &Path, name: &str) -> Result<PathBuf, StoreError> {
    store::make_folder(base)?;
    if name.is_empty() {
        return Ok(base.to_owned());
    }
    let folder = base.join(name);
    store::make_folder(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(variables: &[(&str, &str)], home: Option<&str>) -> Result<Home, StoreError> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        };
        Home::from_variables(find, home.map(PathBuf::from))
    }

    fn folders(home: &Home) -> (String, String) {
        (home.data().display().to_string(), home.cache().display().to_string())
    }

    fn pair(data: &str, cache: &str) -> (String, String) {
        (data.to_owned(), cache.to_owned())
    }

    #[test]
    fn savoir_home_wins_then_xdg_then_home() {
        let all = [("SAVOIR_HOME", "/s"), ("XDG_DATA_HOME", "/xd"), ("XDG_CACHE_HOME", "/xc")];
        let found = home(&all, Some("/home/me")).unwrap();
        assert_eq!(folders(&found), pair("/s/data", "/s/cache"));
        let found = home(&all[1..], Some("/home/me")).unwrap();
        assert_eq!(folders(&found), pair("/xd/savoir", "/xc/savoir"));
        let found = home(&[("XDG_DATA_HOME", "relative"), ("SAVOIR_HOME", "")], Some("/home/me"));
        assert_eq!(
            folders(&found.unwrap()),
            pair("/home/me/.local/share/savoir", "/home/me/.cache/savoir")
        );
        assert!(matches!(home(&[], None), Err(StoreError::NoHome)));
        assert!(home(&[("SAVOIR_HOME", "here")], None).unwrap().data().is_absolute());
    }

    #[test]
    fn folders_are_created_on_first_use() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(&dir.path().join("home"));
        assert!(!home.data().exists());
        home.data_folder("").unwrap();
        assert!(home.data().is_dir() && !home.cache().exists());
    }

    #[cfg(unix)]
    #[test]
    fn folders_are_accessible_to_their_owner_only() {
        use std::{fs, os::unix::fs::PermissionsExt as _};

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(&dir.path().join("deep/home"));
        let runs = home.data_folder("runs").unwrap();
        for path in [&runs, home.data(), &dir.path().join("deep/home"), &dir.path().join("deep")] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        assert_eq!(mode(&home.cache_folder("python").unwrap()), 0o700);

        fs::set_permissions(home.data(), fs::Permissions::from_mode(0o770)).unwrap();
        let error = home.data_folder("runs").unwrap_err();
        assert!(matches!(&error, StoreError::Exposed { path } if path == home.data()));
        assert!(error.help().starts_with("close it with: chmod go-w "), "{}", error.help());
    }

    #[test]
    fn file_at_the_folder_path_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("data"), "").unwrap();
        let error = Home::at(dir.path()).data_folder("runs").unwrap_err();
        assert!(error.to_string().contains("data cannot be used as a folder"), "{error}");
    }
}
