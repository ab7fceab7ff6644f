//! Tests knowledge bases: uploads and searches.

use std::{io::Write as _, time::Duration};

use reqwest::Method;
use savoir_knowledge::{
    Indexer, Knowledge,
    extract::{Extractor, Isolated},
};
use savoir_store::NewDocument;
use serde_json::{Value, json};

use crate::harness::{ADMIN, Client, Reply, TestServer};

pub(crate) const BASES: &str = "/api/v1/knowledge";

/// The program that extracts text from PDFs; `None` if it was not built.
fn reader() -> Option<Isolated> {
    let tests = std::env::current_exe().unwrap().canonicalize().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/extract");
    program.exists().then(|| Isolated { program, arguments: Vec::new() })
}

/// Indexes all waiting documents.
pub(crate) async fn read_all(server: &TestServer) {
    let knowledge = Knowledge::new(server.database.clone(), server.storage.clone(), None);
    read_all_of(knowledge).await;
}

/// Indexes all waiting documents.
pub(crate) async fn read_all_of(knowledge: Knowledge) {
    let worker = Indexer::new(knowledge, Extractor::new(reader()));
    while worker.run_one().await.unwrap() {}
}

/// Uploads a file like a browser.
pub(crate) async fn upload(client: &Client, kb: &str, filename: &str, bytes: &[u8]) -> Reply {
    Reply::of(send(client, kb, form("file", Some(filename), bytes))).await
}

