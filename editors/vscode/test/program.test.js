const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { commandLine, findProgram } = require("../src/program");

test("the setting wins over the bundled program, which wins over the search path", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "savoir-"));
  assert.match(findProgram("", folder), /^savoir(\.exe)?$/);
  fs.mkdirSync(path.join(folder, "bin"));
  const bundled = path.join(folder, "bin", findProgram("", "/nowhere"));
  fs.writeFileSync(bundled, "");
  assert.equal(findProgram("", folder), bundled);
  assert.equal(findProgram("/opt/savoir", folder), "/opt/savoir");
  fs.rmSync(folder, { recursive: true });
});

test("a folder is one argument and never an option", () => {
  assert.deepEqual(commandLine("run", "-x; rm -rf /"), ["run", "--", "-x; rm -rf /"]);
});

test("the manifest names every command and file that the extension has", () => {
  const manifest = require("../package.json");
  const commands = manifest.contributes.commands.map((command) => command.command);
  assert.deepEqual(commands, ["savoir.run", "savoir.render", "savoir.evaluate", "savoir.restart"]);
  for (const file of ["language-configuration.json", "skill.tmLanguage.json"]) {
    JSON.parse(fs.readFileSync(path.join(__dirname, "..", file), "utf8"));
  }
});
