// SPDX-License-Identifier: GPL-2.0
// page.js, relay.js and background.js together, with as much of a browser around them as they use.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { Clock, Peer } from './clock.mjs';

const TOP = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '..');
const read = (name) => fs.readFileSync(path.join(TOP, name), 'utf8');
// as make_extension.py does
const PAGE = `(() => {\n${read('paqm-rtc.js').replaceAll(/^export /gm, '')}${read('extension/page.js')}})();`;

v8.setFlagsFromString('--expose-gc');
const gc = vm.runInNewContext('gc');
const clock = new Clock();
globalThis.setInterval = () => 0; // the popup's
Date.now = () => clock.now;
// Debian 12's node has no such class
globalThis.CustomEvent ??= class extends globalThis.Event {
  constructor(type, { detail = null, ...more } = {}) {
    super(type, more);
    this.detail = detail;
  }
};

class Event {
  constructor() {
    this.heard = [];
  }

  addListener(call) {
    this.heard.push(call);
  }

  fire(...values) {
    this.heard.forEach((call) => call(...values));
  }
}

/** The two ends of a port; what one says the other hears later. */
function ports(name, sender) {
  let open = true;
  const ends = [{ name }, { name, sender }];
  ends.forEach((end, i) => Object.assign(end, {
    onMessage: new Event(),
    onDisconnect: new Event(),
    postMessage(message) {
      if (!open) {
        throw new Error('Attempting to use a disconnected port object');
      }
      const text = JSON.stringify(message);
      setTimeout(() => open && ends[1 - i].onMessage.fire(JSON.parse(text)), 1);
    },
    disconnect() {
      if (open) {
        open = false;
        setTimeout(() => ends[1 - i].onDisconnect.fire(ends[1 - i]), 1);
      }
    },
  }));
  return ends;
}

let native = null; // the port to paqm-native-host
const host = []; // all that paqm-native-host was told, and when
const opened = []; // the worker's ends of all pages' ports
const onConnect = new Event();
globalThis.chrome = {
  runtime: {
    onConnect,
    connectNative() {
      native = {
        onMessage: new Event(),
        onDisconnect: new Event(),
        postMessage: (message) => host.push({ at: clock.now, ...message }),
      };
      return native;
    },
  },
};
await import('../extension/background.js');

/** A page, in a tab of its own. */
function load(tab, RTCPeerConnection = undefined) {
  const document = new EventTarget();
  const connect = ({ name }) => {
    const [page, worker] = ports(name, { origin: 'https://a.example', tab: { id: tab }, frameId: 0 });
    opened.push(worker);
    onConnect.fire(worker);
    return page;
  };
  const common = { document, CustomEvent, setTimeout, clearTimeout, Date };
  const window = { RTCPeerConnection };
  let end = () => {};
  const run = () => {
    let runs = true;
    end();
    end = () => { runs = false; };
    const addEventListener = (name, call) => (
      document.addEventListener(name, (event) => runs && call(event)));
    vm.runInNewContext(read('extension/relay.js'), {
      ...common,
      document: { addEventListener, dispatchEvent: (event) => document.dispatchEvent(event) },
      chrome: { runtime: { id: 'x', connect } },
    });
    vm.runInNewContext(PAGE,
      { ...common, window, console: { debug() {} }, performance: { now: () => clock.now } });
  };
  run();
  host.length = 0;
  opened.length = 0;
  const up = (detail) => document.dispatchEvent(new CustomEvent('paqm-up', { detail }));
  return { window, up, run, leave: () => end() };
}

class Connection extends Peer {
  static count = 0;

  constructor() {
    super(clock);
    this.remote = `10.0.0.${++Connection.count}`;
    this.changed = [];
  }

  addEventListener(_, call) {
    this.changed.push(call);
  }
}

test('a page that floods is cut off, and remains so for a while', async () => {
  const { up } = load(1);
  let flow = 0;
  for (let i = 0; i < 200; i++) {
    for (let j = 0; j < 5; j++) {
      const message = { pc: 1, flow: ++flow, source_port: flow, destination: '192.0.2.1', destination_port: 9 };
      up(JSON.stringify({ op: 'add', ...message }));
      up(JSON.stringify({ op: 'remove', ...message }));
    }
    await clock.pass(50);
  }
  const most = Math.max(...Array.from({ length: 11 }, (_, second) => (
    host.filter(({ at }) => Math.floor(at / 1000) === second).length)));
  assert.ok(most > 0 && most <= 50 + 16, `${most} a second, the flows that it had included`);
  assert.ok(opened.length > 1 && opened.length <= 4, `${opened.length} ports in 10 s`);
});

test('what is no JSON opens no ports', async () => {
  const { up } = load(2);
  Array.from({ length: 10 }, () => up('{'));
  await clock.pass(100);
  assert.equal(opened.length, 0);
});

test('a connection that is closed is forgotten', async () => {
  let last = null;
  const { window } = load(4, class extends Connection {
    constructor() {
      super();
      last = new WeakRef(this);
    }
  });
  const call = async () => {
    const pc = new window.RTCPeerConnection();
    pc.changed.forEach((changed) => changed());
    await clock.pass(1500);
    assert.equal(host.filter(({ op }) => op === 'add').length, 1);
    pc.connectionState = 'closed';
    await clock.pass(1500);
    assert.equal(host.at(-1).op, 'remove');
  };
  await call();
  await new Promise((done) => { setImmediate(done); });
  gc();
  assert.equal(last.deref(), undefined);
});