fn form(field: &str, filename: Option<&str>, bytes: &[u8]) -> Vec<u8> {
    let filename = filename.map_or(String::new(), |name| format!("; filename=\"{name}\""));
    let head = format!(
        "--limit\r\ncontent-disposition: form-data; name=\"{field}\"{filename}\r\n\
         content-type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), bytes, b"\r\n--limit--\r\n"].concat()
}

fn send(client: &Client, kb: &str, form: Vec<u8>) -> reqwest::RequestBuilder {
    let request = client.request(Method::POST, &format!("{BASES}/{kb}/upload"));
    request.header("content-type", "multipart/form-data; boundary=limit").body(form)
}

async fn new_base(client: &Client, name: &str) -> String {
    let base = client.post(BASES, &json!({"name": name})).await;
    assert_eq!(base.status, 201, "{}", base.text);
    base.json()["id"].as_str().unwrap().to_owned()
}

/// Creates a knowledge base with indexed documents; returns its id.
pub(crate) async fn base_with(
    server: &TestServer,
    client: &Client,
    name: &str,
    documents: &[(String, &str)],
) -> String {
    let id = new_base(client, name).await;
    for (filename, text) in documents {
        let reply = upload(client, &id, filename, text.as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    read_all(server).await;
    id
}

async fn server() -> TestServer {
    TestServer::with(|config| config.limits.routes = 0).await
}

#[tokio::test]
async fn bases() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    ada.get(BASES).await.is(200, &json!({"items": [], "total": 0}));
    let reply = ada.post(BASES, &json!({"name": "Händbuch"})).await;
    let base = reply.json();
    let (id, created) = (base["id"].as_str().unwrap(), &base["created_at"]);
    assert_eq!(id.len(), 36);
    assert!(created.as_str().unwrap().ends_with('Z'));
    let first = json!({"id": id, "name": "Händbuch", "document_count": 0, "created_at": created});
    reply.is(201, &first);
    let second = ada.post(BASES, &json!({"name": "b"})).await.json();
    ada.get(BASES).await.is(200, &json!({"items": [second, first], "total": 2}));

    let missing = json!(["body", "name"]);
    ada.post(BASES, &json!({})).await.differs("missing", &missing, "Field required", &json!({}));
    let text = "String should have at least 1 character";
    ada.post(BASES, &json!({"name": ""})).await.differs(
        "string_too_short",
        &missing,
        text,
        &json!(""),
    );
    let long = "é".repeat(256);
    let text = "String should have at most 255 characters";
    let reply = ada.post(BASES, &json!({"name": long})).await;
    reply.differs("string_too_long", &missing, text, &json!(long));
    let text = "Input should be a valid string";
    ada.post(BASES, &json!({"name": 5})).await.differs("string_type", &missing, text, &json!(5));

    let one = format!("{BASES}/{id}");
    let reply = ada.delete(&one).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
    ada.delete(&one).await.refuses(404, "Knowledge base not found");
    assert_eq!(ada.get(BASES).await.json()["total"], 1);
}

#[tokio::test]
async fn document_is_uploaded_indexed_and_deleted() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let kb = new_base(&ada, "manual").await;
    let text = "Goods may be returned within thirty days.";
    let reply = upload(&ada, &kb, "Rückgabe.md", text.as_bytes()).await;
    let value = reply.json();
    let (id, created) = (value["id"].as_str().unwrap(), &value["created_at"]);
    let task = value["task_id"].as_str().unwrap();
    reply.is(
        200,
        &json!({
            "id": id, "kb_id": kb, "filename": "Rückgabe.md", "status": "processing",
            "file_size": text.len(), "created_at": created, "task_id": task,
        }),
    );
    let documents = format!("{BASES}/{kb}/documents");
    let listed = |status: &str| {
        json!({"documents": [{
            "id": id, "kb_id": kb, "filename": "Rückgabe.md", "status": status,
            "file_size": text.len(), "created_at": created, "task_id": null,
        }], "total": 1})
    };
    ada.get(&documents).await.is(200, &listed("pending"));
    let progress = async || ada.get(&format!("{BASES}/tasks/{task}")).await;
    let reply = progress().await;
    let started = reply.json()["started_at"].clone();
    let state = |status: &str, progress: u8, started: &Value| {
        json!({
            "status": status, "progress": progress, "doc_id": id, "kb_id": kb, "started_at": started,
        })
    };
    reply.is(200, &state("pending", 0, &started));
    let process = format!("{BASES}/{kb}/process/{id}");
    let said = |message: &str| json!({"message": message, "doc_id": id});
    ada.call(&process).await.is(200, &said("Document is already being processed."));
    let search = format!("{BASES}/{kb}/search?query=returned%20goods");
    let nothing =
        json!({"kb_id": kb, "query": "returned goods", "top_k": 5, "results": [], "total": 0});
    ada.get(&search).await.is(200, &nothing);

    read_all(&server).await;
    ada.get(&documents).await.is(200, &listed("completed"));
    let reply = progress().await;
    reply.is(200, &state("completed", 100, &reply.json()["started_at"]));
    ada.call(&process).await.is(200, &said("Document has already been processed."));
    let reply = ada.get(&format!("{search}&top_k=1")).await;
    let size = reply.json()["results"][0]["metadata"]["chunk_size"].clone();
    assert!(size.as_u64().is_some_and(|size| size > 5 && size < 512));
    reply.is(
        200,
        &json!({
            "kb_id": kb, "query": "returned goods", "top_k": 1,
            "results": [{
                "text": text,
                "metadata": {"doc_id": id, "chunk_id": format!("{id}_chunk_0"), "chunk_index": 0,
                    "chunk_size": size},
                "score": 1.0,
                "rank": 1,
            }],
            "total": 1,
        }),
    );
    // The name can be used instead of the id.
    let named = ada.get(&format!("{BASES}/manual/search?query=returned")).await.json();
    assert_eq!((&named["kb_id"], &named["total"]), (&json!("manual"), &json!(1)));
    let info = |documents: u64| {
        json!({
            "kb_id": kb, "collection_name": format!("kb_{kb}"), "document_count": documents,
            "vector_count": 0, "collection_exists": true,
        })
    };
    ada.get(&format!("{BASES}/{kb}/info")).await.is(200, &info(1));
    assert_eq!(ada.get(BASES).await.json()["items"][0]["document_count"], 1);

    let one = format!("{documents}/{id}");
    ada.delete(&one).await.is(200, &said("Document deleted successfully."));
    ada.delete(&one).await.refuses(404, "Document not found.");
    ada.call(&process).await.refuses(404, "Document not found.");
    ada.get(&search).await.is(200, &nothing);
    ada.get(&documents).await.is(200, &json!({"documents": [], "total": 0}));
    ada.get(&format!("{BASES}/{kb}/info")).await.is(200, &info(0));
    progress().await.refuses(404, "Task not found");
}

#[tokio::test]
async fn newest_documents_first_and_bases_go_with_all() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let documents = [("a.txt".to_owned(), "zebra one"), ("b.txt".to_owned(), "zebra two")];
    let kb = base_with(&server, &ada, "zoo", &documents).await;
    let list = ada.get(&format!("{BASES}/{kb}/documents")).await.json();
    assert_eq!(list["documents"][0]["filename"], "b.txt");
    assert_eq!(ada.delete(&format!("{BASES}/{kb}")).await.status, 204);
    let text = format!("Knowledge base not found: {kb}");
    ada.get(&format!("{BASES}/{kb}/search?query=zebra")).await.refuses(404, &text);
    ada.get(&format!("{BASES}/{kb}/documents")).await.refuses(404, "Knowledge base not found");
    upload(&ada, &kb, "a.txt", b"x").await.refuses(404, "Knowledge base not found");
    ada.get(&format!("{BASES}/{kb}/info")).await.is(
        200,
        &json!({
            "kb_id": kb, "collection_name": format!("kb_{kb}"), "document_count": 0,
            "vector_count": 0, "collection_exists": false,
        }),
    );
}

