// SPDX-License-Identifier: GPL-2.0
//
// vclock.so: the clock stands between waits, moves over each kind of wait node makes, and never
// stands for ever.

'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'vclock-'));
test.after(() => fs.rmSync(dir, { recursive: true }));
const library = path.join(dir, 'vclock.so');
execFileSync('cc', ['-std=c17', '-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC',
  '-o', library, path.join(__dirname, '..', 'vclock.c'), '-ldl']);

function run(script) {
  const env = { ...process.env, LD_PRELOAD: library };
  return JSON.parse(execFileSync(process.execPath, ['-e', script], { env, encoding: 'utf8' }));
}

test('many looks at the clock cost few system calls, yet time goes on', () => {
  const values = run(`
    const seen = [];
    for (let i = 0; i < 1000; i++) seen.push(String(process.hrtime.bigint()));
    console.log(JSON.stringify(new Set(seen).size));`);
  assert.ok(values >= 1000 / 65 - 1 && values < 100, `${values} different values`);
});

test('a timer (epoll) and a timed wait (condition variable) bring a new time', () => {
  const [timer, wait, real] = run(`
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const start = process.hrtime.bigint();
    const startReal = Date.now();
    setTimeout(() => {
      const timer = process.hrtime.bigint();
      Atomics.wait(cell, 0, 0, 30);
      const wait = process.hrtime.bigint();
      console.log(JSON.stringify([timer - start, wait - timer].map(Number)
        .concat(Date.now() - startReal)));
    }, 30);`);
  assert.ok(timer >= 29e6, `timer: ${timer} ns`);
  assert.ok(wait >= 29e6, `wait: ${wait} ns`);
  assert.ok(real >= 58, `real time: ${real} ms`);
});
