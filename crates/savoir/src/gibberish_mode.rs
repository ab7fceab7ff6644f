//! The modes of gibb.eri.sh.

use clap::ValueEnum;

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
