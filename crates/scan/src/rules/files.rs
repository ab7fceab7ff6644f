//! What files are.

use crate::{
    Confidence, Severity,
    act::Act,
    archive::{self, Kind},
    context::{Context, Told, sureness},
    gather::ending,
    rule::rule,
};

rule! {
    /// A file could not be read by the scanner.
    ///
    /// ## Why
    ///
    /// What was not read is not known to be clean. A file may be broken by accident, or so that
    /// scanners give up while the program still runs.
    ///
    /// ## Fix
    ///
    /// Mend the file, split it, or write it in Python, JavaScript or shell.
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
    /// The skill brings a program that was compiled.
    ///
    /// ## Why
    ///
    /// Nobody can read what it does.
    ///
    /// ## Fix
    ///
    /// Ship the source, or name a package that the user installs.
    BINARY_PROGRAM = "binary-program", High, blocks true, run binary_program
}

fn binary_program(context: &mut Context<'_>) {
    let files = context.files;
    for (path, bytes) in files.iter() {
        if let Kind::Program(what) = archive::kind(bytes) {
            let told = Told::new(Severity::High, Confidence::High, format!("the file is {what}"));
            context.tell_file(&BINARY_PROGRAM, path, told);
        }
    }
}

rule! {
    /// A file is not what its name says.
    ///
    /// ## Why
    ///
    /// A program that calls itself a picture passes the eye of a reviewer, and the rules of many
    /// tools.
    ///
    /// ## Fix
    ///
    /// Give the file the ending that belongs to it.
    DISGUISED_FILE = "disguised-file", Critical, blocks true, run disguised_file
}

fn disguised_file(context: &mut Context<'_>) {
    let files = context.files;
    for (path, bytes) in files.iter() {
        let ending = ending(path);
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
        let told = match archive::kind(bytes) {
            Kind::Program(what) => Told::new(
                Severity::Critical,
                Confidence::High,
                format!("the file calls itself .{ending} and is {what}"),
            ),
            Kind::Zip | Kind::Packed(_) => Told::new(
                Severity::High,
                Confidence::High,
                format!("the file calls itself .{ending} and is an archive"),
            ),
            Kind::Other if is_picture(&ending) && bytes.starts_with(b"#!") => Told::new(
                Severity::Critical,
                Confidence::High,
                format!("the file calls itself .{ending} and is a script"),
            ),
            _ => continue,
        };
        context.tell_file(&DISGUISED_FILE, path, told);
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
    /// An archive is locked, packed twice, or unlocked by a command.
    ///
    /// ## Why
    ///
    /// A password keeps scanners out, and nobody else: it is written beside the archive.
    ///
    /// ## Fix
    ///
    /// Ship the files as they are.
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
    context.each_act(&LOCKED_ARCHIVE, |piece, act, _| {
        (*act == Act::Unlocks).then(|| {
            Told::new(Severity::High, sureness(piece), "an archive is unlocked with a password")
        })
    });
    let files = context.files;
    for (path, bytes) in files.iter() {
        if let Kind::Packed(what) = archive::kind(bytes) {
            let told = Told::new(
                Severity::High,
                Confidence::Medium,
                format!("the file is packed with {what} and is not looked into"),
            );
            context.tell_file(&LOCKED_ARCHIVE, path, told);
        }
    }
}
