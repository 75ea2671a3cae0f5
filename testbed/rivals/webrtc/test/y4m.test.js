// SPDX-License-Identifier: GPL-2.0
//
// y4m reading and writing, and the scaler.

'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { Y4mReader, Y4mWriter, i420Size, scaleI420 } = require('../lib/y4m');

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'y4m-'));
test.after(() => fs.rmSync(dir, { recursive: true }));
const file = (name) => path.join(dir, name);

function pattern(width, height, seed) {
  return Uint8Array.from({ length: i420Size(width, height) }, (_, i) => (i * 31 + seed * 7) & 255);
}

for (const [width, height] of [[16, 8], [15, 9]]) {
  test(`pictures of ${width}x${height} come back as written, in any order`, () => {
    const writer = new Y4mWriter(file('a.y4m'), width, height, 24);
    for (let i = 0; i < 3; i++) {
      writer.write(pattern(width, height, i), width, height);
    }
    writer.close();
    const reader = new Y4mReader(file('a.y4m'));
    assert.deepEqual([reader.width, reader.height, reader.fps, reader.frames],
      [width, height, 24, 3]);
    for (const i of [2, 0, 1]) {
      assert.deepEqual(Uint8Array.from(reader.read(i)), pattern(width, height, i));
    }
    reader.close();
  });
}

test('a picture of another size is scaled to the size of the file', () => {
  const writer = new Y4mWriter(file('b.y4m'), 64, 36, 24);
  writer.write(new Uint8Array(i420Size(32, 18)).fill(90), 32, 18);
  writer.close();
  const picture = new Y4mReader(file('b.y4m')).read(0);
  assert.equal(picture.length, i420Size(64, 36));
  assert.ok(picture.every((value) => value === 90));
});

test('the scaler interpolates between samples and keeps planes apart', () => {
  const src = new Uint8Array(i420Size(4, 2));
  src.set([0, 80, 160, 240, 0, 80, 160, 240]); // luma: a ramp
  src.set([50, 50], 8);
  src.set([200, 200], 10);
  const dst = new Uint8Array(i420Size(8, 2));
  scaleI420(src, 4, 2, dst, 8, 2);
  assert.deepEqual([...dst.subarray(0, 8)], [0, 20, 60, 100, 140, 180, 220, 240]);
  assert.ok(dst.subarray(16, 20).every((value) => value === 50));
  assert.ok(dst.subarray(20, 24).every((value) => value === 200));
});

test('files that are no clip are refused by name', () => {
  const refuse = (name, content, message) => {
    fs.writeFileSync(file(name), content);
    assert.throws(() => new Y4mReader(file(name)), (error) =>
      error.message.includes(name) && message.test(error.message));
  };
  refuse('c.y4m', 'RIFF....', /not a YUV4MPEG2/);
  refuse('d.y4m', 'YUV4MPEG2 W16 H8 F24:1 C444\n', /C444/);
  refuse('e.y4m', 'YUV4MPEG2 F24:1 C420\n', /picture size/);
  refuse('f.y4m', 'YUV4MPEG2 W16 H8 F24:1 C420\nFRAME\n', /no whole picture/);
  assert.throws(() => new Y4mReader(file('none.y4m')), /cannot open the clip.*none\.y4m/);
});

test('a damaged picture is named', () => {
  const writer = new Y4mWriter(file('g.y4m'), 16, 8, 24);
  writer.write(pattern(16, 8, 0), 16, 8);
  writer.close();
  const bytes = fs.readFileSync(file('g.y4m'));
  bytes.write('-----', bytes.indexOf('FRAME'));
  fs.writeFileSync(file('g.y4m'), bytes);
  assert.throws(() => new Y4mReader(file('g.y4m')).read(0), /picture 0 is damaged/);
});

test('a full disk is an error that names the file', () => {
  assert.throws(() => new Y4mWriter('/dev/full', 16, 8, 24), /cannot write \/dev\/full/);
});
