//! Tests the server with Neovim, as far as its version supports it.

use std::process::{Command, Stdio};

use crate::{services::skipped, support::Sandbox};

/// Starts the server, waits for diagnostics, and writes what Neovim knows about them.
const SCRIPT: &str = r"
local path = vim.env.DEMO
vim.cmd('edit ' .. path)
local client = vim.lsp.start_client({
  name = 'savoir', cmd = { vim.env.SAVOIR, 'lsp' }, root_dir = vim.fn.fnamemodify(path, ':h:h'),
})
vim.lsp.buf_attach_client(0, client)
vim.wait(8000, function() return #vim.diagnostic.get(0) > 0 end, 20)
local before = {}
for _, found in ipairs(vim.diagnostic.get(0)) do
  table.insert(before, found.code .. '@' .. found.lnum .. ':' .. found.col)
end
-- Neovim counts bytes; the edit is sent incrementally.
vim.api.nvim_buf_set_text(0, 2, 13, 2, 13, { 'é😀 ' })
vim.api.nvim_buf_set_lines(0, 3, 4, false, { 'effort: high' })
vim.wait(8000, function() return #vim.diagnostic.get(0) < #before end, 20)
local after = {}
for _, found in ipairs(vim.diagnostic.get(0)) do
  table.insert(after, found.code .. '@' .. found.lnum .. ':' .. found.col)
end
local params = { textDocument = vim.lsp.util.make_text_document_params() }
local function request(method, extra)
  local answers = vim.lsp.buf_request_sync(0, method, vim.tbl_extend('force', params, extra or {}), 8000)
  for _, answer in pairs(answers or {}) do return answer.result end
end
local hover = request('textDocument/hover', { position = { line = 3, character = 1 } })
local symbols = request('textDocument/documentSymbol')
local options = { options = { tabSize = 2, insertSpaces = true } }
vim.lsp.util.apply_text_edits(request('textDocument/formatting', options), 0, 'utf-16')
local result = {
  before = before, after = after, hover = hover.contents.value, symbols = #symbols,
  formatted = vim.api.nvim_buf_get_lines(0, 0, -1, false),
}
vim.fn.writefile({ vim.fn.json_encode(result) }, vim.env.RESULT)
vim.lsp.stop_client(client)
vim.cmd('qall!')
";

#[test]
fn neovim_shows_findings_hovers_and_formats() {
    let known = Command::new("nvim").arg("--version").stdin(Stdio::null()).output();
    if !known.is_ok_and(|output| output.status.success()) {
        skipped("nvim is not installed (Debian package neovim)");
        return;
    }
    let sandbox = Sandbox::new();
    let text = "---\nname: demo\ndescription: Use for: demos\neffort: hihg\n---\n\n# Demo\n";
    let demo = sandbox.write("demo/SKILL.md", text);
    let script = sandbox.write("test.lua", SCRIPT);
    let result = sandbox.path("result.json");
    let output = Command::new("nvim")
        .args(["--headless", "-u", "NONE", "-i", "NONE", "-n", "-c"])
        .arg(format!("luafile {}", script.display()))
        .env("SAVOIR", env!("CARGO_BIN_EXE_savoir"))
        .env("DEMO", &demo)
        .env("RESULT", &result)
        .env("HOME", sandbox.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("nvim starts");
    let text = std::fs::read_to_string(&result)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let list = |key: &str| found[key].to_string();
    assert!(list("before").contains("unquoted-colon@2:20"), "{found}");
    assert!(list("before").contains("invalid-value@3:8"), "{found}");
    assert!(list("after").contains("unquoted-colon@2:27"), "{found}");
    assert!(!list("after").contains("invalid-value"), "{found}");
    assert!(list("hover").contains("How hard the model thinks"), "{found}");
    assert_eq!(found["symbols"], 4, "{found}");
    assert_eq!(found["formatted"][2], "description: \"é😀 Use for: demos\"", "{found}");
}
