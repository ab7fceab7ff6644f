//! Rules about programs that the user is asked to download and start.

use std::sync::LazyLock;

use crate::{
    Confidence, Severity,
    context::{Context, FindingDraft},
    fragment::{Language, TextFragment, fence_language},
    hidden_text,
    host::HostReputation,
    passage::{self, Passage, passages_at},
    phrase::Phrases,
    quoted_attacks,
    rule::rule,
};
use savoir_skill::{Span, markdown::Outline};

rule! {
    /// The user is told to download and run something by hand, or to unlock an archive.
    ///
    /// ## Why
    ///
    /// A "prerequisite" that is downloaded as an archive with a password, or pasted into a
    /// terminal from an unknown page, is how most known malicious skills deliver their payload:
    /// scanners cannot read it.
    ///
    /// ## Fix
    ///
    /// Name a package of a known package manager.
    ///
    /// ## Bad
    ///
    /// ````markdown file=references/setup.md
    /// Download [the helper](https://github.com/x/y/releases/helper.zip), extract it with the
    /// password `skill`, and run helper.exe before you use this skill.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown file=references/setup.md
    /// Install the helper with `brew install jq`.
    /// ````
    MANUAL_PAYLOAD = "manual-payload", Critical, blocks true, run manual_payload
}

static VISIT: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "visit|open|go|see|take|copy|from ~8 run|execute|paste|follow|enter|copy ~4 command|commands|snippet|code|script|line",
        "run|execute|paste|enter ~2 command|commands|snippet|code|script|line ~4 shown|there|displayed|listed|page|from|on",
        "snippet|command|code|script ~2 from|at ~12 run|execute|paste",
        "follow ~4 steps|instructions there|shown|on",
        "page|site ~2 shows|prints|gives ~4 line|command|code",
        "line|command|one ~3 entered|goes ~4 shell|terminal|powershell",
        "copy|paste ~6 into|in ~2 terminal|powershell|shell|console|prompt",
        "open ~2 terminal|powershell ~3 paste|run|execute|enter",
    ])
});

static TRICK: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "right click ~4 open ~4 confirm|anyway|again",
        "download|run|open|install|keep|trotzdem anyway|ausführen",
        "enable|allow content|macros|editing",
        "answer|click|choose|say yes to ~1 all|every|everything",
        "tick|check|choose|select ~2 unblock",
        "unidentified developer",
        "mark|make|making ~4 executable",
        "right|rights|permission|bit ~3 executed|execute",
        "neither|no|nor|without ~2 checksum|signature|hash ~6 needed|necessary|required|confirmation|question",
        "with sudo",
        "administrator|admin rights|access|question|prompt",
        "yes|accept|confirm ~3 admin|administrator|uac|security",
        "force all|yes",
        "missing signature",
        "as|run administrator|admin|root",
        "full disk access",
        "load unpacked",
        "developer mode",
        "unknown apps|sources",
        "play protect",
        "fausse alerte",
        "todos modos",
        "execution policy bypass",
        "executionpolicy bypass",
        "unsafe perm",
        "foreground scripts",
        "so preload",
        "trust ~2 publisher|developer|certificate|profile",
        "configuration|onboarding|device|install|management ~1 profile|management",
        "root certificate",
        "always trust",
        "xattr cr|d|c|rc",
        "antivirus|smartscreen|gatekeeper|defender|quarantine|unsigned ~8 ignore|allow|disable|off|bypass|exclude|exclusion|exclusions|exception|exceptions|restore|anyway|skip|complain|complains|pause|false",
        "ignore|allow|disable|turn|switch|bypass|pause|skip ~6 antivirus|smartscreen|gatekeeper|defender|quarantine",
    ])
});

/// Phrases that make people paste a command that they do not see.
static CLICK_FIX: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "copy ~1 command|line|code|snippet ~3 terminal|powershell ~1 paste",
        "press|hit ~2 win|windows ~1 r",
        "press|hit ~1 ctrl|cmd|command|strg|control ~1 v",
    ])
});

