// SPDX-License-Identifier: GPL-2.0
//
// Media sender on a browser: its camera shows the pictures of a y4m clip, and the page calls
// recv.js. All that is between camera and network is the browser's.

'use strict';

const fs = require('node:fs');
const path = require('node:path');
const cli = require('../webrtc/lib/cli');
const { Y4mReader, Y4mWriter } = require('../webrtc/lib/y4m');
const { call } = require('../webrtc/lib/signal');
const { SENDER, StatsLog, agreed } = require('../webrtc/lib/stats');
const { CHOICE } = require('./browsers');
const { Peer } = require('./driver');

const OPTIONS = {
  clip: { parse: cli.parseText, required: true, help: 'FILE.y4m, 8-bit 4:2:0; begins again' },
  'start-frame': { parse: cli.parseCount, fallback: 0, help: 'N, first picture of the clip' },
  fps: { parse: cli.parsePositive, help: "pictures per second (the clip's own rate)" },
  'rate-max': { parse: cli.parseRate, fallback: 3e6, help: 'BPS, highest video rate (3mbit)' },
  allow: {
    parse: (text) => text.split(',').filter(Boolean).map((step) => {
      const [at, rate] = step.split(':');
      return { at: cli.parsePositive(at), bps: cli.parseRate(rate ?? '') };
    }),
    fallback: [], help: 'S:BPS,..., what the page itself allows its video, from then on',
  },
  limit: {
    parse: (text) => {
      if (!['answer', 'page'].includes(text)) {
        throw new Error('expected answer or page');
      }
      return text;
    },
    fallback: 'answer', help: 'answer (by its lines) or page (by maxBitrate): what holds --rate-max',
  },
  ...CHOICE,
  signal: { parse: cli.parseText, required: true, help: 'DIR for offer and answer' },
  log: { parse: cli.parseText, required: true, help: 'DIR for stats.jsonl and captured.csv' },
  duration: { parse: cli.parsePositive, required: true, help: 'S from the start of the program' },
  bind: { parse: cli.parseLocalAddress, required: true, help: 'ADDR to send from' },
  wait: { parse: cli.parsePositive, fallback: 30, help: 'S to wait for the answer (30)' },
};

/** The clip, from its picture number `first` on: the camera begins with a file's first. */
function turned(reader, first, fps, target) {
  const writer = new Y4mWriter(target, reader.width, reader.height, fps);
  for (let i = 0; i < reader.frames; i++) {
    writer.write(reader.read((first + i) % reader.frames), reader.width, reader.height);
  }
  writer.close();
}

async function run(stop) {
  const options = cli.parseOptions(
    'send.js', "Send a clip by a browser, from its camera.", OPTIONS, process.argv.slice(2));
  for (const dir of [options.signal, options.log]) {
    fs.mkdirSync(dir, { recursive: true });
  }
  const reader = new Y4mReader(options.clip);
  const film = path.join(options.log, 'camera.y4m');
  const fps = options.fps || reader.fps;
  turned(reader, options['start-frame'], fps, film);
  const csv = fs.openSync(path.join(options.log, 'captured.csv'), 'w');
  fs.writeSync(csv, 'frame,t_ns,src_frame\n');
  let frames = 0;
  let pc = null;
  const browser = new options.browser(options, film, (told) => {
    if (told.state) {
      pc.connectionState = told.state;
    } else {
      fs.writeSync(csv, `${frames++},${cli.realtimeNs()},${told.source}\n`);
    }
  });
  try {
    await browser.open();
    pc = new Peer(browser);
    await browser.call('camera', reader.width, reader.height, fps);
    const answer = options.limit === 'answer';
    if (!answer) {
      await browser.call('allow', options['rate-max']);
    }
    const accepted = await call(pc, {
      dir: options.signal, address: options.bind, maxBps: answer ? options['rate-max'] : 0,
      wait: options.wait, stop,
    });
    if (!accepted) {
      throw new cli.RunError('stopped by a signal before the other side answered');
    }
    await cli.poll(
      () => {
        if (browser.failure || pc.connectionState === 'failed') {
          throw browser.failure
            ?? new cli.RunError('connection failed: no packet came back; check route and firewall');
        }
        return pc.connectionState === 'connected';
      },
      options.wait, () => `not connected within ${options.wait} s (${pc.connectionState})`, stop);
    await browser.call('watch');
    const stats = new StatsLog(pc, options.log, SENDER);
    for (const { at, bps } of options.allow) {
      setTimeout(() => browser.call('allow', bps).catch((error) => browser.fail(error.message)),
        Math.max(0, 1000 * (at - cli.uptime())));
    }
    while (!stop.asked && !browser.failure && cli.uptime() < options.duration) {
      await cli.sleep(Math.min(100, Math.ceil((options.duration - cli.uptime()) * 1000)));
    }
    const result = agreed(await pc.getStats());
    await stats.close();
    const rtp = stats.last.outbound_rtp || {};
    process.stdout.write(`${JSON.stringify({
      program: 'send', codec: result.codec, local: result.local, remote: result.remote,
      frames_captured: frames, frames_encoded: rtp.framesEncoded, packets: rtp.packetsSent,
      connection: pc.connectionState,
    })}\n`);
    if (result.codec !== 'video/VP8') {
      throw new cli.RunError(`the call settled on ${result.codec}, not on VP8`);
    }
    if (pc.connectionState === 'failed') {
      throw new cli.RunError('the connection failed while sending');
    }
  } finally {
    await browser.close();
    fs.closeSync(csv);
    fs.rmSync(film);
  }
}

cli.main('send.js', run);
