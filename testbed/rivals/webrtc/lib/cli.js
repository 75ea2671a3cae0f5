// SPDX-License-Identifier: GPL-2.0
//
// What both programs share at their edges: command line, clock, ordered shutdown.
// An error the user can mend is a UsageError or RunError: one line on stderr, status 2 or 1.

'use strict';

const { parseArgs } = require('node:util');
const net = require('node:net');
const os = require('node:os');

class UsageError extends Error {}
class RunError extends Error {}

const RATE_UNITS = { '': 1, bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9 };

/** "3mbit", "800kbit" or "3000000" to bit/s. */
function parseRate(text) {
  const match = /^(\d+(?:\.\d+)?)([kmg]?bit)?$/i.exec(text);
  const rate = match ? Number(match[1]) * RATE_UNITS[(match[2] || '').toLowerCase()] : 0;
  if (!(rate >= 1)) {
    throw new Error(`"${text}" is not a rate; write bit/s or a number with kbit or mbit`);
  }
  return Math.round(rate);
}

function parsePositive(text) {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value <= 0) {
    throw new Error(`"${text}" is not a positive number`);
  }
  return value;
}

function parseCount(text) {
  if (!/^\d+$/.test(text)) {
    throw new Error(`"${text}" is not a whole number ≥ 0`);
  }
  return Number(text);
}

/** An address that this host has now; anything else could never become a candidate. */
function parseLocalAddress(text) {
  if (!net.isIP(text)) {
    throw new Error(`"${text}" is not an IP address`);
  }
  const own = Object.values(os.networkInterfaces()).flat().map((entry) => entry.address);
  if (!own.includes(text)) {
    throw new Error(`${text} is not an address of this host (it has ${own.join(', ') || 'none'})`);
  }
  return text;
}

const parseText = (text) => text;

/**
 * spec: name -> { parse, required, fallback, help }; an entry without parse is a flag.
 * Returns name -> value. Prints the help and exits for --help.
 */
function parseOptions(program, summary, spec, argv) {
  const options = { help: { type: 'boolean' } };
  for (const [name, entry] of Object.entries(spec)) {
    options[name] = { type: entry.parse ? 'string' : 'boolean' };
  }
  let given;
  try {
    given = parseArgs({ args: argv, options, strict: true }).values;
  } catch (error) {
    throw new UsageError(`${error.message} (try --help)`);
  }
  if (given.help) {
    const lines = Object.entries(spec)
      .map(([name, entry]) => `  --${name.padEnd(12)} ${entry.help}`);
    process.stdout.write(`usage: node ${program} OPTIONS\n${summary}\n\n${lines.join('\n')}\n`);
    process.exit(0);
  }
  const values = {};
  for (const [name, entry] of Object.entries(spec)) {
    const text = given[name];
    if (text === undefined) {
      if (entry.required) {
        throw new UsageError(`--${name} is missing (try --help)`);
      }
      values[name] = entry.fallback;
    } else {
      try {
        values[name] = entry.parse ? entry.parse(text) : text;
      } catch (error) {
        throw new UsageError(`--${name}: ${error.message}`);
      }
    }
  }
  return values;
}

// Node offers CLOCK_REALTIME only in milliseconds, but notes the start of the process in
// microseconds of it; the monotonic clock supplies the rest.
const START_REAL_NS = BigInt(Math.round(performance.timeOrigin * 1000)) * 1000n;
const START_MONO_NS =
  process.hrtime.bigint() - BigInt(Math.round(performance.now() * 1000)) * 1000n;

/** CLOCK_REALTIME in nanoseconds, as BigInt. */
function realtimeNs() {
  return START_REAL_NS + (process.hrtime.bigint() - START_MONO_NS);
}

/** Seconds since this process began. */
function uptime() {
  return performance.now() / 1000;
}

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/**
 * Calls get() every 20 ms until it returns something, the deadline passes (RunError with
 * complaint()) or stop.asked is set (null).
 */
async function poll(get, seconds, complaint, stop) {
  const deadline = uptime() + seconds;
  for (;;) {
    const value = get();
    if (value) {
      return value;
    }
    if (stop.asked) {
      return null;
    }
    if (uptime() >= deadline) {
      throw new RunError(complaint());
    }
    await sleep(20);
  }
}

/** Loads the native library, saying what to do when it is not installed. */
function loadLibrary() {
  try {
    return require('@roamhq/wrtc');
  } catch (error) {
    throw new RunError(
      `cannot load @roamhq/wrtc: ${error.message.split('\n')[0]}; run "npm ci" in ` +
      'testbed/rivals/webrtc, or point NODE_PATH at the node_modules folder that has it');
  }
}

/**
 * Runs body(stop) and leaves with its status. SIGTERM and SIGINT set stop.asked; a second one
 * kills as usual. Leaves by process.exit() because libwebrtc's threads would keep the
 * process alive; everything of ours has been written synchronously by then.
 */
function main(program, body) {
  const stop = { asked: false };
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.once(signal, () => { stop.asked = true; });
  }
  body(stop).then(
    () => process.exit(0),
    (error) => {
      const expected = error instanceof UsageError || error instanceof RunError || error.syscall;
      process.stderr.write(`${program}: ${expected ? error.message : error.stack}\n`);
      process.exit(error instanceof UsageError ? 2 : 1);
    });
}

module.exports = {
  RunError,
  UsageError,
  loadLibrary,
  main,
  parseCount,
  parseLocalAddress,
  parseOptions,
  parsePositive,
  parseRate,
  parseText,
  poll,
  realtimeNs,
  sleep,
  uptime,
};
