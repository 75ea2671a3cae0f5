// SPDX-License-Identifier: GPL-2.0
//
// YUV4MPEG2 files of 8-bit 4:2:0 pictures: random access reading, sequential writing, and
// scaling of a picture whose sender lowered the resolution.

'use strict';

const fs = require('node:fs');
const { RunError } = require('./cli');

const MARK = Buffer.from('FRAME\n');

/** Bytes of one I420 picture; odd sizes round the chroma planes up. */
function i420Size(width, height) {
  return width * height + 2 * ((width + 1) >> 1) * ((height + 1) >> 1);
}

class Y4mReader {
  constructor(path) {
    this.path = path;
    try {
      this.fd = fs.openSync(path, 'r');
    } catch (error) {
      throw new RunError(`cannot open the clip: ${error.message}`);
    }
    const head = Buffer.alloc(256);
    const got = fs.readSync(this.fd, head, 0, head.length, 0);
    const end = head.subarray(0, got).indexOf('\n');
    const words = end > 0 ? head.toString('latin1', 0, end).split(' ') : [];
    if (words[0] !== 'YUV4MPEG2') {
      throw new RunError(`${path}: not a YUV4MPEG2 file; make one with ffmpeg (… clip.y4m)`);
    }
    const tag = (letter) => (words.find((word, i) => i && word[0] === letter) || '').slice(1);
    this.width = Number(tag('W'));
    this.height = Number(tag('H'));
    const [num, den] = tag('F').split(':').map(Number);
    this.fps = num / den;
    if (!(this.width > 0 && this.height > 0)) {
      throw new RunError(`${path}: header has no picture size (W and H)`);
    }
    if (!/^(420(jpeg|mpeg2|paldv)?)?$/.test(tag('C'))) {
      throw new RunError(`${path}: pixel format C${tag('C')}, wanted 8-bit 4:2:0 (C420…)`);
    }
    this.offset = end + 1;
    this.stride = MARK.length + i420Size(this.width, this.height);
    this.frames = Math.floor((fs.fstatSync(this.fd).size - this.offset) / this.stride);
    if (this.frames < 1) {
      throw new RunError(`${path}: holds no whole picture`);
    }
    this.buffer = Buffer.alloc(this.stride);
  }

  /** The I420 bytes of picture number index; valid until the next call. */
  read(index) {
    const at = this.offset + index * this.stride;
    const got = fs.readSync(this.fd, this.buffer, 0, this.stride, at);
    if (got !== this.stride || !this.buffer.subarray(0, MARK.length).equals(MARK)) {
      throw new RunError(`${this.path}: picture ${index} is damaged (no FRAME at byte ${at})`);
    }
    return this.buffer.subarray(MARK.length);
  }

  close() {
    fs.closeSync(this.fd);
  }
}

/**
 * Writes pictures at once and in order, so that nothing heaps up in memory. The rate in the
 * header is nominal: when each picture was shown stands in decoded.csv.
 */
class Y4mWriter {
  constructor(path, width, height, fps) {
    this.path = path;
    this.width = width;
    this.height = height;
    this.fd = fs.openSync(path, 'w');
    const rate = Number.isInteger(fps) ? `${fps}:1` : `${Math.round(fps * 1000)}:1000`;
    this.put(Buffer.from(`YUV4MPEG2 W${width} H${height} F${rate} Ip A1:1 C420jpeg\n`));
    this.scaled = Buffer.alloc(i420Size(width, height));
  }

  write(data, width, height) {
    let picture = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    if (width !== this.width || height !== this.height) {
      scaleI420(picture, width, height, this.scaled, this.width, this.height);
      picture = this.scaled;
    }
    this.put(MARK);
    this.put(picture);
  }

  /** Write all of it, also where a write is cut short (pipes, file systems nearly full). */
  put(buffer) {
    try {
      for (let at = 0; at < buffer.length;) {
        at += fs.writeSync(this.fd, buffer, at, buffer.length - at);
      }
    } catch (error) {
      throw new RunError(`cannot write ${this.path}: ${error.message}`);
    }
  }

  close() {
    fs.closeSync(this.fd);
  }
}

/** Bilinear, sample centres aligned, 16.16 fixed point. */
function scalePlane(src, sw, sh, dst, dw, dh) {
  const place = (i, from, to) =>
    Math.min(Math.max(((i + 0.5) * from) / to - 0.5, 0), from - 1) * 65536;
  const columns = Array.from({ length: dw }, (_, x) => {
    const at = Math.floor(place(x, sw, dw));
    return [at >> 16, Math.min((at >> 16) + 1, sw - 1), at & 0xffff];
  });
  for (let y = 0; y < dh; y++) {
    const at = Math.floor(place(y, sh, dh));
    const top = (at >> 16) * sw;
    const bottom = Math.min((at >> 16) + 1, sh - 1) * sw;
    const fy = at & 0xffff;
    for (let x = 0; x < dw; x++) {
      const [x0, x1, fx] = columns[x];
      const upper = src[top + x0] * (65536 - fx) + src[top + x1] * fx;
      const lower = src[bottom + x0] * (65536 - fx) + src[bottom + x1] * fx;
      dst[y * dw + x] = Math.round((upper * (65536 - fy) + lower * fy) / 4294967296);
    }
  }
}

function scaleI420(src, sw, sh, dst, dw, dh) {
  const [scw, sch, dcw, dch] = [sw + 1, sh + 1, dw + 1, dh + 1].map((side) => side >> 1);
  let s = sw * sh;
  let d = dw * dh;
  scalePlane(src.subarray(0, s), sw, sh, dst.subarray(0, d), dw, dh);
  for (let plane = 0; plane < 2; plane++) {
    scalePlane(src.subarray(s, s + scw * sch), scw, sch, dst.subarray(d, d + dcw * dch), dcw, dch);
    s += scw * sch;
    d += dcw * dch;
  }
}

module.exports = { Y4mReader, Y4mWriter, i420Size, scaleI420 };