/// Programs, by what people call them.
static PROGRAM_WORDS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "binary|executable|installer|runner|companion|helper|driver|codec|daemon|bridge|launcher|updater|build|builds",
    ])
});

static TAKES_BUILD: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "take|pull|grab|obtain|retrieve|pick|copy ~6 build|binary|executable|program|installer|release|package|agent ~8 from|at",
    ])
});

static TERMINAL: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::new(&["terminal|powershell|shell|console|prompt|cmd"]));

static UNLOCK: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "password|pass|passcode|passphrase|pw|passwort|kennwort|clave",
        "mot de passe",
        "code|secret ~3 type|enter|is|lautet",
        "ask|asks for ~2 code|password|key",
        "key|code|pin|word ~4 open|unlock|extract|unpack|is|type|enter",
        "opens|unlocks|unpacks|extract|extracts|unlock ~2 with|using",
        "open|unpack|unzip|extract|unlock|decrypt ~4 with|using ~3 code|password|key|pin|word|passphrase|phrase",
        "prompted|asked for ~3 code|password|key",
        "protected|encrypted|secured|locked",
    ])
});

static FIRST: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "muss|doit|requisito|hay|avant|damit|until|refuses|mandatory|missing|falta|sans|ohne|prior",
        "before|must|required|requires|require|prerequisite|prerequisites|first|need|needs|needed|requirements|setup|missing|without",
        "has|have to",
    ])
});

static STARTS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "run|runs|execute|launch|start|starts|open|install|installs|installed|double|unpack|extract|msiexec|mount|unzip|paste|sideload|activate|import|importing|boot|pull",
        "ausführen|anklicken|entpacken|installieren|lancer|exécutez|installé|ejecutarlo|ejecutar|abre|instalado|descomprime",
    ])
});

/// Extensions of programs and installers.
const PROGRAM_EXTENSIONS: [&str; 29] = [
    ".xlsm", ".docm", ".pptm", ".xlam", ".mobileconfig", ".iso", ".img", ".lnk", ".msix", ".reg",
    ".cmd", ".deb", ".rpm", ".crx", ".exe", ".msi", ".dmg", ".pkg", ".scr", ".bat", ".run", ".hta",
    ".vsix", ".command", ".appimage", ".jar", ".apk", ".ps1", ".vbs",
];
const ARCHIVE_EXTENSIONS: [&str; 11] = [
    ".zip", ".rar", ".7z", ".tar.gz", ".tgz", "archive", " rar", "7-zip", "压缩包", "解压", ".whl",
];

/// File sharing services.
const FILE_SHARING_HOSTS: [&str; 14] = [
    "mega.nz", "drive.google.com", "dropbox.com", "mediafire.com", "1fichier.com", "pan.baidu.com",
    "t.me/", "gist.", "cdn.discordapp.com", "wetransfer", "/releases/", "transfer.sh", "onedrive",
    "sharepoint.com",
];

fn manual_payload(context: &mut Context<'_>) {
    let is_about_attacks = context.topic().is_about_attacks();
    context.for_each_fragment(&MANUAL_PAYLOAD, |fragment| {
        let Some(prose) = fragment.prose() else { return check_printed_texts(fragment) };
        let mut found = check_message_boxes(fragment);
        let quoteless =
            if is_about_attacks { quoted_attacks::without_quotations(&prose.text) } else { None };
        for passage in split_sections(quoteless.as_ref().unwrap_or(&prose.text)) {
            if let Some(draft) = score_payload(&passage) {
                found.push((passage.span, draft));
            }
        }
        found
    });
}

