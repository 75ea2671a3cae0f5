// SPDX-License-Identifier: GPL-2.0
//
// Media receiver on stock libwebrtc: answers send.js and writes every picture that libwebrtc
// would show, at the moment it would show it (after its jitter buffer), into a y4m file.

'use strict';

const fs = require('node:fs');
const path = require('node:path');
const cli = require('./lib/cli');
const { Y4mWriter } = require('./lib/y4m');
const { accept, pendingOffer } = require('./lib/signal');
const { RECEIVER, StatsLog, agreed } = require('./lib/stats');

const OPTIONS = {
  signal: { parse: cli.parseText, required: true, help: 'DIR for offer and answer' },
  log: { parse: cli.parseText, required: true, help: 'DIR for stats.jsonl and decoded.csv' },
  output: { parse: cli.parseText, required: true, help: 'FILE.y4m for the decoded pictures' },
  duration: { parse: cli.parsePositive, required: true, help: 'S from the start of the program' },
  bind: { parse: cli.parseLocalAddress, required: true, help: 'ADDR to receive on' },
  width: { parse: cli.parseCount, fallback: 640, help: 'of the output (640)' },
  height: { parse: cli.parseCount, fallback: 360, help: 'of the output (360)' },
  fps: { parse: cli.parsePositive, fallback: 24, help: "nominal, for the file's header (24)" },
  wait: { parse: cli.parsePositive, fallback: 30, help: 'S to wait for the offer (30)' },
};

/** Writes shown pictures and their times; counts what it wrote. */
class Recorder {
  constructor(options) {
    this.frames = 0;
    this.scaled = 0;
    this.error = null;
    this.y4m = new Y4mWriter(options.output, options.width, options.height, options.fps);
    this.csv = fs.openSync(path.join(options.log, 'decoded.csv'), 'w');
    fs.writeSync(this.csv, 'index,rtp_ts,t_ns\n');
  }

  /** rtp_ts stays empty: the library does not hand it out. The barcode tells the frame. */
  add(frame) {
    if (this.error) {
      return;
    }
    try {
      const now = cli.realtimeNs();
      this.y4m.write(frame.data, frame.width, frame.height);
      fs.writeSync(this.csv, `${this.frames},,${now}\n`);
      this.frames++;
      this.scaled += Number(frame.width !== this.y4m.width || frame.height !== this.y4m.height);
    } catch (error) {
      this.error = error; // a full disk: thrown later, outside the library's callback
    }
  }

  close() {
    this.y4m.close();
    fs.closeSync(this.csv);
  }
}

/**
 * Answers offers until one leads to a connection; resolves with that peer connection, or null
 * if told to stop. A newer offer replaces one whose sender is gone.
 */
async function connect(library, options, stop, onTrack) {
  const deadline = cli.uptime() + options.wait;
  let pc = null;
  let seen = null;
  const complaint = () => (pc
    ? `not connected within ${options.wait} s (${pc.connectionState}); check route and firewall`
    : `no offer in ${options.signal} within ${options.wait} s; is send.js running there?`);
  for (;;) {
    const event = await cli.poll(
      () => (pc && pc.connectionState === 'connected'
        ? { connected: true }
        : pendingOffer(options.signal, seen)),
      deadline - cli.uptime(), complaint, stop);
    if (!event || event.connected) {
      return event && pc;
    }
    if (pc) {
      pc.close();
    }
    seen = event.id;
    pc = new library.RTCPeerConnection({ iceServers: [] });
    pc.ontrack = onTrack;
    await accept(pc, event, { dir: options.signal, address: options.bind, stop });
  }
}

async function run(stop) {
  const options = cli.parseOptions(
    'recv.js', 'Receive and record what send.js sends.', OPTIONS, process.argv.slice(2));
  for (const dir of [options.signal, options.log, path.dirname(options.output)]) {
    fs.mkdirSync(dir, { recursive: true });
  }
  const library = cli.loadLibrary();
  const recorder = new Recorder(options);
  let sink = null;
  const pc = await connect(library, options, stop, ({ track }) => {
    sink = new library.nonstandard.RTCVideoSink(track);
    sink.onframe = ({ frame }) => recorder.add(frame);
  });
  if (!pc) {
    throw new cli.RunError('stopped by a signal before the call was set up');
  }

  const stats = new StatsLog(pc, options.log, RECEIVER);
  let call = agreed(await pc.getStats());
  const ended = () => ['closed', 'failed'].includes(pc.connectionState);
  while (!stop.asked && !recorder.error && !ended() && cli.uptime() < options.duration) {
    await cli.sleep(Math.min(100, Math.ceil((options.duration - cli.uptime()) * 1000)));
  }
  const state = pc.connectionState;
  const last = agreed(await pc.getStats());
  call = last.local ? last : call;
  await stats.close();
  if (sink) {
    sink.onframe = null;
    sink.stop();
  }
  pc.close();
  recorder.close();

  process.stdout.write(`${JSON.stringify({
    program: 'recv', codec: call.codec, local: call.local, remote: call.remote,
    frames_written: recorder.frames, frames_scaled: recorder.scaled, connection: state,
  })}\n`);
  if (recorder.error) {
    throw recorder.error;
  }
  if (recorder.frames === 0) {
    throw new cli.RunError('connected, but no picture could be decoded');
  }
}

cli.main('recv.js', run);
