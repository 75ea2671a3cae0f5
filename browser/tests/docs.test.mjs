// SPDX-License-Identifier: GPL-2.0
// The example of docs/browser.md, as it stands there.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { Clock, Peer } from './clock.mjs';

const TOP = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '..');

test('a site that builds the module in', async () => {
  const page = fs.readFileSync(path.join(TOP, '..', 'docs', 'browser.md'), 'utf8');
  const [, code] = page.match(/<!-- example: module -->\n```js\n(.*?)```/s);
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'paqm-'));
  try {
    fs.writeFileSync(path.join(home, 'package.json'), '{"type": "module"}');
    fs.copyFileSync(path.join(TOP, 'paqm-rtc.js'), path.join(home, 'paqm-rtc.js'));
    fs.writeFileSync(path.join(home, 'site.js'), code);
    const { follow } = await import(path.join(home, 'site.js'));
    const clock = new Clock();
    const pc = new Peer(clock);
    const told = [];
    const host = { send: (message) => told.push(message) };
    const follower = follow(pc, host);
    assert.equal(pc[Symbol.for('paqm')], true);
    await clock.pass(500);
    assert.equal(told[0].op, 'add');
    host.onmessage({ event: 'advice', flow: told[0].flow, rate_bps: 1e6, cause: 'erf' });
    await clock.pass(10);
    assert.ok(pc.encodings[0].maxBitrate < 1e6);
    follower.stop();
    await clock.pass(10);
    assert.equal(pc.encodings[0].maxBitrate, undefined);
    assert.equal(told.at(-1).op, 'remove');
  } finally {
    fs.rmSync(home, { recursive: true });
  }
});