/// Checks messages to the user in code blocks of a document.
fn check_message_boxes(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let text: &str = &fragment.text;
    if fragment.language != Language::Markdown {
        return Vec::new();
    }
    let outline = Outline::new(text, Span::new(0, text.len()));
    let plain = outline.fences.iter().filter(|fence| {
        let (info, content) = (fence.info.slice(text), fence.content.slice(text));
        let data = content.trim_start().starts_with(['{', '[', '<']);
        !data
            && matches!(info.trim(), "" | "text" | "txt" | "plaintext")
            && fence_language(info, content) == Language::Other
    });
    let found = plain.filter_map(|fence| {
        let passage = Passage::new(fence.content.slice(text), fence.content.start);
        Some((fence.content, score_payload(&passage)?))
    });
    found.collect()
}

/// Finds a command that is copied to the clipboard for the user to paste.
fn check_clipboard(fragment: &TextFragment<'_>) -> Option<(Span, FindingDraft)> {
    const CLIPBOARDS: [&str; 7] = [
        "pbcopy", "xclip", "wl-copy", "pyperclip.copy", "clipboard.writeText", "Set-Clipboard",
        "clip.exe",
    ];
    let text: &str = &fragment.text;
    let at = CLIPBOARDS.iter().find_map(|mark| text.find(mark))?;
    let fetches = ["curl ", "wget ", "mshta", "iwr ", "irm "].iter().any(|one| text.contains(one));
    let runs = ["$(", "| sh", "| bash", "|sh", "|bash", "iex", "mshta"];
    let lower = text.to_lowercase();
    let pastes = lower.contains("paste") && (lower.contains("terminal") || lower.contains("win"));
    let message = "a command is put into the clipboard for the user to paste and run";
    (fetches && pastes && runs.iter().any(|mark| text.contains(mark))).then(|| {
        (Span::new(at, at + 4), FindingDraft::new(Severity::High, Confidence::High, message))
    })
}

/// Checks texts that a script prints: triple-quoted strings and here-documents.
fn check_printed_texts(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    if fragment.depth > 0 {
        return Vec::new();
    }
    if let Some(found) = check_clipboard(fragment) {
        return vec![found];
    }
    if !matches!(fragment.language, Language::Shell | Language::Python) {
        return Vec::new();
    }
    let texts = hidden_text::find_hidden_texts(fragment)
        .into_iter()
        .filter(|text| text.what != "a comment" && !text.text.trim_start().starts_with('<'));
    let found =
        texts.filter_map(|text| Some((text.span, score_payload(&Passage::new(&text.text, 0))?)));
    found.collect()
}

/// Minimum score of a passage that is reported.
const MIN_PAYLOAD_SCORE: u32 = 6;

