//! What happened to each field, in words.

use super::{Build, Memory};
use crate::{
    convert::{
        FieldReport, How,
        body::Translation,
        bridge::{Fate, Judged, top, write},
        fields::Written,
        pieces::Piece,
        stash::{HEAD_PATH, KEEP_PATH},
    },
    dialect::Dialect,
    reading::Reading,
    skill::Runner,
};

impl Build<'_, '_> {
    /// Reports a field of the source.
    pub(super) fn tell(&mut self, field: &Judged) {
        let title = self.bridge.target.title();
        let Judged { piece, images, fate } = field;
        let report = match fate {
            _ if !images.is_empty() => {
                let stays = *fate == Fate::Stays;
                images.iter().map(|image| self.image(piece, image, stays)).collect()
            }
            Fate::Stays => {
                let why = format!("{title} leaves it alone");
                vec![FieldReport::new(&piece.key, &piece.key, How::Kept, why)]
            }
            Fate::Spelled => {
                let why = format!("in quotes, since {title} would read it as another type");
                vec![FieldReport::new(&piece.key, &piece.key, How::Kept, why)]
            }
            Fate::Written | Fate::Stashed | Fate::Extended => vec![self.stashed(piece)],
        };
        self.covered.extend(images.iter().map(|image| image.path.clone()));
        self.report.extend(report);
    }

    fn stashed(&self, piece: &Piece) -> FieldReport {
        let place = if self.memory == Memory::Lines { KEEP_PATH } else { HEAD_PATH };
        FieldReport::new(&piece.key, place, How::Moved, self.bridge.why_stashed(piece))
    }

    fn image(&self, piece: &Piece, image: &Written, stays: bool) -> FieldReport {
        let title = self.bridge.target.title();
        let place = self.bridge.place(image).filter(|place| top(place) == piece.key);
        let from = place.unwrap_or(&piece.key);
        let (how, why) = if let Some(near) = &image.near {
            (How::Approximated, near.clone())
        } else if let Some(tidied) = self.bridge.tidied(image) {
            (How::Approximated, tidied)
        } else if let Some(limit) = self.cut_at(image) {
            (How::Approximated, format!("{title} shows the first {limit} characters"))
        } else if stays {
            (How::Kept, "the same field".to_owned())
        } else if image.path == from {
            (How::Moved, format!("written as {title} writes it"))
        } else {
            (How::Moved, format!("{title} has it at `{}`", image.path))
        };
        FieldReport::new(from, &image.path, how, why)
    }

    /// The length at which the target cuts a description that is longer.
    fn cut_at(&self, image: &Written) -> Option<usize> {
        let limit = self.bridge.target.language().description_limit()?;
        let long = image.value.as_str().is_some_and(|text| text.chars().count() > limit);
        (image.path == "description" && long).then_some(limit)
    }

    /// Reports what no field of the source became.
    pub(super) fn added(&self, image: &Written) -> FieldReport {
        let skill = self.bridge.skill;
        let near = image.near.clone();
        let other_file = self.bridge.place(image).filter(|place| place.contains('#'));
        let commands = skill.tools.iter().any(|tool| matches!(tool.runner, Runner::Command(_)));
        let how = if near.is_some() { How::Approximated } else { How::Moved };
        if let Some(place) = other_file {
            let why = format!("{} has it at `{}`", self.bridge.target.title(), image.path);
            return FieldReport::new(place, &image.path, how, near.unwrap_or(why));
        }
        if image.model == "tools" && commands {
            let why = near.unwrap_or_else(|| "declared in the body".to_owned());
            return FieldReport {
                field: "tools".into(),
                ..FieldReport::new("body", &image.path, how, why)
            };
        }
        let why = near.unwrap_or_else(|| match self.memory {
            Memory::Nothing => "made from the folder's name and the text".to_owned(),
            _ => format!("{} assumes it", self.bridge.source.title()),
        });
        FieldReport::added(&image.path, how, why)
    }

    /// Reports `metadata` and what the target made of it.
    pub(super) fn tell_metadata(&mut self, field: Option<&Judged>, at_home: bool) {
        if let Some(Judged { piece, images, .. }) = field {
            let same = |image: &&Written| self.bridge.place(image) == Some(image.path.as_str());
            let moved: Vec<FieldReport> = images
                .iter()
                .filter(|image| !(at_home && same(image)))
                .map(|image| self.image(piece, image, false))
                .collect();
            if at_home {
                let why = "the same field";
                self.report.push(FieldReport::new("metadata", "metadata", How::Kept, why));
            } else {
                self.report.push(self.stashed(piece));
            }
            self.report.extend(moved);
            self.covered.extend(images.iter().map(|image| image.path.clone()));
        }
        let added: Vec<FieldReport> = self
            .bridge
            .in_file()
            .filter(|image| image.path.starts_with("metadata."))
            .filter(|image| !self.covered.contains(&image.path))
            .map(|image| self.added(image))
            .collect();
        self.report.extend(added);
    }

    /// Reports what goes to other files, and the file of the source that the target ignores.
    pub(super) fn side_files(&mut self) {
        let written = self.bridge.fields.written.iter();
        let other = written.filter(|image| image.path.contains('#'));
        let added: Vec<FieldReport> = other
            .filter(|image| !self.covered.contains(&image.path))
            .map(|image| self.added(image))
            .collect();
        self.report.extend(added);
        for place in self.bridge.unread_files() {
            let why = format!("{} does not read it; the file stays", self.bridge.target.title());
            self.report.push(FieldReport::new(&place, &place, How::Kept, why));
        }
    }
}

pub(super) fn body_report(
    translation: &Translation,
    reading: &Reading,
    target: Dialect,
) -> FieldReport {
    let (how, why) = match translation {
        Translation::Same => (How::Kept, "byte for byte".to_owned()),
        Translation::Rewritten { before, .. } => (
            How::Moved,
            format!("placeholders like `{}` became those of {target}", before.sample()),
        ),
        Translation::Stuck => {
            let names: Vec<String> =
                reading.skill.inputs.iter().map(|input| format!("`{}`", input.name)).collect();
            let names = names.join(", ");
            let title = target.title();
            (How::Approximated, format!("{title} does not fill in its placeholders for {names}"))
        }
    };
    FieldReport::new("body", "body", how, why)
}

/// Reports tools whose commands stand in the body and that the target does not declare.
pub(super) fn body_tools(reading: &Reading, target: Dialect) -> Option<FieldReport> {
    let declared = write(target, &reading.skill).written.iter().any(|image| image.model == "tools");
    let tools = reading.skill.tools.iter().filter(|_| !declared);
    let commands = tools.into_iter().any(|tool| matches!(tool.runner, Runner::Command(_)));
    commands.then(|| FieldReport {
        field: "tools".into(),
        ..FieldReport::new(
            "body",
            "body",
            How::Approximated,
            format!("{} has no command tools; their sections stay in the body", target.title()),
        )
    })
}
