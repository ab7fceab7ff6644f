//! Tests the server with Neovim, as far as its version supports it.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    services::skipped,
    support::{Sandbox, repository},
};

/// Opens files like a user, waits for diagnostics, and writes the resulting state of Neovim. The
/// plugin of `editors/neovim` starts the server.
const SCRIPT: &str = r"
local function attached(buffer)
  local names = {}
  for _, client in pairs(vim.lsp.buf_get_clients(buffer)) do table.insert(names, client.name) end
  return names
end
local project = vim.env.PROJECT
vim.cmd('edit ' .. project .. '/README.md')
local readme = vim.api.nvim_get_current_buf()
vim.cmd('edit ' .. project .. '/skills/second/SKILL.md')
vim.cmd('edit ' .. project .. '/skills/demo/SKILL.md')
vim.wait(8000, function() return #vim.diagnostic.get(0) > 0 end, 20)
local other, names = attached(readme), attached(0)
local clients = vim.lsp.get_active_clients()
local root = clients[1] and clients[1].config.root_dir
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
local formatted = vim.api.nvim_buf_get_lines(0, 0, -1, false)
vim.cmd('write')
-- A click on a code lens opens a terminal.
vim.lsp.commands['savoir.render']({ arguments = { project .. '/skills/demo' } })
local terminal = function() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), ' ') end
vim.wait(8000, function() return terminal():find('Demo') ~= nil end, 20)
local result = {
  other = other, names = names, clients = #clients, root = root, terminal = terminal(),
  before = before, after = after, hover = hover.contents.value, symbols = #symbols,
  formatted = formatted,
}
vim.fn.writefile({ vim.fn.json_encode(result) }, vim.env.RESULT)
vim.lsp.stop_client(clients)
vim.cmd('qall!')
";

#[test]
fn neovim_plugin_starts_the_server_and_opens_a_terminal_for_a_lens() {
    let known = Command::new("nvim").arg("--version").stdin(Stdio::null()).output();
    if !known.is_ok_and(|output| output.status.success()) {
        skipped("nvim is not installed (Debian package neovim)");
        return;
    }
    let sandbox = Sandbox::new();
    let skill = |name: &str| {
        format!("---\nname: {name}\ndescription: Use for: demos\neffort: hihg\n---\n\n# Demo\n")
    };
    sandbox.write("project/savoir.toml", "");
    sandbox.write("project/README.md", "---\nname: readme\n---\n");
    sandbox.write("project/skills/demo/SKILL.md", skill("demo"));
    sandbox.write("project/skills/second/SKILL.md", skill("second"));
    // The plugin is installed as docs/guides/editor.md describes, and `savoir` is on the path.
    let plugin = repository().join("editors/neovim/savoir.lua");
    let plugin = std::fs::read_to_string(plugin).expect("the plugin");
    sandbox.write(".config/nvim/plugin/savoir.lua", &plugin);
    let path = std::env::var("PATH").unwrap_or_default();
    let programs = Path::new(env!("CARGO_BIN_EXE_savoir")).parent().expect("a folder");
    let script = sandbox.write("test.lua", SCRIPT);
    let result = sandbox.path("result.json");
    let output = Command::new("nvim")
        .args(["--headless", "-i", "NONE", "-n", "-c"])
        .arg(format!("luafile {}", script.display()))
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("PROJECT", sandbox.path("project"))
        .env("RESULT", &result)
        .env("HOME", sandbox.path(""))
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .output()
        .expect("nvim starts");
    let text = std::fs::read_to_string(&result)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["other"], json!([]), "other Markdown files start no server: {found}");
    assert_eq!((&found["names"], &found["clients"]), (&json!(["savoir"]), &json!(1)), "{found}");
    assert_eq!(found["root"], json!(sandbox.path("project")), "{found}");
    let list = |key: &str| found[key].to_string();
    assert!(list("before").contains("unquoted-colon@2:20"), "{found}");
    assert!(list("before").contains("invalid-value@3:8"), "{found}");
    assert!(list("after").contains("unquoted-colon@2:27"), "{found}");
    assert!(!list("after").contains("invalid-value"), "{found}");
    assert!(list("hover").contains("How hard the model thinks"), "{found}");
    assert_eq!(found["symbols"], 4, "{found}");
    assert_eq!(found["formatted"][2], "description: \"é😀 Use for: demos\"", "{found}");
    assert!(list("terminal").contains("# Demo"), "{found}");
}
