//! The files of one skill.

/// The files of one skill: paths, with `/` between the parts, and their bytes.
#[derive(Clone, Debug, Default)]
pub struct Files<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Files<'a> {
    /// Paths and bytes, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + '_ {
        self.0.iter().copied()
    }
}

impl<'a> FromIterator<(&'a str, &'a [u8])> for Files<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}
