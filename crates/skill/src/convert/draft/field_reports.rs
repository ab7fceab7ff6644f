//! Builds the report about each field of a conversion.

use super::{Build, StashKind};
use crate::{
    convert::{
        FieldOutcome, FieldReport,
        body::Translation,
        field_lines::FieldLines,
        field_mapper::{FieldAction, PlannedField, top, write},
        fields::WrittenField,
        stash::{HEAD_PATH, KEEP_PATH},
    },
    dialect::Dialect,
    reading::Reading,
    skill::Runner,
};

impl Build<'_, '_> {
    /// Reports a field of the source.
    pub(super) fn report_field(&mut self, field: &PlannedField) {
        let title = self.mapper.target.title();
        let PlannedField { source_lines, images, action } = field;
        let report = match action {
            _ if !images.is_empty() => {
                let stays = *action == FieldAction::KeepLines;
                images.iter().map(|image| self.image(source_lines, image, stays)).collect()
            }
            FieldAction::KeepLines => {
                let why = format!("{title} leaves it alone");
                vec![FieldReport::new(
                    &source_lines.key,
                    &source_lines.key,
                    FieldOutcome::Kept,
                    why,
                )]
            }
            FieldAction::Requote => {
                let why = format!("in quotes, since {title} would read it as another type");
                vec![FieldReport::new(
                    &source_lines.key,
                    &source_lines.key,
                    FieldOutcome::Kept,
                    why,
                )]
            }
            FieldAction::Rewrite | FieldAction::Stash | FieldAction::Extend => {
                vec![self.stashed(source_lines)]
            }
        };
        self.covered.extend(images.iter().map(|image| image.path.clone()));
        self.report.extend(report);
    }

    fn stashed(&self, source_lines: &FieldLines) -> FieldReport {
        let place = if self.stash_kind == StashKind::Lines { KEEP_PATH } else { HEAD_PATH };
        FieldReport::new(
            &source_lines.key,
            place,
            FieldOutcome::Moved,
            self.mapper.why_stashed(source_lines),
        )
    }

    fn image(&self, source_lines: &FieldLines, image: &WrittenField, stays: bool) -> FieldReport {
        let title = self.mapper.target.title();
        let place = self.mapper.place(image).filter(|place| top(place) == source_lines.key);
        let from = place.unwrap_or(&source_lines.key);
        let (how, why) = if let Some(approximation) = &image.approximation {
            (FieldOutcome::Approximated, approximation.clone())
        } else if let Some(tidied) = self.mapper.normalized_value(image) {
            (FieldOutcome::Approximated, tidied)
        } else if let Some(limit) = self.cut_at(image) {
            (FieldOutcome::Approximated, format!("{title} shows the first {limit} characters"))
        } else if stays {
            (FieldOutcome::Kept, "the same field".to_owned())
        } else if image.path == from {
            (FieldOutcome::Moved, format!("written as {title} writes it"))
        } else {
            (FieldOutcome::Moved, format!("{title} has it at `{}`", image.path))
        };
        FieldReport::new(from, &image.path, how, why)
    }

    /// Returns the length at which the target truncates a longer description.
    fn cut_at(&self, image: &WrittenField) -> Option<usize> {
        let limit = self.mapper.target.language().description_limit()?;
        let long = image.value.as_str().is_some_and(|text| text.chars().count() > limit);
        (image.path == "description" && long).then_some(limit)
    }

