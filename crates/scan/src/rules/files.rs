//! Rules about file types: programs, locked archives, unread files.

use crate::{
    Confidence, Severity,
    action::Action,
    archive::{self, FileType},
    collect::extension,
    context::{Context, FindingDraft, confidence_that_code_runs},
    rule::rule,
};

rule! {
    /// The scanner could not read a file.
    ///
    /// ## Why
    ///
    /// A file that was not read may be malicious. It may be broken by accident, or on purpose, so
    /// that scanners fail while the program still runs.
    ///
    /// ## Fix
    ///
    /// Repair the file, split it, or write it in Python, JavaScript or shell.
    ///
    /// ## Bad
    ///
    /// ````python file=scripts/run.py
    /// print "this is not Python any more"
    /// ````
    ///
    /// ## Good
    ///
    /// ````python file=scripts/run.py
    /// print("this is Python")
    /// ````
    UNREAD_FILE = "unread-file", High
}

rule! {
    /// The skill contains a compiled program.
    ///
    /// ## Why
    ///
    /// Neither reviewers nor scanners can see what it does.
    ///
    /// ## Fix
    ///
    /// Ship the source, or name a package that the user installs.
    BINARY_PROGRAM = "binary-program", High, blocks true, run binary_program
}

fn binary_program(context: &mut Context<'_>) {
    let files = context.files;
    for (path, bytes) in files.iter() {
        if let FileType::Program(what) = archive::file_type(bytes) {
            let draft =
                FindingDraft::new(Severity::High, Confidence::High, format!("the file is {what}"));
            context.report_file(&BINARY_PROGRAM, path, draft);
        }
    }
}

rule! {
    /// The content of a file does not match its file name extension.
    ///
    /// ## Why
    ///
    /// A program that is named like a picture is overlooked by reviewers and by many tools.
    ///
    /// ## Fix
    ///
    /// Use the file name extension that matches the content.
    DISGUISED_FILE = "disguised-file", Critical, blocks true, run disguised_file
}

fn disguised_file(context: &mut Context<'_>) {
    let files = context.files;
    for (path, bytes) in files.iter() {
        let ending = extension(path);
        let harmless = matches!(
            ending.as_str(),
            "png"
                | "jpg"
                | "jpeg"
                | "gif"
                | "webp"
                | "svg"
                | "ico"
                | "pdf"
                | "txt"
                | "md"
                | "json"
                | "csv"
                | "yaml"
                | "yml"
                | "ttf"
                | "otf"
                | "woff"
                | "woff2"
                | "mp3"
                | "mp4"
                | "wav"
                | "html"
                | "xml"
        );
        if !harmless {
            continue;
        }
        let draft = match archive::file_type(bytes) {
            FileType::Program(what) => FindingDraft::new(
                Severity::Critical,
                Confidence::High,
                format!("the file is named .{ending} but is {what}"),
            ),
            FileType::Zip | FileType::Packed(_) => FindingDraft::new(
                Severity::High,
                Confidence::High,
                format!("the file is named .{ending} but is an archive"),
            ),
            FileType::Other if is_picture(&ending) && bytes.starts_with(b"#!") => {
                FindingDraft::new(
                    Severity::Critical,
                    Confidence::High,
                    format!("the file is named .{ending} but is a script"),
                )
            }
            _ => continue,
        };
        context.report_file(&DISGUISED_FILE, path, draft);
    }
}

fn is_picture(ending: &str) -> bool {
    matches!(
        ending,
        "png"
            | "jpg"
            | "jpeg"
            | "gif"
            | "webp"
            | "ico"
            | "pdf"
            | "ttf"
            | "otf"
            | "woff"
            | "woff2"
            | "mp3"
            | "mp4"
            | "wav"
    )
}

rule! {
    /// An archive has a password, contains another archive, or is unlocked by a command.
    ///
    /// ## Why
    ///
    /// The password keeps only scanners out, because it is written next to the archive.
    ///
    /// ## Fix
    ///
    /// Ship the files unpacked.
    ///
    /// ## Bad
    ///
    /// ````bash file=scripts/setup.sh
    /// unzip -P skill payload.zip
    /// ````
    ///
    /// ## Good
    ///
    /// ````bash file=scripts/setup.sh
    /// unzip -o fonts.zip
    /// ````
    LOCKED_ARCHIVE = "locked-archive", High, run locked_archive
}

fn locked_archive(context: &mut Context<'_>) {
    context.for_each_action(&LOCKED_ARCHIVE, |fragment, action, _| {
        (*action == Action::UnpacksLockedArchive).then(|| {
            FindingDraft::new(
                Severity::High,
                confidence_that_code_runs(fragment),
                "an archive is unlocked with a password",
            )
        })
    });
    let files = context.files;
    for (path, bytes) in files.iter() {
        if let FileType::Packed(what) = archive::file_type(bytes) {
            let draft = FindingDraft::new(
                Severity::High,
                Confidence::Medium,
                format!("the file is packed with {what} and cannot be scanned"),
            );
            context.report_file(&LOCKED_ARCHIVE, path, draft);
        }
    }
}
