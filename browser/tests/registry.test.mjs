// SPDX-License-Identifier: GPL-2.0
// The worker's bookkeeping, and what a page can do to it.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Registry } from '../extension/registry.js';
import { rate, trouble, who } from '../extension/popup.js';

const TUPLE = { source_port: 5004, destination: '10.4.0.2', destination_port: 5006, ssrc: 0 };

function start() {
  const host = [];
  const registry = new Registry((message) => host.push(message));
  let frames = 0;
  const open = (origin, tab = 1, frame = ++frames) => {
    const heard = [];
    return { heard, page: registry.open((message) => heard.push(message), origin, tab, frame) };
  };
  return { host, registry, open };
}

test('two pages with the same numbers hear each of its own flow', () => {
  const { host, registry, open } = start();
  const [a, b] = [open('https://a.example'), open('https://b.example')];
  registry.ask(a.page, { op: 'add', pc: 1, flow: 1, ...TUPLE }, 0);
  registry.ask(b.page, { op: 'add', pc: 1, flow: 1, ...TUPLE, source_port: 5008 }, 0);
  assert.deepEqual(host.map(({ op, flow, source_port: port }) => [op, flow, port]),
    [['add', 1, 5004], ['add', 2, 5008]]);
  registry.heard({ event: 'advice', flow: 2, rate_bps: 7, cause: 'erf', router: '10.0.0.1' });
  assert.equal(a.heard.length, 0);
  assert.deepEqual(b.heard.map(({ pc, flow, rate_bps: bps }) => [pc, flow, bps]), [[1, 1, 7]]);
  registry.close(a.page);
  assert.deepEqual(host.at(-1), { op: 'remove', flow: 1 });
  assert.equal(registry.state().flows.length, 1);
});

test('only what is known goes on to the host', () => {
  const { host, registry, open } = start();
  const { page } = open('https://a.example');
  registry.ask(page, { op: 'add', pc: 1, flow: 1, ...TUPLE, more: 'x', source_port: -1 }, 0);
  assert.deepEqual(host, [
    { op: 'add', flow: 1, destination: '10.4.0.2', destination_port: 5006, ssrc: 0 }]);
  for (const bad of [null, 7, 'add', {}, { op: 'add', pc: 1 }, { op: 'add', pc: 1.5, flow: 1 },
    { op: 'remove', pc: 9, flow: 9 }, { op: 'hello', pc: 1, flow: 1 }]) {
    assert.equal(registry.ask(page, bad, 0), true);
  }
  assert.equal(host.length, 1);
});

test('a tab has a number of flows, a page one of messages', () => {
  const { host, registry, open } = start();
  const { page, heard } = open('https://a.example');
  for (let flow = 1; flow <= 17; flow++) {
    const ask = { op: 'add', pc: 1, flow, ...TUPLE, source_port: 5000 + flow };
    assert.equal(registry.ask(page, ask, 0), true);
  }
  assert.equal(host.length, 16);
  assert.equal(heard[0].reason, 'full');
  let taken = 17;
  while (registry.ask(page, { op: 'sent', pc: 1, flow: 1, bps: 1 }, 0)) {
    taken++;
  }
  assert.equal(taken, 50);
  assert.equal(registry.ask(page, { op: 'sent', pc: 1, flow: 1, bps: 1 }, 1000), true);
});

test('messages are counted by frame, however often it connects', () => {
  const { registry, open } = start();
  const message = { op: 'sent', pc: 1, flow: 1, bps: 1 };
  const ask = (page, now) => registry.ask(page, message, now);
  const first = open('https://a.example', 1, 0);
  while (ask(first.page, 0)) {
    // until it is cut off
  }
  registry.close(first.page);
  const again = open('https://a.example', 1, 0);
  assert.equal(ask(again.page, 999), false);
  assert.equal(ask(open('https://a.example', 1, 7).page, 999), true, 'another frame');
  assert.equal(ask(open('https://a.example', 2, 0).page, 999), true, 'another tab');
  assert.equal(ask(again.page, 1000), true);
  assert.equal(ask(first.page, 1000), false, 'what comes behind the cut');
});

test('messages are counted by tab, however many frames it makes', () => {
  const { registry, open } = start();
  const message = { op: 'sent', pc: 1, flow: 1, bps: 1 };
  let taken = 0;
  for (let i = 0; i < 100; i++) {
    const { page } = open('https://a.example', 1);
    for (let j = 0; j < 10; j++) {
      taken += registry.ask(page, message, 0);
    }
  }
  assert.equal(taken, 100);
  assert.equal(registry.state().refused, 900);
  assert.equal(registry.ask(open('https://b.example', 2).page, message, 0), true, 'another tab');
  assert.equal(registry.ask(open('https://a.example', 1).page, message, 1000), true, 'later');
});

