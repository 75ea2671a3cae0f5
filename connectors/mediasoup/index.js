// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// WebRtcTransports of mediasoup 3 follow P-AQM routers: what they allow is the transport's
// maxOutgoingBitrate, below which mediasoup goes on estimating by itself.
//
//     const { Follower } = require('./mediasoup');
//     const follower = new Follower();
//     follower.follow(transport, { ceiling: 5_000_000 });
//
// Node has no sockets of packets, so paqm-follow (clients/go) speaks to paqmd.
'use strict';

const { spawn } = require('node:child_process');
const { createInterface } = require('node:readline');

const HEADERS = 1.05; // of the rate at the IP level to that of RTP, packets of 1200 bytes
const LEAST = 30_000; // bit/s, the least that mediasoup takes
// All viewers of a server hear of free capacity at once: rises are slow (connectors/share), falls are not.
const RISE = 1.08; // a second
const TICK_MS = 1000;
const AGAIN_MS = 1000; // until paqm-follow is started again, doubled up to
const AGAIN_MOST_MS = 60_000;

class Follower {
  // command: path of paqm-follow; socket: paqmd's, without it the default.
  constructor({ command = 'paqm-follow', socket, onError = console.error } = {}) {
    this.command = command;
    this.env = socket ? { ...process.env, PAQM_SOCKET: socket } : process.env;
    this.onError = onError;
    this.entries = new Set(); // of all transports, followed or not at the moment
    this.flows = new Map(); // number of the flow -> entry
    this.wait = AGAIN_MS;
    this.child = null;
    this.timer = setInterval(() => this.entries.forEach((entry) => this.set(entry)), TICK_MS);
    this.start();
  }

  start() {
    let child;
    try {
      child = spawn(this.command, [], { env: this.env, stdio: ['pipe', 'pipe', 'inherit'] });
    } catch (err) {
      this.end(null, err);
      return;
    }
    if (!child.stdin) {
      // a server out of descriptors: there are no pipes then, and 'error' comes later
      child.on('error', (err) => this.end(null, err));
      return;
    }
    this.child = child;
    this.adding = []; // entries whose number is to come, in order
    child.on('error', (err) => this.end(child, err));
    child.on('exit', () => this.end(child, new Error(`${this.command} has ended`)));
    child.stdin.on('error', () => {}); // told by 'exit'
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (child === this.child) this.take(child, line);
    });
    this.entries.forEach((entry) => this.register(entry));
  }

  // Follow a WebRtcTransport until it is closed. ceiling: bit/s, without advice, too.
  follow(transport, { ceiling } = {}) {
    // mediasoup takes what is no number for 0, no limit at all
    if (!Number.isFinite(ceiling) || ceiling <= 0) throw new TypeError(`ceiling ${ceiling}: expected bit/s`);
    if (transport.closed) return; // nobody would say so again
    const entry = { transport, ceiling, advice: 0, last: 0, number: null, gone: false };
    transport.on('iceselectedtuplechange', () => this.register(entry));
    transport.observer.on('close', () => {
      this.entries.delete(entry);
      this.forget(entry, true);
    });
    this.entries.add(entry);
    this.register(entry);
  }

  // Ends it; transports have their ceilings again.
  close() {
    if (this.closed) return;
    this.closed = true;
    this.entries.forEach(({ transport, ceiling }) => transport.setMaxOutgoingBitrate(ceiling).catch(() => {}));
    clearInterval(this.timer);
    clearTimeout(this.again);
    if (this.child) this.child.stdin.end();
  }

  register(entry) {
    this.forget(entry, false);
    const tuple = entry.transport.iceSelectedTuple;
    if (!tuple || tuple.protocol !== 'udp' || entry.gone || this.closed || !this.child) return;
    const waiting = { entry };
    entry.waiting = waiting;
    this.adding.push(waiting);
    this.say('add', tuple.localPort, tuple.remoteIp, tuple.remotePort, 0, 0, 1_000_000_000_000);
  }

  forget(entry, gone) {
    entry.gone = gone;
    entry.advice = 0;
    if (entry.waiting) entry.waiting.entry = null;
    entry.waiting = null;
    if (entry.number === null) return;
    this.flows.delete(entry.number);
    this.say('remove', entry.number);
    entry.number = null;
  }

  say(...words) {
    this.child.stdin.write(`${words.join(' ')}\n`);
  }

  // What is no answer, as half a line of one that is killed, stands for one that nobody knows.
  take(child, line) {
    let answer = null;
    try {
      answer = JSON.parse(line);
    } catch {
      // told below
    }
    if (answer !== null && typeof answer === 'object') {
      this.hear(answer);
      return;
    }
    this.end(child, new Error(`${this.command} says ${line}`));
    child.kill();
  }

  hear(line) {
    if ('added' in line || 'failed' in line) {
      const waiting = this.adding.shift();
      if ('failed' in line) {
        this.onError(new Error(`paqmd takes no such flow: ${line.failed}`));
      } else if (waiting && waiting.entry) {
        this.wait = AGAIN_MS; // it works
        waiting.entry.waiting = null;
        waiting.entry.number = line.added;
        this.flows.set(line.added, waiting.entry);
      } else {
        this.say('remove', line.added); // closed meanwhile
      }
      return;
    }
    const entry = this.flows.get(line.flow);
    if (!entry) return;
    if (line.cause === 'refused') this.onError(new Error(`paqmd refuses the flow: errno ${line.error}`));
    entry.advice = line.rate_bps;
    if (this.want(entry) < entry.last || !entry.last) this.set(entry);
  }

  want(entry) {
    return entry.advice ? Math.min(entry.advice / HEADERS, entry.ceiling) : entry.ceiling;
  }

  set(entry) {
    let rate = this.want(entry);
    if (entry.last) rate = Math.min(rate, entry.last * RISE);
    rate = Math.max(Math.round(rate), LEAST);
    if (rate === entry.last) return;
    const before = entry.last;
    entry.last = rate;
    entry.transport.setMaxOutgoingBitrate(rate).catch((err) => {
      if (entry.gone || this.closed) return;
      if (entry.last === rate) entry.last = before; // it holds still: the next tick sets it
      this.onError(err);
    });
  }

  // Without paqm-follow there is no advice: rates rise to the ceiling until it is started again.
  end(child, err) {
    if (this.closed || child !== this.child) return;
    this.child = null;
    this.flows.clear();
    this.entries.forEach((entry) => Object.assign(entry, { advice: 0, number: null, waiting: null }));
    this.again = setTimeout(() => this.start(), this.wait);
    this.wait = Math.min(2 * this.wait, AGAIN_MOST_MS);
    this.onError(err);
  }
}

module.exports = { Follower };
