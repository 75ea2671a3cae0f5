// SPDX-License-Identifier: GPL-2.0
// The core module and libwebrtc's estimate: when it is lifted, and when not.

import assert from 'node:assert/strict';
import test from 'node:test';
import { call } from './clock.mjs';

const LOW = 0.25; // of the estimate, to lift it

test('an estimate that was higher before is lifted, not again and again', async () => {
  const { clock, pc, advise, cap } = await call(
    [{ active: true }], { estimate: 3e6, bps: 2.9e6 });
  advise(3e6);
  await clock.pass(3000);
  Object.assign(pc, { estimate: 1e6, bps: 1e6 });
  await clock.pass(1000);
  assert.equal(cap(), LOW * 1e6);
  pc.bps = LOW * 1e6;
  await clock.pass(1000);
  assert.equal(cap(), LOW * 1e6, 'libwebrtc has not yet left enough of its estimate');
  await clock.pass(1000);
  assert.equal(cap(), undefined, 'what would not bind is not set');
  pc.sets.length = 0;
  await clock.pass(4000);
  assert.equal(pc.sets.length, 0);
});

test('an estimate that was never higher is left alone', async () => {
  const { clock, pc, advise } = await call([{ active: true }], { estimate: 1e6 });
  advise(3e6);
  await clock.pass(60000);
  assert.ok(!pc.sets.some(({ rates: [rate] }) => rate === LOW * 1e6));
});

test('nor is one that is enough for what the page allows itself', async () => {
  for (const [estimate, lifted] of [[2e6, false], [1.2e6, true]]) {
    const { clock, pc, advise } = await call(
      [{ active: true, maxBitrate: 2.5e6 }], { estimate: 6e6, bps: 2.6e6 });
    advise(7.5e6);
    await clock.pass(3000);
    Object.assign(pc, { estimate, bps: estimate });
    await clock.pass(60000);
    const low = pc.sets.some(({ rates: [rate] }) => rate === LOW * estimate);
    assert.equal(low, lifted, `${estimate}`);
  }
});

test('nor is one that losses hold, before they are over', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { estimate: 3e6, bps: 2.9e6 });
  advise(3e6);
  await clock.pass(3000);
  Object.assign(pc, { estimate: 1e6, bps: 1e6, lost: 0.05 });
  await clock.pass(5000);
  assert.notEqual(cap(), LOW * 1e6);
  pc.lost = 0.01; // as a radio link always loses
  await clock.pass(4000);
  assert.notEqual(cap(), LOW * 1e6, 'libwebrtc would look for nothing yet');
  await clock.pass(2000);
  assert.equal(cap(), LOW * 1e6);
});

test('a lift takes no longer than libwebrtc needs', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { estimate: 2e6, bps: 2e6 });
  advise(2e6);
  await clock.pass(10000);
  pc.bps = 0.3e6; // the page sends little by itself
  await clock.pass(3000);
  pc.estimate = 1e6;
  await clock.pass(3000);
  const begun = pc.sets.find(({ rates: [rate] }) => rate === LOW * 1e6);
  assert.ok(begun, 'lifted');
  assert.ok(pc.sets[pc.sets.indexOf(begun) + 1].at - begun.at <= 200, 'and at once let go');
  assert.notEqual(cap(), LOW * 1e6);
});

test('an estimate that follows is held by a cap', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { estimate: 4e6 });
  advise(3e6);
  await clock.pass(1000);
  assert.ok(cap() > 2.5e6 && cap() < 3e6, `${cap()}`);
  pc.estimate = 1e6; // advice holds even so
  advise(2e6);
  await clock.pass(1);
  assert.ok(cap() < 2e6);
});

test('losses of a report that is old hold nothing', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { estimate: 3e6, bps: 2.9e6 });
  advise(3e6);
  await clock.pass(3000);
  Object.assign(pc, { estimate: 1e6, bps: 1e6, lost: 0.05, reported: clock.now });
  await clock.pass(9000);
  assert.notEqual(cap(), LOW * 1e6);
  await clock.pass(3000);
  assert.equal(cap(), LOW * 1e6);
});
