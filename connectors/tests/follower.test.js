// SPDX-License-Identifier: GPL-2.0
// The module for mediasoup with a stub in paqm-follow's place, and in virtual time.
'use strict';

const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { mock, test } = require('node:test');
const { Follower } = require('../mediasoup');

// It tells each flow 300 kbit/s of RTP.
const STUB = `#!/bin/sh
n=0
while read -r op rest; do
  [ $op = add ] || continue
  n=$((n + 1))
  echo "{\\"added\\": $n}"
  echo "{\\"flow\\": $n, \\"cause\\": \\"erf\\", \\"rate_bps\\": 315000, \\"error\\": 0}"
done
`;
const LOW = 300_000;
const CEILING = 2_000_000;

class Transport extends EventEmitter {
  constructor(protocol) {
    super();
    this.observer = new EventEmitter();
    this.go(protocol);
  }

  go(protocol) {
    this.iceSelectedTuple = protocol && { protocol, localPort: 4000, remoteIp: '192.0.2.7', remotePort: 5000 };
    this.emit('iceselectedtuplechange', this.iceSelectedTuple);
  }

  async setMaxOutgoingBitrate(bps) {
    this.rate = bps;
  }
}

// The child is a real process: its answers take their time, whatever the timers say.
const until = async (holds) => {
  const limit = performance.now() + 20_000;
  while (!holds()) {
    assert.ok(performance.now() < limit, `waited for ${holds}`);
    await new Promise(setImmediate);
  }
};

let dir;
let errors;
let follower;
test.beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'paqm-'));
  const command = path.join(dir, 'paqm-follow');
  fs.writeFileSync(command, STUB, { mode: 0o755 });
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  errors = [];
  follower = new Follower({ command, onError: (err) => errors.push(err.message) });
});
test.afterEach(() => {
  follower.close();
  mock.timers.reset();
  fs.rmSync(dir, { recursive: true });
});

const followed = async (protocol) => {
  const transport = new Transport(protocol);
  follower.follow(transport, { ceiling: CEILING });
  if (protocol === 'udp') await until(() => transport.rate === LOW);
  return transport;
};

test('over TCP there is no advice: the ceiling, slowly', async () => {
  const transport = await followed('udp');
  transport.go('tcp');
  mock.timers.tick(1000);
  assert.strictEqual(transport.rate, LOW * 1.08);
  mock.timers.tick(60_000);
  assert.strictEqual(transport.rate, CEILING);
  transport.go('udp');
  await until(() => transport.rate === LOW);
  assert.deepStrictEqual(errors, []);
});

test('a closed transport is left alone', async () => {
  const transport = await followed('udp');
  transport.observer.emit('close');
  mock.timers.tick(60_000);
  assert.strictEqual(transport.rate, LOW);
});

test('so is one that was closed before', async () => {
  const transport = new Transport('udp');
  transport.closed = true;
  follower.follow(transport, { ceiling: CEILING });
  mock.timers.tick(60_000);
  assert.strictEqual(transport.rate, undefined);
});

test('what could not be set is set again', async () => {
  const transport = await followed('udp');
  const { setMaxOutgoingBitrate: works } = transport;
  transport.setMaxOutgoingBitrate = async () => {
    throw new Error('channel request timeout');
  };
  transport.go('tcp');
  mock.timers.tick(30_000);
  await until(() => errors.length > 0);
  transport.setMaxOutgoingBitrate = works;
  mock.timers.tick(60_000);
  await until(() => transport.rate === CEILING);
  const told = errors.length;
  mock.timers.tick(60_000);
  assert.strictEqual(errors.length, told);
});

test('a transport has its ceiling again when the follower is closed', async () => {
  const transport = await followed('udp');
  const closed = await followed('udp');
  closed.observer.emit('close');
  follower.close();
  assert.deepStrictEqual([transport.rate, closed.rate], [CEILING, LOW]);
  mock.timers.tick(60_000);
  await new Promise(setImmediate);
  assert.deepStrictEqual([transport.rate, errors], [CEILING, []]);
});

test('paqm-follow is started again', async () => {
  const transport = await followed('udp');
  const closed = await followed('udp');
  for (const times of [1, 2]) {
    const first = follower.child;
    process.kill(first.pid);
    closed.observer.emit('close');
    await until(() => errors.length === times);
    const later = await followed('');
    later.go('udp'); // while there is none
    mock.timers.tick(999);
    assert.strictEqual(transport.rate, LOW);
    mock.timers.tick(1);
    assert.notStrictEqual(follower.child, first);
    await until(() => follower.flows.size === times + 1 && transport.rate === LOW && later.rate === LOW);
  }
});

test('not at once, if it does not work', async () => {
  fs.writeFileSync(path.join(dir, 'paqm-follow'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  process.kill(follower.child.pid);
  await until(() => errors.length === 1);
  for (const wait of [1, 2, 4, 8, 16, 32, 60, 60]) {
    const before = errors.length;
    mock.timers.tick(1000 * wait - 1);
    assert.strictEqual(follower.child, null);
    mock.timers.tick(1);
    await until(() => errors.length === before + 1);
  }
});

test('what is no answer ends it, and it is started again', async () => {
  const transport = await followed('udp');
  for (const [i, line] of ['{"added": 1', 'null', '5', ''].entries()) {
    const first = follower.child;
    first.stdout.push(`${line}\n`);
    await until(() => errors.length === i + 1);
    assert.match(errors[i], /paqm-follow says/);
    assert.strictEqual(follower.child, null);
    mock.timers.tick(1000);
    await until(() => follower.flows.size === 1 && transport.rate === LOW);
  }
});

// A process of its own, as the limit is a process's.
const NO_FILES = `
const fs = require('node:fs');
const { Transport, Follower, command, LOW } = require(process.argv[1]);
const held = [];
try {
  for (;;) held.push(fs.openSync('/dev/null'));
} catch {}
const follower = new Follower({
  command,
  onError: (err) => {
    console.log(err.code);
    held.splice(0).forEach((fd) => fs.closeSync(fd));
  },
});
const transport = new Transport('udp');
follower.follow(transport, { ceiling: 2 * LOW });
const ended = setInterval(() => {
  if (transport.rate !== LOW) return;
  clearInterval(ended);
  follower.close();
  console.log('followed');
}, 10);
`;

test('the application outlives a lack of files', () => {
  const shared = path.join(dir, 'shared.js');
  fs.writeFileSync(
    shared,
    `const { EventEmitter } = require('node:events');
${Transport}
module.exports = {
  Transport,
  LOW: ${LOW},
  command: ${JSON.stringify(path.join(dir, 'paqm-follow'))},
  Follower: require(${JSON.stringify(path.resolve(__dirname, '../mediasoup'))}).Follower,
};
`,
  );
  const run = spawnSync('sh', ['-c', 'ulimit -n 64 && exec "$0" -e "$1" "$2"', process.execPath, NO_FILES, shared], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  assert.strictEqual(run.stderr, '');
  assert.strictEqual(run.stdout, 'EMFILE\nfollowed\n');
});

test('a ceiling that is none is refused', () => {
  for (const options of [undefined, {}, { ceiling: '2mbit' }, { ceiling: NaN }, { ceiling: 0 }]) {
    const transport = new Transport('udp');
    assert.throws(() => follower.follow(transport, options), /ceiling .*: expected bit\/s/);
    mock.timers.tick(1000);
    assert.strictEqual(transport.rate, undefined);
  }
});