test('a page that the worker does not hear has no cap', async () => {
  const { window } = load(5, Connection);
  const pc = new window.RTCPeerConnection();
  pc.changed.forEach((call) => call());
  await clock.pass(1500);
  const added = () => host.filter(({ op }) => op === 'add');
  const advise = () => native.onMessage.fire(
    { event: 'advice', flow: added().at(-1).flow, rate_bps: 0.9e6, cause: 'erf', router: '10.0.0.1' });
  advise();
  await clock.pass(2000);
  assert.ok(pc.encodings[0].maxBitrate < 0.9e6);
  const [worker] = opened;
  worker.disconnect();
  worker.onDisconnect.fire(worker);
  await clock.pass(50);
  assert.equal('maxBitrate' in pc.encodings[0], false, 'at once: nobody says that the advice ends');
  assert.equal(added().length, 1);
  await clock.pass(2000);
  assert.equal(added().length, 2);
  advise();
  await clock.pass(1000);
  assert.ok(pc.encodings[0].maxBitrate < 0.9e6);
  pc.connectionState = 'closed';
  await clock.pass(2000);
});

test('an extension that is renewed comes into an open page once more', async () => {
  const { window, run } = load(6, Connection);
  const begin = async () => {
    const pc = new window.RTCPeerConnection();
    pc.changed.forEach((call) => call());
    await clock.pass(1500);
    return pc;
  };
  const added = () => host.filter(({ op }) => op === 'add');
  const first = await begin();
  native.onMessage.fire(
    { event: 'advice', flow: added().at(-1).flow, rate_bps: 0.9e6, cause: 'erf', router: '10.0.0.1' });
  await clock.pass(2000);
  assert.ok(first.encodings[0].maxBitrate < 0.9e6);
  const [worker] = opened;
  worker.onDisconnect.fire(worker); // Firefox: what ran in the page has ended, and hears of nothing
  run();
  await clock.pass(50);
  assert.equal('maxBitrate' in first.encodings[0], false, 'nobody says that the advice ends');
  await clock.pass(1500);
  assert.equal(added().length, 2);
  const second = await begin();
  assert.equal(second.changed.length, 1, 'it is found once');
  assert.equal(added().length, 3);
  [first, second].forEach((pc) => { pc.connectionState = 'closed'; });
  await clock.pass(2000);
});

/** How many flows paqm-native-host has. */
function flows() {
  const open = new Set();
  host.forEach(({ op, flow }) => (op === 'add' ? open.add(flow) : op === 'remove' && open.delete(flow)));
  return open.size;
}

test('a page with more connections than are followed is not cut off', async () => {
  const { window } = load(7, Connection);
  const all = Array.from({ length: 60 }, () => new window.RTCPeerConnection());
  all.forEach(({ changed }) => changed.forEach((call) => call()));
  for (let i = 0; i < 20; i++) {
    await clock.pass(1500);
    assert.equal(flows(), 16);
  }
  all.slice(0, 50).forEach((pc) => { pc.connectionState = 'closed'; });
  await clock.pass(8000);
  assert.equal(flows(), 10, 'those that were left out');
  assert.equal(opened.length, 1);
  all.forEach((pc) => { pc.connectionState = 'closed'; });
  await clock.pass(2000);
  assert.equal(flows(), 0);
});

test('what is left in a page when the extension is removed has no caps', async () => {
  const { window, run, leave } = load(8, Connection);
  const all = [new window.RTCPeerConnection(), new window.RTCPeerConnection()];
  all.forEach(({ changed }) => changed.forEach((call) => call()));
  const added = () => host.filter(({ op }) => op === 'add');
  const follows = async (count) => {
    await clock.pass(1500);
    assert.equal(added().length, count);
    added().slice(-2).forEach(({ flow }) => native.onMessage.fire(
      { event: 'advice', flow, rate_bps: 0.9e6, cause: 'erf', router: '10.0.0.1' }));
    await clock.pass(2000);
    all.forEach((pc) => assert.ok(pc.encodings[0].maxBitrate < 0.9e6));
  };
  await follows(2);
  leave(); // Firefox: relay.js has ended, and nobody tells the page
  await clock.pass(1500);
  all.forEach((pc) => assert.equal('maxBitrate' in pc.encodings[0], false));
  await clock.pass(30000);
  all.forEach((pc) => assert.equal('maxBitrate' in pc.encodings[0], false));
  opened[0].onDisconnect.fire(opened[0]);
  run(); // and comes back
  await follows(4);
  all.forEach((pc) => { pc.connectionState = 'closed'; });
  await clock.pass(2000);
});

test('many connections outlive a stop of the worker', async () => {
  const { window } = load(3, Connection);
  const all = Array.from({ length: 20 }, () => new window.RTCPeerConnection());
  all.forEach(({ changed }) => changed.forEach((call) => call()));
  await clock.pass(3000);
  assert.equal(opened.length, 1);
  assert.equal(flows(), 16);
  const [worker] = opened;
  worker.disconnect(); // the page hears of it
  worker.onDisconnect.fire(worker);
  assert.equal(flows(), 0);
  await clock.pass(10000);
  assert.ok(opened.length <= 3, `${opened.length} ports in 10 s`);
  assert.equal(flows(), 16);
  all.forEach((pc) => { pc.connectionState = 'closed'; });
  await clock.pass(2000);
});
