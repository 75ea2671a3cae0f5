// SPDX-License-Identifier: GPL-2.0
//
// Media receiver on a browser: answers send.js and writes every picture that the browser hands to a
// viewer, at the moment it does so (after its jitter buffer), into a y4m file.

'use strict';

const fs = require('node:fs');
const path = require('node:path');
const cli = require('../webrtc/lib/cli');
const { Y4mWriter } = require('../webrtc/lib/y4m');
const { accept, pendingOffer } = require('../webrtc/lib/signal');
const { RECEIVER, StatsLog, agreed } = require('../webrtc/lib/stats');
const { CHOICE } = require('./browsers');
const { Peer } = require('./driver');

const OPTIONS = {
  signal: { parse: cli.parseText, required: true, help: 'DIR for offer and answer' },
  log: { parse: cli.parseText, required: true, help: 'DIR for stats.jsonl and decoded.csv' },
  output: { parse: cli.parseText, required: true, help: 'FILE.y4m for the decoded pictures' },
  ...CHOICE,
  duration: { parse: cli.parsePositive, required: true, help: 'S from the start of the program' },
  bind: { parse: cli.parseLocalAddress, required: true, help: 'ADDR to receive on' },
  width: { parse: cli.parseCount, fallback: 640, help: 'of the output (640)' },
  height: { parse: cli.parseCount, fallback: 360, help: 'of the output (360)' },
  fps: { parse: cli.parsePositive, fallback: 24, help: "nominal, for the file's header (24)" },
  wait: { parse: cli.parsePositive, fallback: 30, help: 'S to wait for the offer (30)' },
};

async function run(stop) {
  const options = cli.parseOptions(
    'recv.js', 'Receive and record what send.js sends.', OPTIONS, process.argv.slice(2));
  for (const dir of [options.signal, options.log, path.dirname(options.output)]) {
    fs.mkdirSync(dir, { recursive: true });
  }
  const y4m = new Y4mWriter(options.output, options.width, options.height, options.fps);
  const csv = fs.openSync(path.join(options.log, 'decoded.csv'), 'w');
  fs.writeSync(csv, 'index,rtp_ts,t_ns\n');
  let frames = 0;
  let scaled = 0;
  let pc = null;
  const browser = new options.browser(options, null, (told) => {
    if (told.state) {
      pc.connectionState = told.state;
      return;
    }
    const now = cli.realtimeNs();
    try {
      y4m.write(Buffer.from(told.data, 'base64'), told.width, told.height);
      fs.writeSync(csv, `${frames++},${told.rtp ?? ''},${now}\n`);
      scaled += Number(told.width !== options.width || told.height !== options.height);
    } catch (error) {
      browser.failure ??= error; // thrown below, outside the event
    }
  });
  try {
    await browser.open();
    pc = new Peer(browser);
    const offer = await cli.poll(
      () => pendingOffer(options.signal, null), options.wait,
      () => `no offer in ${options.signal} within ${options.wait} s; is send.js running there?`,
      stop);
    if (!offer) {
      throw new cli.RunError('stopped by a signal before the call was set up');
    }
    await accept(pc, offer, { dir: options.signal, address: options.bind, stop });
    const stats = new StatsLog(pc, options.log, RECEIVER);
    while (!stop.asked && !browser.failure && cli.uptime() < options.duration) {
      await cli.sleep(Math.min(100, Math.ceil((options.duration - cli.uptime()) * 1000)));
    }
    if (browser.failure) {
      throw browser.failure;
    }
    const call = agreed(await pc.getStats());
    await stats.close();
    process.stdout.write(`${JSON.stringify({
      program: 'recv', codec: call.codec, local: call.local, remote: call.remote,
      frames_written: frames, frames_scaled: scaled, connection: pc.connectionState,
    })}\n`);
  } finally {
    await browser.close();
    y4m.close();
    fs.closeSync(csv);
  }
  if (frames === 0) {
    throw new cli.RunError('connected, but no picture could be decoded');
  }
}

cli.main('recv.js', run);