#[tokio::test]
async fn search_parameters() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let documents: Vec<(String, &str)> =
        (0..25).map(|number| (format!("{number}.txt"), "zebra crossing")).collect();
    let kb = base_with(&server, &ada, "zoo", &documents).await;
    let search = async |query: &str| ada.get(&format!("{BASES}/{kb}/search{query}")).await;
    for (query, count) in [("", 5), ("&top_k=1", 1), ("&top_k=20", 20), ("&top_k=20&x=1", 20)] {
        let found = search(&format!("?query=zebra{query}")).await.json();
        assert_eq!(found["total"], count);
        let results = found["results"].as_array().unwrap();
        assert_eq!(results.len(), count);
        let key = |hit: &Value| {
            (-hit["score"].as_f64().unwrap(), hit["metadata"]["chunk_id"].to_string())
        };
        assert!(results.is_sorted_by(|a, b| key(a) <= key(b)), "{found}");
    }
    for query in ["?query=", "?query=%20%09", "?query=+"] {
        search(query).await.refuses(400, "Query cannot be empty.");
    }
    let place = json!(["query", "query"]);
    search("").await.differs("missing", &place, "Field required", &Value::Null);
    let place = json!(["query", "top_k"]);
    let text = "Input should be greater than or equal to 1";
    search("?query=x&top_k=0").await.differs("greater_than_equal", &place, text, &json!("0"));
    let text = "Input should be less than or equal to 20";
    search("?query=x&top_k=21").await.differs("less_than_equal", &place, text, &json!("21"));
    // Characters with a meaning in the query syntax of search engines.
    for query in ["%22", "zebra%22%20OR", "*", "NEAR(a)", "a:b", "-", "%00", "%27%3B--", "%28%28"] {
        let reply = search(&format!("?query={query}")).await;
        assert_eq!(reply.status, 200, "{query}: {}", reply.text);
    }
    ada.get(&format!("{BASES}/nowhere/search?query=x"))
        .await
        .refuses(404, "Knowledge base not found: nowhere");
}

#[tokio::test]
async fn invalid_ids_are_rejected() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    for (kb, shown) in [("a.b", "a.b"), ("..%2fx", "../x"), ("a%20b", "a b"), ("%00", "\0")] {
        let text = format!("Invalid kb_id format: {shown}");
        let at = |rest: &str| format!("{BASES}/{kb}/{rest}");
        ada.get(&at("documents")).await.refuses(400, &text);
        ada.get(&at("info")).await.refuses(400, &text);
        ada.get(&at("search?query=x")).await.refuses(400, &text);
        ada.call(&at("process/d")).await.refuses(400, &text);
        ada.delete(&at("documents/d")).await.refuses(400, &text);
        upload(&ada, kb, "a.txt", b"x").await.refuses(400, &text);
        ada.delete(&format!("{BASES}/{kb}")).await.refuses(400, "Invalid kb_id format");
    }
    ada.get(&format!("{BASES}/tasks/none")).await.refuses(404, "Task not found");
    let kb = new_base(&ada, "b").await;
    ada.delete(&format!("{BASES}/{kb}/documents/x")).await.refuses(404, "Document not found.");
}

#[tokio::test]
async fn uploads_that_are_refused() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let kb = new_base(&ada, "b").await;
    let types = "File type not allowed. Only .txt, .md, .html, .pdf, .docx files are supported.";
    for name in ["a.exe", "a", "txt", "a.txt.zip", "a.doc"] {
        upload(&ada, &kb, name, b"x").await.refuses(400, types);
    }
    let most = vec![b'x'; 5 * 1024 * 1024];
    let reply = upload(&ada, &kb, "most.txt", &most).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let more = vec![b'x'; 5 * 1024 * 1024 + 1];
    upload(&ada, &kb, "more.txt", &more).await.refuses(400, "File too large. Maximum size is 5MB.");
    // Far above the limit, the upload is not even read to its end.
    let huge = form("file", Some("huge.txt"), &vec![b'x'; 9 * 1024 * 1024]);
    let chunks = huge.chunks(65_536).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()));
    let body = reqwest::Body::wrap_stream(futures::stream::iter(chunks.collect::<Vec<_>>()));
    let request = send(&ada, &kb, Vec::new()).body(body).send().await;
    // The server may close the connection before everything is sent.
    if let Ok(response) = request {
        assert_eq!(response.status(), 413);
        let refused = r#"{"detail":"Request body too large","hint":"send at most 5 MiB"}"#;
        assert_eq!(response.text().await.unwrap(), refused);
    }
    let place = json!(["body", "file"]);
    for form in [form("other", Some("a.txt"), b"x"), form("file", None, b"x"), Vec::new()] {
        let reply = Reply::of(send(&ada, &kb, form)).await;
        assert!([400, 422].contains(&reply.status.as_u16()), "{}", reply.text);
    }
    let reply = Reply::of(send(&ada, &kb, form("other", Some("a.txt"), b"x"))).await;
    reply.differs("missing", &place, "Field required", &Value::Null);
    let reply = ada.post(&format!("{BASES}/{kb}/upload"), &json!({"file": "x"})).await;
    reply.differs("missing", &place, "Field required", &Value::Null);
    let path = "Invalid file name: it is a path, not a name.";
    upload(&ada, &kb, "../a.txt", b"x").await.refuses(400, path);
    assert_eq!(ada.get(&format!("{BASES}/{kb}/documents")).await.json()["total"], 1);
}