    /// Reports a target field that has no source field.
    pub(super) fn added(&self, image: &WrittenField) -> FieldReport {
        let skill = self.mapper.skill;
        let approximation = image.approximation.clone();
        let other_file = self.mapper.place(image).filter(|place| place.contains('#'));
        let commands = skill.tools.iter().any(|tool| matches!(tool.runner, Runner::Command(_)));
        let how =
            if approximation.is_some() { FieldOutcome::Approximated } else { FieldOutcome::Moved };
        if let Some(place) = other_file {
            let why = format!("{} has it at `{}`", self.mapper.target.title(), image.path);
            return FieldReport::new(place, &image.path, how, approximation.unwrap_or(why));
        }
        if image.model == "tools" && commands {
            let why = approximation.unwrap_or_else(|| "declared in the body".to_owned());
            return FieldReport {
                field: "tools".into(),
                ..FieldReport::new("body", &image.path, how, why)
            };
        }
        let why = approximation.unwrap_or_else(|| match self.stash_kind {
            StashKind::Nothing => "made from the folder's name and the text".to_owned(),
            _ => format!("{} assumes it", self.mapper.source.title()),
        });
        FieldReport::added(&image.path, how, why)
    }

    /// Reports the outcome for `metadata`.
    pub(super) fn report_metadata(&mut self, field: Option<&PlannedField>, at_home: bool) {
        if let Some(PlannedField { source_lines, images, .. }) = field {
            let same =
                |image: &&WrittenField| self.mapper.place(image) == Some(image.path.as_str());
            let moved: Vec<FieldReport> = images
                .iter()
                .filter(|image| !(at_home && same(image)))
                .map(|image| self.image(source_lines, image, false))
                .collect();
            if at_home {
                let why = "the same field";
                self.report.push(FieldReport::new("metadata", "metadata", FieldOutcome::Kept, why));
            } else {
                self.report.push(self.stashed(source_lines));
            }
            self.report.extend(moved);
            self.covered.extend(images.iter().map(|image| image.path.clone()));
        }
        let added: Vec<FieldReport> = self
            .mapper
            .in_file()
            .filter(|image| image.path.starts_with("metadata."))
            .filter(|image| !self.covered.contains(&image.path))
            .map(|image| self.added(image))
            .collect();
        self.report.extend(added);
    }

    /// Reports fields that are written to other files, and files of the source that the target
    /// ignores.
    pub(super) fn side_files(&mut self) {
        let written = self.mapper.fields.written.iter();
        let other = written.filter(|image| image.path.contains('#'));
        let added: Vec<FieldReport> = other
            .filter(|image| !self.covered.contains(&image.path))
            .map(|image| self.added(image))
            .collect();
        self.report.extend(added);
        for place in self.mapper.unread_files() {
            let why = format!("{} does not read it; the file stays", self.mapper.target.title());
            self.report.push(FieldReport::new(&place, &place, FieldOutcome::Kept, why));
        }
    }
}

pub(super) fn body_report(
    translation: &Translation,
    reading: &Reading,
    target: Dialect,
) -> FieldReport {
    let (how, why) = match translation {
        Translation::Same => (FieldOutcome::Kept, "byte for byte".to_owned()),
        Translation::Rewritten { before, .. } => (
            FieldOutcome::Moved,
            format!("placeholders like `{}` became those of {target}", before.sample()),
        ),
        Translation::Stuck => {
            let names: Vec<String> =
                reading.skill.inputs.iter().map(|input| format!("`{}`", input.name)).collect();
            let names = names.join(", ");
            let title = target.title();
            (
                FieldOutcome::Approximated,
                format!("{title} does not fill in its placeholders for {names}"),
            )
        }
    };
    FieldReport::new("body", "body", how, why)
}

/// Reports tools whose commands are in the body and that the target cannot declare.
pub(super) fn body_tools(reading: &Reading, target: Dialect) -> Option<FieldReport> {
    let declared = write(target, &reading.skill).written.iter().any(|image| image.model == "tools");
    let tools = reading.skill.tools.iter().filter(|_| !declared);
    let commands = tools.into_iter().any(|tool| matches!(tool.runner, Runner::Command(_)));
    commands.then(|| FieldReport {
        field: "tools".into(),
        ..FieldReport::new(
            "body",
            "body",
            FieldOutcome::Approximated,
            format!("{} has no command tools; their sections stay in the body", target.title()),
        )
    })
}
