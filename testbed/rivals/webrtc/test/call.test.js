// SPDX-License-Identifier: GPL-2.0
//
// A real call between the two programs inside this host, and how they fail.

'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { Y4mReader, Y4mWriter, i420Size } = require('../lib/y4m');

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'call-'));
test.after(() => fs.rmSync(dir, { recursive: true }));
const file = (...names) => path.join(dir, ...names);

// libwebrtc likes any other interface better than loopback: take what it would take
const ADDRESS = Object.values(os.networkInterfaces()).flat()
  .filter((entry) => entry.family === 'IPv4')
  .sort((a, b) => a.internal - b.internal)[0].address;

function run(program, options) {
  const args = Object.entries(options).flatMap(([name, value]) =>
    (value === true ? [`--${name}`] : [`--${name}`, String(value)]));
  return spawn(process.execPath, [path.join(__dirname, '..', program), ...args]);
}

/** Leaves the offer of a sender that was killed, as a broken run does. */
async function abandon(options) {
  const child = run('send.js', options);
  while (!fs.existsSync(path.join(options.signal, 'offer.json'))) {
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  child.kill('SIGKILL');
  await new Promise((resolve) => { child.on('close', resolve); });
}

function start(program, options) {
  const child = run(program, options);
  const result = { status: null, out: '', err: '' };
  child.stdout.on('data', (data) => { result.out += data; });
  child.stderr.on('data', (data) => { result.err += data; });
  return new Promise((resolve) => {
    child.on('close', (status) => resolve({ ...result, status }));
  });
}

const rows = (...names) =>
  fs.readFileSync(file(...names), 'utf8').trimEnd().split('\n').slice(1).map((l) => l.split(','));

/** Ten pictures, each of one grey: told apart after any coding. */
const GREYS = Array.from({ length: 10 }, (_, i) => 30 + 20 * i);
function makeClip(name) {
  const writer = new Y4mWriter(file(name), 640, 360, 24);
  for (const grey of GREYS) {
    const picture = new Uint8Array(i420Size(640, 360)).fill(128);
    writer.write(picture.fill(grey, 0, 640 * 360), 640, 360);
  }
  writer.close();
  return file(name);
}

test('pictures arrive, in order, and every log is whole', async () => {
  const clip = makeClip('clip.y4m');
  const common = { signal: file('sig'), bind: ADDRESS };
  await abandon({ ...common, clip, log: file('send'), duration: 4 });
  const [sent, received] = await Promise.all([
    start('send.js',
      { ...common, clip, loop: true, 'start-frame': 3, log: file('send'), duration: 4 }),
    start('recv.js', { ...common, log: file('recv'), output: file('out.y4m'), duration: 5 }),
  ]);
  assert.deepEqual([sent.status, sent.err, received.status, received.err], [0, '', 0, '']);
  assert.equal(JSON.parse(sent.out).codec, 'video/VP8');
  assert.deepEqual(fs.readdirSync(file('sig')), []);

  const captured = rows('send', 'captured.csv');
  assert.equal(captured.length, JSON.parse(sent.out).frames_captured);
  captured.forEach(([frame, , picture]) => assert.equal(Number(picture), (3 + +frame) % 10));

  const shown = rows('recv', 'decoded.csv');
  const reader = new Y4mReader(file('out.y4m'));
  assert.equal(reader.frames, shown.length);
  assert.ok(shown.length > 10, `only ${shown.length} pictures`);
  let at = 0;
  for (let i = 0; i < reader.frames; i++) {
    const luma = reader.read(i).subarray(0, 640 * 360);
    const mean = luma.reduce((sum, value) => sum + value, 0) / luma.length;
    const grey = GREYS.findIndex((value) => Math.abs(value - mean) < 5);
    // every shown picture is a captured one, later than the one before, shown after its capture
    while (at < captured.length && Number(captured[at][2]) !== grey) {
      at++;
    }
    assert.ok(at < captured.length, `picture ${i} (luma ${mean}) is none that was sent`);
    assert.ok(BigInt(shown[i][2]) > BigInt(captured[at][1]));
    at++;
  }

  for (const [side, key] of [['send', 'outbound_rtp'], ['recv', 'inbound_rtp']]) {
    const lines = fs.readFileSync(file(side, 'stats.jsonl'), 'utf8').trimEnd().split('\n');
    const last = JSON.parse(lines.at(-1));
    assert.match(lines.at(-1), /^\{"t_ns":\d{19},/);
    assert.equal(last[key].frameWidth, 640);
    assert.ok(last.candidate_pair.packetsSent > 0);
  }
});

test('nobody answers', async () => {
  const result = await start('send.js', {
    clip: makeClip('alone.y4m'), signal: file('alone'), log: file('alone'), duration: 9,
    bind: ADDRESS, wait: 0.2,
  });
  assert.equal(result.status, 1);
  assert.match(result.err, /^send\.js: no answer in .* within 0\.2 s.*\n$/);
  assert.ok(!fs.existsSync(file('alone', 'offer.json')));
});

test('nobody calls', async () => {
  const result = await start('recv.js', {
    signal: file('quiet'), log: file('quiet'), output: file('quiet', 'o.y4m'), duration: 9,
    bind: ADDRESS, wait: 0.2,
  });
  assert.equal(result.status, 1);
  assert.match(result.err, /^recv\.js: no offer in .* within 0\.2 s.*\n$/);
});

test('no clip, wrong start, wrong option', async () => {
  const common = { signal: file('s'), log: file('s'), duration: 1, bind: ADDRESS };
  const missing = await start('send.js', { ...common, clip: file('missing.y4m') });
  assert.deepEqual([missing.status, /cannot open the clip/.test(missing.err)], [1, true]);
  const late = await start('send.js', { ...common, clip: makeClip('l.y4m'), 'start-frame': 10 });
  assert.deepEqual([late.status, /has 10 pictures/.test(late.err)], [2, true]);
  const wrong = await start('send.js', { bogus: true });
  assert.deepEqual([wrong.status, /--bogus/.test(wrong.err)], [2, true]);
});