#[tokio::test]
async fn access_to_knowledge_bases() {
    let server = server().await;
    let admin = server.register(ADMIN).await;
    let ada = server.register("ada@example.org").await;
    let bob = server.register("bob@example.org").await;
    let kb = base_with(&server, &ada, "zoo", &[("a.txt".to_owned(), "zebra")]).await;
    let doc = ada.get(&format!("{BASES}/{kb}/documents")).await.json();
    let doc = doc["documents"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(bob.get(BASES).await.json()["total"], 1);
    for path in ["documents", "info", "search?query=zebra"] {
        assert_eq!(bob.get(&format!("{BASES}/{kb}/{path}")).await.status, 200);
    }
    let text = "You do not have permission to modify this knowledge base";
    upload(&bob, &kb, "b.txt", b"x").await.refuses(403, text);
    bob.call(&format!("{BASES}/{kb}/process/{doc}")).await.refuses(403, text);
    bob.delete(&format!("{BASES}/{kb}/documents/{doc}")).await.refuses(403, text);
    bob.delete(&format!("{BASES}/{kb}")).await.refuses(403, text);
    bob.delete(&format!("{BASES}/zoo")).await.refuses(403, text);
    assert_eq!(upload(&admin, &kb, "b.txt", b"x").await.status, 200);
    // Of several knowledge bases with one name, the user's own comes first, then the oldest.
    let own = base_with(&server, &bob, "zoo", &[("b.txt".to_owned(), "zebra zebra")]).await;
    let doc_of = async |person: &Client| {
        let found = person.get(&format!("{BASES}/zoo/search?query=zebra")).await.json();
        found["results"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(doc_of(&bob).await, "zebra zebra");
    assert_eq!(doc_of(&ada).await, "zebra");
    assert_eq!(doc_of(&admin).await, "zebra");
    assert_eq!(bob.delete(&format!("{BASES}/zoo")).await.status, 204);
    assert_eq!(admin.get(&format!("{BASES}/{own}/documents")).await.status, 404);
    assert_eq!(admin.delete(&format!("{BASES}/{kb}")).await.status, 204);
}

fn docx(text: &str) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("word/document.xml", options).unwrap();
    let xml = format!(
        "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
         <w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"
    );
    archive.write_all(xml.as_bytes()).unwrap();
    archive.finish().unwrap().into_inner()
}

fn pdf(text: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 50 800 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << \
         /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let (mut file, mut places) = (b"%PDF-1.4\n".to_vec(), Vec::new());
    for (at, object) in (1..).zip(&objects) {
        writeln!(places, "{:010} 00000 n ", file.len()).unwrap();
        writeln!(file, "{at} 0 obj\n{object}\nendobj").unwrap();
    }
    let start = file.len();
    file.extend_from_slice(b"xref\n0 6\n0000000000 65535 f \n");
    file.extend_from_slice(&places);
    writeln!(file, "trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF").unwrap();
    file
}

#[tokio::test]
async fn documents_of_all_kinds() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let kb = new_base(&ada, "all").await;
    let read = async |name: &str, bytes: &[u8]| {
        let value = upload(&ada, &kb, name, bytes).await.json();
        read_all(&server).await;
        ada.get(&format!("{BASES}/tasks/{}", value["task_id"].as_str().unwrap())).await.json()
    };
    for (name, bytes, word) in [
        ("a.txt", b"plainword \xc3\xa9".to_vec(), "plainword"),
        ("a.MD", b"# Head\n\nmarkword".to_vec(), "markword"),
        ("a.html", b"<h1>Head</h1><script>x</script><p>htmlword</p>".to_vec(), "htmlword"),
        ("a.docx", docx("docxword"), "docxword"),
    ] {
        let task = read(name, &bytes).await;
        assert_eq!(
            (&task["status"], &task["progress"]),
            (&json!("completed"), &json!(100)),
            "{task}"
        );
        let found = ada.get(&format!("{BASES}/{kb}/search?query={word}")).await.json();
        assert_eq!(
            (&found["total"], &found["results"][0]["metadata"]["doc_id"]),
            (&json!(1), &task["doc_id"])
        );
    }
    for (name, bytes, why) in [
        ("b.docx", b"PK no".to_vec(), "this Word document cannot be read: "),
        ("b.txt", b"a\xff".to_vec(), "this is not UTF-8: the byte 0xff at position 1 does not fit"),
        ("b.md", b" \n".to_vec(), "no text was found in it"),
    ] {
        let task = read(name, &bytes).await;
        assert_eq!(task["status"], "failed", "{task}");
        assert!(task["error"].as_str().unwrap().starts_with(why), "{task}");
        let keys: Vec<&String> = task.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["status", "progress", "doc_id", "kb_id", "started_at", "error"]);
        // Indexing can be repeated, and fails again.
        let path = format!("{BASES}/{kb}/process/{}", task["doc_id"].as_str().unwrap());
        let reply = ada.call(&path).await;
        let again = reply.json()["task_id"].clone();
        reply.is(202, &json!({
            "message": "Document processing started.", "doc_id": task["doc_id"], "task_id": again,
        }));
        assert_eq!(ada.call(&path).await.json()["message"], "Document is already being processed.");
        read_all(&server).await;
    }
    let list = ada.get(&format!("{BASES}/{kb}/documents")).await.json();
    assert_eq!((&list["documents"][0]["status"], &list["total"]), (&json!("failed"), &json!(7)));
}