test('frames of one tab do not take the places of others', () => {
  const { host, registry, open } = start();
  const frames = [1, 2, 3, 4].map(() => open('https://a.example', 1));
  frames.forEach(({ page }, i) => {
    for (let flow = 1; flow <= 16; flow++) {
      registry.ask(page, { op: 'add', pc: 1, flow, ...TUPLE, source_port: 5000 + 16 * i + flow }, 0);
    }
  });
  assert.equal(host.length, 16);
  assert.deepEqual(frames.map(({ heard }) => heard.length), [0, 16, 16, 16]);
  const other = open('https://b.example', 2);
  registry.ask(other.page, { op: 'add', pc: 1, flow: 1, ...TUPLE, source_port: 7000 }, 0);
  assert.equal(host.length, 17);
  registry.close(frames[0].page); // its places are free
  registry.ask(frames[1].page, { op: 'add', pc: 1, flow: 17, ...TUPLE, source_port: 6000 }, 0);
  assert.deepEqual([host.at(-1).op, host.at(-1).source_port], ['add', 6000]);
});

test('the same packets are followed once', () => {
  const { host, registry, open } = start();
  const [a, b] = [open('https://a.example', 1), open('https://b.example', 2)];
  registry.ask(a.page, { op: 'add', pc: 1, flow: 1, ...TUPLE }, 0);
  registry.ask(a.page, { op: 'add', pc: 1, flow: 2, ...TUPLE }, 0);
  registry.ask(b.page, { op: 'add', pc: 1, flow: 1, ...TUPLE }, 0);
  assert.equal(host.length, 1);
  assert.deepEqual([a.heard, b.heard].map(([{ reason, kept }]) => [reason, kept]),
    [['taken', false], ['taken', false]]);
  registry.close(a.page);
  registry.ask(b.page, { op: 'add', pc: 1, flow: 2, ...TUPLE }, 0);
  assert.equal(host.at(-1).op, 'add');
});

test('a host that ends and comes back', () => {
  const { host, registry, open } = start();
  const { page, heard } = open('https://a.example');
  registry.ask(page, { op: 'add', pc: 1, flow: 3, ...TUPLE }, 0);
  registry.heard({ event: 'advice', flow: 1, rate_bps: 7, cause: 'erf' });
  registry.lost('it has ended');
  assert.deepEqual(heard.map(({ cause, rate_bps: bps, flow }) => [cause, bps, flow]),
    [['erf', 7, 3], ['lost', 0, 3]]);
  registry.again();
  assert.deepEqual(host[1], host[0]);
  registry.heard({ event: 'refused', flow: 1, reason: 'taken', text: 'another', kept: true });
  registry.ask(page, { op: 'sent', pc: 1, flow: 3, bps: 1 }, 0);
  assert.equal(host.at(-1).op, 'sent');
  registry.heard({ event: 'refused', flow: 1, reason: 'source_port', text: 'none', kept: false });
  registry.ask(page, { op: 'sent', pc: 1, flow: 3, bps: 1 }, 0);
  assert.equal(host.length, 3, 'the host has no such flow any more');
  assert.equal(registry.state().flows[0].text, 'none');
});

test('what cannot be followed is shown, and not told to the host', () => {
  const { host, registry, open } = start();
  const { page } = open('https://a.example');
  registry.ask(page, { op: 'cannot', pc: 1, flow: 1, text: 'TURN relay' }, 0);
  registry.ask(page, { op: 'remove', pc: 1, flow: 1 }, 0);
  assert.equal(host.length, 0);
});

test('the popup in words', () => {
  const flow = { limit: 'router', router: '10.0.0.1', cause: 'erf', text: '' };
  assert.equal(who(flow), 'router 10.0.0.1');
  assert.equal(who({ ...flow, policed: true }), 'router 10.0.0.1, which polices it');
  assert.equal(who({ ...flow, limit: 'cpu', cause: 'expired' }),
    'the routers fell silent; this computer');
  assert.equal(who({ ...flow, text: 'TURN relay' }), 'TURN relay');
  assert.equal(rate(1234567), '1.23 Mbit/s');
  const state = { host: { connected: true }, paqmd: { connected: false, text: 'No such file' } };
  assert.match(trouble({ ...state, flows: [flow] }), /paqmd cannot be reached: No such file/);
  assert.match(trouble({ ...state, flows: [] }), /No page/);
  assert.match(trouble({ ...state, flows: [], refused: 2 }), /refused: 2/);
});
