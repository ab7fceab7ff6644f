// Loads the extension of an unpacked .vsix with a stand-in for VS Code: node test_vsix.js FOLDER
'use strict';

const assert = require('node:assert');
const Module = require('node:module');
const path = require('node:path');

const folder = path.resolve(process.argv[2], 'extension');
const registered = [];

// Any class, function or object that the extension asks VS Code for.
function anything() {
  return new Proxy(function () {}, {
    get: (target, key) => (key === 'prototype' ? target.prototype : typeof key === 'symbol' ? undefined : anything()),
    apply: () => anything(),
    construct: () => ({}),
  });
}
const known = {
  version: '1.91.0',
  commands: { registerCommand: (name) => registered.push(name) },
};
const vscode = new Proxy(known, { get: (target, key) => target[key] ?? anything() });
const load = Module._load;
Module._load = (request, ...rest) => (request === 'vscode' ? vscode : load(request, ...rest));

const manifest = require(path.join(folder, 'package.json'));
const extension = require(path.join(folder, manifest.main));
assert.deepEqual(Object.keys(extension).sort(), ['activate', 'deactivate']);
// The client itself needs the real VS Code.
extension.activate({ extensionPath: folder, subscriptions: [] }).catch(() => {});
const commands = manifest.contributes.commands.map((command) => command.command);
assert.deepEqual(registered.sort(), commands.sort());
console.log(`${registered.length} commands`);
process.exit(0);
