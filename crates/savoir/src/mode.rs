//! The situations that gibb.eri.sh knows.

use clap::ValueEnum;

/// Modes as gibb.eri.sh writes them.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum Mode {
    #[default]
    Global,
    Dev,
    Meeting,
    Writer,
}

impl Mode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Global => "Global",
            Self::Dev => "Dev",
            Self::Meeting => "Meeting",
            Self::Writer => "Writer",
        }
    }
}
