// Starts `savoir lsp`, and carries out the commands of its code lenses.

const path = require("node:path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { commandLine, findProgram } = require("./program");

const FILES = [
  { scheme: "file", language: "skill" },
  { scheme: "untitled", language: "skill" },
  { scheme: "file", pattern: "**/{SKILL,skill,Skill}.md" },
  { scheme: "file", pattern: "**/{AGENT,gaia-agent}.yaml" },
  { scheme: "file", pattern: "**/savoir.toml" },
  { scheme: "file", pattern: "**/evals.json" },
  { scheme: "file", pattern: "**/{workflows/*,*.workflow}.json" },
];

let client;

function settings() {
  return vscode.workspace.getConfiguration("savoir");
}

async function start(context) {
  const command = findProgram(settings().get("path"), context.extensionPath);
  client = new LanguageClient(
    "savoir",
    "Savoir",
    { command, args: ["lsp"] },
    {
      documentSelector: FILES,
      initializationOptions: { codeLens: settings().get("codeLens") },
    },
  );
  try {
    await client.start();
  } catch (error) {
    const choice = await vscode.window.showErrorMessage(
      `Savoir cannot start \`${command} lsp\`: ${error.message}. Install savoir, or set savoir.path.`,
      "Open Settings",
    );
    if (choice) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "savoir.path");
    }
  }
}

// Runs a command as a task, which shows its questions and keeps its output. It starts without a
// shell, so that the name of a folder is never read as a command.
function asTask(context, action) {
  return async (folder) => {
    const active = vscode.window.activeTextEditor?.document.uri;
    const target = folder ?? (active?.scheme === "file" ? path.dirname(active.fsPath) : undefined);
    if (!target) {
      vscode.window.showInformationMessage("Open a SKILL.md first.");
      return;
    }
    const program = findProgram(settings().get("path"), context.extensionPath);
    const execution = new vscode.ProcessExecution(program, commandLine(action, target), { cwd: target });
    const name = `${action} ${path.basename(target)}`;
    const task = new vscode.Task({ type: "savoir" }, vscode.TaskScope.Workspace, name, "savoir", execution);
    task.presentationOptions = {
      reveal: vscode.TaskRevealKind.Always,
      panel: vscode.TaskPanelKind.Dedicated,
      focus: true,
      clear: true,
    };
    await vscode.tasks.executeTask(task);
  };
}

async function activate(context) {
  for (const action of ["run", "render", "evaluate"]) {
    const command = vscode.commands.registerCommand(`savoir.${action}`, asTask(context, action));
    context.subscriptions.push(command);
  }
  const restart = async () => {
    await client?.dispose();
    await start(context);
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("savoir.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("savoir")) {
        restart();
      }
    }),
  );
  await start(context);
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
