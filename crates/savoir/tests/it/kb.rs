//! Tests `savoir kb`: documents without a server.

use crate::{
    live_server::{Provider, ProviderBehavior},
    support::Sandbox,
};

#[test]
fn a_round_trip() {
    let sandbox = Sandbox::new();
    sandbox.write("returns.md", "# Returns\n\nReturns are paid within 14 days.\n");
    sandbox.write("broken.txt", b"\xff\xfe\x00");
    let run = sandbox.run(&["kb", "add", "handbook", "returns.md"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("hint: create it with: savoir kb create handbook\n"), "{run}");
    assert_eq!(sandbox.run(&["kb", "create", "handbook"]).code, 0);
    assert_eq!(sandbox.run(&["kb", "create", "handbook"]).code, 2);

    let run =
        sandbox.run(&["kb", "add", "handbook", "returns.md", "broken.txt", "gone.md", "x.exe"]);
    assert_eq!(run.code, 1, "{run}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "completed   returns.md");
    assert!(lines[1].starts_with("failed      broken.txt: "), "{run}");
    assert!(lines[2].starts_with("refused     gone.md: "), "{run}");
    assert!(lines[3].starts_with("refused     x.exe: "), "{run}");
    sandbox.write("x.exe", "MZ");
    sandbox.write("long.txt", vec![b'a'; (5 << 20) + 1]);
    let run = sandbox.run(&["kb", "add", "handbook", "x.exe", "long.txt"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(
        lines[0],
        "refused     x.exe: only .txt, .md, .html, .docx and .pdf files are supported"
    );
    assert_eq!(lines[1], "refused     long.txt: it is larger than 5 MiB");

    let run = sandbox.run(&["kb", "search", "handbook", "when are returns paid"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("returns.md, part 0\n  # Returns\n\n  Returns are"), "{run}");
    assert!(run.stderr.starts_with("searched by words alone (BM25)"), "{run}");
    let found = sandbox.run(&["kb", "search", "handbook", "returns", "--json"]).json();
    assert_eq!(found["passages"][0]["filename"], "returns.md");

    let run = sandbox.run(&["kb", "remove", "handbook", "broken.txt", "--json"]);
    assert_eq!(run.code, 0, "{run}");
    let list = sandbox.run(&["kb", "list", "handbook", "--json"]).json();
    assert_eq!(list["documents"].as_array().map(Vec::len), Some(1));
    assert_eq!(sandbox.run(&["kb", "remove", "handbook"]).code, 0);
    let bases = sandbox.run(&["kb", "list", "--json"]).json();
    assert_eq!(bases, serde_json::json!({ "knowledge_bases": [] }));
}

#[test]
fn a_name_means_one_document() {
    let sandbox = Sandbox::new();
    sandbox.run(&["kb", "create", "handbook"]);
    let add = |words: &[&str]| sandbox.run(&[&["kb", "add", "handbook"], words].concat());
    let listed = || {
        let list = sandbox.run(&["kb", "list", "handbook", "--json"]).json();
        let list = list["documents"].as_array().cloned().expect("a list");
        list.into_iter()
            .map(|one| one["status"].as_str().expect("a status").to_owned())
            .collect::<Vec<_>>()
    };
    let found = |question| {
        let found = sandbox.run(&["kb", "search", "handbook", question, "--json"]).json();
        found["passages"].as_array().map_or(0, Vec::len)
    };
    sandbox.write("returns.md", "Returns are paid within 14 days.\n");
    assert_eq!(add(&["returns.md"]).stdout, "completed   returns.md\n");
    let again = add(&["returns.md"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "unchanged   returns.md\n"), "{again}");
    assert_eq!(listed(), ["completed"]);

    sandbox.write("returns.md", "Refunds take a month.\n");
    let refused = add(&["returns.md"]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stdout.contains("--replace"), "{refused}");
    assert_eq!((listed(), found("days")), (vec!["completed".into()], 1));
    let changed = add(&["returns.md", "--replace", "--json"]).json();
    assert_eq!(changed[0]["change"], "replaced", "{changed}");
    assert_eq!((listed(), found("refunds"), found("days")), (vec!["completed".into()], 1, 0));

    // An unreadable new version does not replace a readable document.
    sandbox.write("returns.md", b"\xff\xfe\x00");
    for _ in 0..2 {
        assert_eq!(add(&["returns.md", "--replace"]).code, 1);
        assert_eq!((listed(), found("refunds")), (vec!["failed".into(), "completed".into()], 1));
    }
    sandbox.write("returns.md", "Returns are paid at once.\n");
    assert_eq!(add(&["returns.md", "--replace"]).stdout, "replaced    returns.md\n");
    assert_eq!(listed(), ["completed"]);

    sandbox.write("old/returns.md", "Nothing was paid.\n");
    let both = add(&["returns.md", "old/returns.md"]);
    assert_eq!(both.code, 1, "{both}");
    assert!(
        both.stdout.starts_with("unchanged   returns.md\nrefused     old/returns.md: "),
        "{both}"
    );
    assert_eq!((listed(), found("once")), (vec!["completed".into()], 1));
}

#[test]
fn a_skill_answers_from_its_knowledge_base() {
    let sandbox = Sandbox::new();
    sandbox.write("returns.md", "Returns are paid within 14 days.\n");
    sandbox.run(&["kb", "create", "handbook"]);
    sandbox.run(&["kb", "add", "handbook", "returns.md"]);
    sandbox.write("ask/SKILL.md", "---\nname: ask\ndescription: Answers.\nknowledge_base: handbook\ninputs:\n  - {name: question, label: Question, type: text, required: true}\nmodel: {temperature: 0.1, max_tokens: 50}\n---\n\n{{question}}\n");
    let provider = Provider::new(ProviderBehavior::Says(&["Within 14 days."]));
    let text = sandbox.read("ask/SKILL.md").replace("handbook", "nowhere");
    sandbox.write("lost/SKILL.md", text.replace("name: ask", "name: lost"));
    let mut command = sandbox.command(&["run", "lost", "--input", "question=When?"]);
    provider.of(&mut command);
    let said = String::from_utf8(command.output().expect("savoir runs").stderr).expect("text");
    assert!(said.starts_with("knowledge base `nowhere` does not exist; create it"), "{said}");
    let mut command =
        sandbox.command(&["run", "ask", "--input", "question=When are returns paid?"]);
    provider.of(&mut command);
    let output = command.output().expect("savoir runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Within 14 days.\n", "{output:?}");
    let sources = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(sources.contains("[1] returns.md, part 0 ("), "{sources}");
    let asked = provider.questions()[1]["messages"][0]["content"].to_string();
    assert!(asked.contains("[1] Returns are paid within 14 days."), "{asked}");
}

/// A PDF of one line.
#[cfg(target_os = "linux")]
fn pdf(text: &str) -> String {
    let stream = format!("BT /F1 12 Tf 10 50 Td ({text}) Tj ET");
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 100] /Contents 4 0 R \
                /Resources << /Font << /F1 5 0 R >> >> >>";
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        page.to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        font.to_owned(),
    ];
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), String::new());
    for (at, object) in objects.iter().enumerate() {
        table = format!("{table}{:010} 00000 n \n", file.len());
        file = format!("{file}{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let start = file.len();
    format!(
        "{file}xref\n0 6\n0000000000 65535 f \n{table}trailer << /Size 6 /Root 1 0 R >>\n\
         startxref\n{start}\n%%EOF\n"
    )
}

#[cfg(target_os = "linux")]
#[test]
fn a_pdf_is_read_in_the_sandbox() {
    let sandbox = Sandbox::new();
    sandbox.run(&["kb", "create", "parcels"]);
    sandbox.write("parcels.pdf", pdf("Parcels are weighed twice."));
    sandbox.write("broken.pdf", "%PDF-1.4\nnothing");
    let run = sandbox.run(&["kb", "add", "parcels", "parcels.pdf", "broken.pdf"]);
    assert!(
        run.stdout.starts_with("completed   parcels.pdf\nfailed      broken.pdf: this PDF"),
        "{run}"
    );
    let found = sandbox.run(&["kb", "search", "parcels", "weighed", "--json"]).json();
    assert_eq!(found["passages"][0]["text"], "Parcels are weighed twice.");
}
