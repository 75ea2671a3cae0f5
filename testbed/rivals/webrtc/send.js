// SPDX-License-Identifier: GPL-2.0
//
// Media sender on stock libwebrtc: pushes the pictures of a y4m clip, at the clip's rate, into
// a video track and calls recv.js. Congestion control, pacing, NACK and VP8 are libwebrtc's.

'use strict';

const fs = require('node:fs');
const path = require('node:path');
const cli = require('./lib/cli');
const { Y4mReader } = require('./lib/y4m');
const { call } = require('./lib/signal');
const { SENDER, StatsLog, agreed } = require('./lib/stats');

const OPTIONS = {
  clip: { parse: cli.parseText, required: true, help: 'FILE.y4m, 8-bit 4:2:0' },
  loop: { fallback: false, help: 'begin again when the clip ends (else stop there)' },
  'start-frame': { parse: cli.parseCount, fallback: 0, help: 'N, first picture of the clip' },
  fps: { parse: cli.parsePositive, help: "pictures per second (the clip's own rate)" },
  'rate-max': { parse: cli.parseRate, fallback: 3e6, help: 'BPS, highest video rate (3mbit)' },
  signal: { parse: cli.parseText, required: true, help: 'DIR for offer and answer' },
  log: { parse: cli.parseText, required: true, help: 'DIR for stats.jsonl and captured.csv' },
  duration: { parse: cli.parsePositive, required: true, help: 'S from the start of the program' },
  bind: { parse: cli.parseLocalAddress, required: true, help: 'ADDR to send from' },
  wait: { parse: cli.parsePositive, fallback: 30, help: 'S to wait for the answer (30)' },
};

/**
 * One picture every 1/fps s, counted from the first so that the error never adds up; node's
 * timers have whole milliseconds, hence each may be a millisecond or two late. A picture whose time
 * has passed by more than an interval (a stalled machine) is left out, as a camera does.
 */
async function pushFrames(reader, source, options, stop, csv) {
  const fps = options.fps || reader.fps;
  const zero = process.hrtime.bigint();
  let pushed = 0;
  for (let frame = 0; ; frame++) {
    const due = Number(zero - process.hrtime.bigint()) / 1e6 + (frame * 1000) / fps;
    if (due > 0) {
      await cli.sleep(Math.ceil(due));
    } else if (due < -1000 / fps) {
      continue;
    }
    const index = options['start-frame'] + frame;
    if (stop.asked || cli.uptime() >= options.duration
        || (index >= reader.frames && !options.loop)) {
      return pushed;
    }
    const picture = index % reader.frames;
    const data = new Uint8ClampedArray(reader.read(picture));
    fs.writeSync(csv, `${frame},${cli.realtimeNs()},${picture}\n`);
    source.onFrame({ width: reader.width, height: reader.height, data });
    pushed++;
  }
}

async function run(stop) {
  const options = cli.parseOptions(
    'send.js', 'Send a clip by libwebrtc, as a browser would.', OPTIONS, process.argv.slice(2));
  const reader = new Y4mReader(options.clip);
  if (options['start-frame'] >= reader.frames) {
    throw new cli.UsageError(
      `--start-frame: ${options.clip} has ${reader.frames} pictures, counted from 0`);
  }
  if (!(options.fps || reader.fps > 0)) {
    throw new cli.UsageError(`--fps: ${options.clip} names no rate, give one`);
  }
  for (const dir of [options.signal, options.log]) {
    fs.mkdirSync(dir, { recursive: true });
  }
  const { RTCPeerConnection, nonstandard } = cli.loadLibrary();

  const pc = new RTCPeerConnection({ iceServers: [] });
  const source = new nonstandard.RTCVideoSource();
  const track = source.createTrack();
  pc.addTransceiver(track, { direction: 'sendonly' });
  const accepted = await call(pc, {
    dir: options.signal,
    address: options.bind,
    maxBps: options['rate-max'],
    wait: options.wait,
    stop,
  });
  if (!accepted) {
    throw new cli.RunError('stopped by a signal before the other side answered');
  }
  await cli.poll(
    () => {
      if (pc.connectionState === 'failed') {
        throw new cli.RunError('connection failed: no packet came back; check route and firewall');
      }
      return pc.connectionState === 'connected';
    },
    options.wait, () => `not connected within ${options.wait} s (${pc.connectionState})`, stop);

  const { local } = agreed(await pc.getStats());
  if (local !== null && local !== options.bind) {
    throw new cli.RunError(
      `libwebrtc sends from ${local}, not from --bind ${options.bind}; it cannot be bound, so ` +
      'give each side a network namespace with that one address');
  }

  const csv = fs.openSync(path.join(options.log, 'captured.csv'), 'w');
  fs.writeSync(csv, 'frame,t_ns,src_frame\n');
  const stats = new StatsLog(pc, options.log, SENDER);
  const frames = await pushFrames(reader, source, options, stop, csv);
  const result = agreed(await pc.getStats());
  await stats.close();
  fs.closeSync(csv);
  const state = pc.connectionState;
  track.stop();
  pc.close();
  reader.close();

  const rtp = stats.last.outbound_rtp || {};
  process.stdout.write(`${JSON.stringify({
    program: 'send', codec: result.codec, local: result.local, remote: result.remote,
    frames_captured: frames, frames_encoded: rtp.framesEncoded, packets: rtp.packetsSent,
    connection: state,
  })}\n`);
  if (result.codec !== 'video/VP8') {
    throw new cli.RunError(`the call settled on ${result.codec}, not on VP8`);
  }
  if (state === 'failed') {
    throw new cli.RunError('the connection failed while sending');
  }
}

cli.main('send.js', run);