#[tokio::test]
async fn pdfs() {
    if reader().is_none() {
        eprintln!(
            "LEFT OUT: no PDF was read, as the example `extract` of savoir-engine is not built"
        );
        return;
    }
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let kb = new_base(&ada, "all").await;
    let good = upload(&ada, &kb, "a.pdf", &pdf("pdfword")).await.json();
    let broken = upload(&ada, &kb, "b.pdf", b"%PDF-1.4 nothing").await.json();
    read_all(&server).await;
    let task = async |value: &Value| {
        let id = value["task_id"].as_str().unwrap();
        ada.get(&format!("{BASES}/tasks/{id}")).await.json()
    };
    let good = task(&good).await;
    if good["error"].as_str().is_some_and(|why| why.starts_with("PDFs are not read")) {
        eprintln!("LEFT OUT: no PDF was read: {}", good["error"]);
        return;
    }
    assert_eq!(good["status"], "completed", "{good}");
    assert_eq!(task(&broken).await["status"], "failed");
    let found = ada.get(&format!("{BASES}/{kb}/search?query=pdfword")).await.json();
    assert_eq!(found["total"], 1);
}

#[tokio::test]
async fn pending_documents_of_one_user_are_limited() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let bob = server.register("bob@example.org").await;
    let (first, second) = (new_base(&ada, "a").await, new_base(&ada, "b").await);
    let rows = server.database.knowledge();
    let add = async |id: &str, kb_id: &str| {
        let document = NewDocument { id, kb_id, filename: "a.txt", file_size: 1 };
        rows.add_document(document).await.unwrap().1
    };
    let failed = add("failed", &first).await;
    rows.claim_task("w", Duration::from_mins(1)).await.unwrap();
    rows.fail_task(&failed.id, "w", "no words").await.unwrap();
    for number in 0..999 {
        add(&number.to_string(), &first).await;
    }
    assert_eq!(upload(&ada, &second, "a.txt", b"word").await.status, 200);
    let text = "1000 documents are waiting to be read. Add more when some of them are done.";
    let again = format!("{BASES}/{first}/process/failed");
    for reply in [upload(&ada, &second, "b.txt", b"word").await, ada.call(&again).await] {
        reply.refuses(429, text);
        assert_eq!(reply.header("retry-after"), "60");
    }
    let other = new_base(&bob, "c").await;
    assert_eq!(upload(&bob, &other, "a.txt", b"word").await.status, 200);
    rows.claim_task("w", Duration::from_mins(1)).await.unwrap();
    rows.claim_task("w", Duration::from_mins(1)).await.unwrap();
    assert_eq!(upload(&ada, &second, "b.txt", b"word").await.status, 200);
}
