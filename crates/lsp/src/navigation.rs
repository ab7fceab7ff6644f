//! Document links, definitions and references.

use std::path::Path;

use lsp_types::{DocumentLink, Location, Position, Range};
use savoir_lint::Span;
use url::Url;

use crate::{
    lookup::{self, LinkTarget, touches},
    mentions,
    open_file::OpenFile,
    position::Lines,
    state::State,
};

pub(crate) fn links(state: &State, file: &OpenFile) -> Vec<DocumentLink> {
    let Some(checked) = state.checked(file) else { return Vec::new() };
    let links = lookup::links(&checked.reading.document, file.folder().as_deref());
    let link = |link: lookup::BodyLink| {
        let target = match &link.target {
            LinkTarget::File(path) if path.exists() => Url::from_file_path(path).ok()?,
            LinkTarget::File(_) => return None,
            LinkTarget::Address(address) => Url::parse(address).ok().filter(is_web)?,
        };
        let range = file.range(link.span);
        Some(DocumentLink { range, target: Some(target), tooltip: None, data: None })
    };
    links.into_iter().filter_map(link).collect()
}

/// Links to other programs of the machine are not offered.
fn is_web(address: &Url) -> bool {
    matches!(address.scheme(), "http" | "https" | "mailto")
}

/// The definition of the element at a position: a file, an input, or a skill.
pub(crate) fn definition(state: &State, file: &OpenFile, position: Position) -> Vec<Location> {
    let offset = file.offset(position);
    if let Some(checked) = state.checked(file) {
        let (document, dialect) = (&checked.reading.document, checked.reading.detection.dialect);
        let links = lookup::links(document, file.folder().as_deref());
        if let Some(link) = links.into_iter().find(|link| touches(link.span, offset))
            && let LinkTarget::File(path) = link.target
        {
            return start_of(&path).into_iter().collect();
        }
        let uses = lookup::placeholders(document, dialect);
        if let Some(found) = uses.into_iter().find(|found| touches(found.span, offset)) {
            let declared = lookup::declarations(document, dialect).into_iter();
            let places = declared.filter(|(name, _)| *name == found.name);
            return places.map(|(_, span)| location(file, span)).collect();
        }
    }
    let Some(mention) = mentions::at(state, file, offset) else { return Vec::new() };
    let skills = state.index.named(&mention.name);
    skills.iter().filter_map(|skill| start_of(&skill.path)).collect()
}

/// All places of an input in its file, or of a skill in the workspace.
pub(crate) fn references(
    state: &State,
    file: &OpenFile,
    position: Position,
    with_declaration: bool,
) -> Vec<Location> {
    let offset = file.offset(position);
    if let Some(checked) = state.checked(file) {
        let (document, dialect) = (&checked.reading.document, checked.reading.detection.dialect);
        let declared = lookup::declarations(document, dialect);
        let uses = lookup::placeholders(document, dialect);
        let name = declared
            .iter()
            .find(|(_, span)| touches(*span, offset))
            .map(|(name, _)| name.clone())
            .or_else(|| {
                uses.iter().find(|one| touches(one.span, offset)).map(|one| one.name.clone())
            });
        if let Some(name) = name {
            let places = uses.iter().filter(|found| found.name == name).map(|found| found.span);
            let own = declared.iter().filter(|(known, _)| with_declaration && *known == name);
            let spans = own.map(|(_, span)| *span).chain(places);
            return spans.map(|span| location(file, span)).collect();
        }
    }
    let Some(mention) = mentions::at(state, file, offset) else { return Vec::new() };
    let files = mentions::find(state, &mention.name);
    let mut locations = Vec::new();
    for found in files {
        let Ok(uri) = Url::from_file_path(&found.path) else { continue };
        let lines = Lines::new(&found.text);
        let own = mentions::name_field(&found.text).map(|own| own.span);
        for mention in found.mentions {
            if with_declaration || own != Some(mention.span) {
                let range = lines.range(&found.text, mention.span, state.client.encoding);
                locations.push(Location { uri: uri.clone(), range });
            }
        }
    }
    locations
}

fn location(file: &OpenFile, span: Span) -> Location {
    Location { uri: file.uri.clone(), range: file.range(span) }
}

fn start_of(path: &Path) -> Option<Location> {
    let uri = Url::from_file_path(path).ok().filter(|_| path.exists())?;
    Some(Location { uri, range: Range::default() })
}
