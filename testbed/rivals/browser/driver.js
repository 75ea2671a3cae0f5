// SPDX-License-Identifier: GPL-2.0
//
// What is the same for all browsers: a process with a folder of its own, commands that wait for
// their answers, the functions of page.js, and a peer connection in that page that looks to
// lib/signal.js and lib/stats.js of the other rival like one of their own.

'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { spawn } = require('node:child_process');
const { RunError } = require('../webrtc/lib/cli');

// The host that answers an extension, where this profile's browser looks for it.
const NATIVE = { name: 'paqm.native_host', type: 'stdio', description: 'of this run' };

/** A browser with one page. One for each kind extends it by write(), open() and evaluate(). */
class Driver {
  /** Every call of the page's report() goes to heard(). */
  constructor(name, heard) {
    this.name = name;
    this.heard = heard;
    this.asked = new Map();
    this.count = 0;
    this.failure = null;
    this.home = fs.mkdtempSync(path.join(os.tmpdir(), `${name.toLowerCase()}-`));
  }

  start(program, words, stdio, environment) {
    this.process = spawn(program, words, { stdio, env: { ...process.env, ...environment } });
    this.process.on('error', (error) => this.fail(`cannot start ${program}: ${error.message}`));
    this.process.on('exit', (code, signal) => this.fail(`${this.name} ended (${code ?? signal})`));
  }

  /** Lets an extension start its host: `who` may, by the words of this browser. */
  allow(folder, program, who) {
    fs.mkdirSync(folder, { recursive: true });
    const text = JSON.stringify({ ...NATIVE, path: program, ...who });
    fs.writeFileSync(path.join(folder, `${NATIVE.name}.json`), text);
  }

  fail(text) {
    this.failure ??= new RunError(text);
    for (const { reject } of this.asked.values()) {
      reject(this.failure);
    }
    this.asked.clear();
  }

  /** A command, which write() brings to the browser. */
  send(...command) {
    if (this.failure) {
      return Promise.reject(this.failure);
    }
    const id = ++this.count;
    this.write(id, ...command);
    return new Promise((resolve, reject) => { this.asked.set(id, { resolve, reject }); });
  }

  /** Its answer; error: what was wrong, if anything was. */
  answered(id, error, result) {
    const { resolve, reject } = this.asked.get(id) ?? {};
    this.asked.delete(id);
    if (error) {
      reject?.(new RunError(error));
    } else {
      resolve?.(result);
    }
  }

  /** Waits until the page has loaded its scripts. */
  async loaded() {
    while (await this.evaluate('typeof camera !== "function"')) {
      await new Promise((resolve) => { setTimeout(resolve, 10); });
    }
  }

  /** A function of the page. */
  call(name, ...values) {
    return this.evaluate(`${name}(${values.map((value) => JSON.stringify(value)).join(', ')})`);
  }

  async close() {
    const ended = new Promise((resolve) => { this.process.once('exit', resolve); });
    const { pid, exitCode, signalCode } = this.process; // no pid: it never began
    if (pid !== undefined && exitCode === null && signalCode === null) {
      this.process.kill('SIGKILL'); // what it knows has been told
      await ended;
    }
    fs.rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The page's peer connection, for signal.js and stats.js. */
class Peer {
  constructor(browser) {
    this.browser = browser;
    this.iceGatheringState = 'new';
    this.iceConnectionState = 'new';
    this.connectionState = 'new';
    this.localDescription = null;
  }

  createOffer() {
    return Promise.resolve('offer');
  }

  createAnswer() {
    return Promise.resolve('answer');
  }

  async setLocalDescription(type) {
    this.localDescription = { type, sdp: await this.browser.call(type) };
    this.iceGatheringState = 'complete';
  }

  setRemoteDescription(description) {
    return this.browser.call('remote', description);
  }

  async getStats() {
    return new Map((await this.browser.call('stats')).map((entry) => [entry.id, entry]));
  }
}

module.exports = { Driver, Peer };
