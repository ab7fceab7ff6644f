//! The modes of gibb.eri.sh.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum GibberishMode {
    #[default]
    Global,
    Dev,
    Meeting,
    Writer,
}

impl GibberishMode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Global => "Global",
            Self::Dev => "Dev",
            Self::Meeting => "Meeting",
            Self::Writer => "Writer",
        }
    }
}
