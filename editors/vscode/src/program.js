// Finds the program, and writes the command lines of the code lenses.

const fs = require("node:fs");
const path = require("node:path");

const NAME = process.platform === "win32" ? "savoir.exe" : "savoir";

// The program of the setting, else the bundled one, else the one on the search path.
function findProgram(setting, extensionPath) {
  if (setting) {
    return setting;
  }
  const bundled = path.join(extensionPath, "bin", NAME);
  return fs.existsSync(bundled) ? bundled : NAME;
}

const COMMANDS = { run: ["run"], render: ["render"], evaluate: ["eval"] };

// The arguments for a click on a code lens. The folder is one argument, whatever its name is; a
// leading dash would make it an option.
function commandLine(action, folder) {
  return [...COMMANDS[action], "--", folder];
}

module.exports = { commandLine, findProgram };