/// Scores whether a passage asks for a manual download that cannot be scanned.
fn score_payload(passage: &Passage<'_>) -> Option<FindingDraft> {
    let lower = passage.text.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    let links = passage.links();
    let strange = || {
        links.iter().filter(|(_, reputation)| {
            !matches!(reputation, HostReputation::KnownInstaller | HostReputation::Unknown)
        })
    };
    if passage.matches(&CLICK_FIX)
        && !passage.warns()
        && (!links.is_empty() || has(&["verif", "clipboard"]))
    {
        let message = "the text tells the user to paste a command that is not shown";
        return Some(FindingDraft::new(Severity::High, Confidence::High, message));
    }
    let trick = passage.find_where(&TRICK, |from, to| !is_identifier(passage, from, to)).is_some()
        || has(&["管理员身份", "误报", "白名单", "杀毒", "仍要打开", "无法验证开发者"]);
    let shady = links.iter().any(|(_, reputation)| *reputation == HostReputation::Suspicious);
    let fetches =
        has(&["download", "://", " get ", "fetch", "下载", "laden", "descargar", "скача"])
            || passage.matches(&TAKES_BUILD);
    let (program, archive) = (names_program(&lower), has(&ARCHIVE_EXTENSIONS) && fetches);
    let direct = strange().any(|(url, _)| {
        PROGRAM_EXTENSIONS
            .iter()
            .chain(&ARCHIVE_EXTENSIONS)
            .any(|end| url.to_lowercase().ends_with(end))
    });
    let starts = passage.matches(&STARTS) || has(&["运行", "执行"]);
    let unlock = (passage.matches(&UNLOCK) || has(&["密码", "提取码"])) && archive;
    let visits = passage.matches(&VISIT)
        || has(&["复制并执行", "复制并运行", "粘贴到终端", "粘贴并执行", "粘贴并运行"]);
    let share =
        links.iter().any(|(url, _)| FILE_SHARING_HOSTS.iter().any(|share| url.contains(share)));
    let unknown = !passage.warns() && strange().any(|(url, _)| !url.contains("github.com"));
    let any = program
        || archive
        || direct
        || visits
        || share
        || shady
        || trick && (has(&["download"]) || fetches && unknown);
    let known =
        !links.is_empty() && links.iter().all(|(_, one)| *one == HostReputation::KnownInstaller);
    if known || strange().next().is_none() && !(trick && fetches) || !any {
        return None;
    }
    let weight = [
        (program, 2),
        (archive, 1),
        (direct, 1),
        (starts, 1),
        (unlock, 3),
        (visits, 3),
        (trick, 4),
        (shady, 2),
        (shady && (program || direct), 2),
        (shady && lower.contains("sudo "), 2),
        (share, 2),
        (passage.matches(&FIRST) || lower.contains("必须"), 1),
        (passage.hides() || passage.demands_no_questions(), 1),
        (trick && unknown && passage.matches(&PROGRAM_WORDS), 1),
        (visits && unknown && passage.matches(&TERMINAL), 1),
    ];
    let weight: u32 = weight.iter().filter(|(holds, _)| *holds).map(|(_, weight)| weight).sum();
    if unlock
        && !passage.warns()
        && starts
        && has(&["download", "://"])
        && (program || shady || passage.says(&["password"]))
    {
        let message =
            "the text tells the user to download an archive, unlock it and run its content";
        return Some(FindingDraft::new(Severity::Critical, Confidence::High, message));
    }
    // A text about attacks names the same things; it needs more.
    let enough = if passage.warns() { MIN_PAYLOAD_SCORE + 2 } else { MIN_PAYLOAD_SCORE };
    (weight >= enough).then(|| {
        let message =
            "the text tells the user to download or paste something and run it before the skill works";
        FindingDraft::new(Severity::High, Confidence::Medium, message)
    })
}

/// Whether words are one name: `roles/run.admin`, `Cloud Run Admin`.
fn is_identifier(passage: &Passage<'_>, from: usize, to: usize) -> bool {
    let (Some(first), Some(last)) = (passage.words.get(from), passage.words.get(to - 1)) else {
        return false;
    };
    let said = &passage.text[first.span.start..last.span.end];
    to - from > 1
        && (!said.contains(char::is_whitespace) && said.contains(['.', '/', '_'])
            || (from..to).all(|at| passage.is_name_at(at)))
}

/// Whether a text names a file with the extension of a program, and not a host such as `x.run.app`.
fn names_program(lower: &str) -> bool {
    PROGRAM_EXTENSIONS.iter().any(|extension| {
        lower.match_indices(extension).any(|(at, _)| {
            let rest = &lower[at + extension.len()..];
            let label = rest.strip_prefix('.').unwrap_or(rest);
            !label.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}

/// Returns short sections as one passage each, and long ones by paragraph.
fn split_sections(text: &str) -> Vec<Passage<'_>> {
    const MAX_SHORT_SECTION_BYTES: usize = 1_000;
    let mut found = Vec::new();
    let mut at = passage::frontmatter_end(text);
    for part in text[at..].split("\n#") {
        if part.len() < MAX_SHORT_SECTION_BYTES {
            found.push(Passage::new(part, at));
        } else {
            found.extend(passages_at(part, at));
        }
        at += part.len() + 2;
    }
    found
}
