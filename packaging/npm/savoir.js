#!/usr/bin/env node
// Starts the savoir binary of the package for this platform, and ends the way the binary ends.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const { isatty } = require('node:tty');

const name = `@savoir/${process.platform}-${process.arch}`;

function fail(message, hint) {
  process.stderr.write(`error: ${message}\nhint: ${hint}\n`);
  process.exit(1);
}

function findBinary() {
  try {
    return require.resolve(`${name}/bin/savoir`);
  } catch {
    const supported = Object.keys(require('../package.json').optionalDependencies);
    if (!supported.includes(name)) {
      fail(
        `savoir has no binary for ${process.platform} on ${process.arch}`,
        'build it from source with cargo; the README of the repository says how',
      );
    }
    fail(
      `the package ${name} with the savoir binary is not installed`,
      'run `npm install savoir` again without --omit=optional or --no-optional; ' +
        'on Linux, savoir needs glibc (not musl, as on Alpine)',
    );
  }
}

const child = spawn(findBinary(), process.argv.slice(2), { stdio: 'inherit' });

child.on('error', (error) => {
  fail(`cannot start savoir: ${error.message}`, 'remove node_modules and run `npm install savoir` again');
});

// A terminal sends these signals to the child, too. Forwarding them would deliver them twice, and the
// second one stops `savoir serve` before running requests end.
const terminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGHUP']) {
  process.on(signal, () => {
    if (!terminal) child.kill(signal);
  });
}
for (const signal of ['SIGTERM', 'SIGUSR2']) {
  process.on(signal, () => child.kill(signal));
}

child.on('exit', (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // End by the same signal, so that the caller sees what ended savoir.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // Some signals do not end Node at once, or at all.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 100);
});
