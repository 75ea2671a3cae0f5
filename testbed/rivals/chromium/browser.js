// SPDX-License-Identifier: GPL-2.0
//
// Chromium with one page, driven through its DevTools pipe, and a peer connection in that page that
// looks to lib/signal.js and lib/stats.js of the other rival like one of their own.

'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { createHash } = require('node:crypto');
const { spawn } = require('node:child_process');
const cli = require('../webrtc/lib/cli');

const { RunError, realtimeNs } = cli;

const SHELL = '/usr/lib/chromium/chromium-headless-shell';
const FULL = '/usr/lib/chromium/chromium'; // knows extensions
const PAGE = `file://${path.join(__dirname, 'page.html')}`;

// Nothing that calls home or draws; addresses of the namespace instead of mDNS names; no sandbox,
// since a guest's programs are root.
const FLAGS = [
  '--remote-debugging-pipe', '--no-sandbox', '--no-zygote', '--disable-gpu',
  '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-sync',
  '--disable-component-update', '--disable-breakpad', '--disable-dev-shm-usage',
  '--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream',
];
const UNLIKE = ['WebRtcHideLocalIpsWithMdns']; // features that are turned off

// The host that answers an extension, where this profile's browser looks for it.
const NATIVE = { name: 'paqm.native_host', type: 'stdio', description: 'of this run' };

/** The options of send.js and recv.js that say which Chromium. */
const CHOICE = {
  browser: {
    parse: (text) => {
      if (text !== 'shell' && text !== 'full') {
        throw new Error('expected shell or full');
      }
      return text;
    },
    fallback: 'shell', help: 'shell, or full: with windows, though none is shown (shell)',
  },
  extension: { parse: cli.parseText, fallback: '', help: 'DIR of one to load; full only' },
  'native-host': { parse: cli.parseText, fallback: '', help: 'PROGRAM that the extension speaks with' },
};

class Browser {
  /** Options of CHOICE and extra flags; every call of the page's report() goes to heard(). */
  constructor(options, flags, heard) {
    this.heard = heard;
    this.asked = new Map();
    this.count = 0;
    this.failure = null;
    this.home = fs.mkdtempSync(path.join(os.tmpdir(), 'chromium-'));
    const full = options.browser === 'full';
    const program = full ? FULL : SHELL;
    const mode = full ? ['--headless=new'] : ['--single-process'];
    const unlike = [...UNLIKE];
    if (options.extension) {
      mode.push(`--load-extension=${options.extension}`);
      unlike.push('DisableLoadExtensionCommandLineSwitch');
      this.allow(options);
    }
    mode.push(`--disable-features=${unlike}`, `--user-data-dir=${this.home}`);
    this.process = spawn(program, [...FLAGS, ...mode, ...flags], {
      stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'pipe'],
      env: { ...process.env, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent' },
    });
    this.process.on('error', (error) => this.fail(`cannot start ${program}: ${error.message}`));
    this.process.on('exit', (status, signal) => this.fail(`Chromium ended (${status ?? signal})`));
    this.process.stdio[3].on('error', () => {}); // its end is told by 'exit'
    const parts = [];
    this.process.stdio[4].on('data', (data) => {
      let from = 0;
      for (let at; (at = data.indexOf(0, from)) >= 0; from = at + 1) {
        parts.push(data.subarray(from, at));
        this.receive(JSON.parse(Buffer.concat(parts.splice(0)).toString()));
      }
      parts.push(data.subarray(from));
    });
  }

  /** Lets the extension start its host. */
  allow(options) {
    const { key } = JSON.parse(fs.readFileSync(path.join(options.extension, 'manifest.json')));
    const digest = createHash('sha256').update(Buffer.from(key, 'base64')).digest('hex');
    const id = [...digest.slice(0, 32)].map((digit) => 'abcdefghijklmnop'[parseInt(digit, 16)]);
    const home = path.join(this.home, 'NativeMessagingHosts');
    fs.mkdirSync(home);
    fs.writeFileSync(path.join(home, `${NATIVE.name}.json`), JSON.stringify({
      ...NATIVE, path: options['native-host'],
      allowed_origins: [`chrome-extension://${id.join('')}/`],
    }));
  }

  fail(text) {
    this.failure ??= new RunError(text);
    for (const { reject } of this.asked.values()) {
      reject(this.failure);
    }
    this.asked.clear();
  }

  receive(message) {
    const { id, method, params } = message;
    if (id !== undefined) {
      const { resolve, reject } = this.asked.get(id) ?? {};
      this.asked.delete(id);
      if (message.error) {
        reject?.(new RunError(`DevTools: ${message.error.message}`));
      } else {
        resolve?.(message.result);
      }
    } else if (method === 'Runtime.bindingCalled') {
      this.heard(JSON.parse(params.payload));
    } else if (method === 'Runtime.exceptionThrown') {
      const told = params.exceptionDetails;
      this.fail(`in the page: ${told.exception?.description ?? told.text}`);
    }
  }

  send(method, params = {}) {
    if (this.failure) {
      return Promise.reject(this.failure);
    }
    const id = ++this.count;
    const message = { id, method, params, sessionId: this.session };
    this.process.stdio[3].write(`${JSON.stringify(message)}\0`);
    return new Promise((resolve, reject) => { this.asked.set(id, { resolve, reject }); });
  }

  /** Opens the page; its functions can be called then. */
  async open() {
    // A page that may use camera or microphone gets candidates on the host's addresses.
    await this.send('Browser.grantPermissions', { permissions: ['videoCapture', 'audioCapture'] });
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    this.session = sessionId;
    await this.send('Runtime.enable');
    await this.send('Runtime.addBinding', { name: 'report' });
    await this.send('Page.enable');
    await this.send('Page.navigate', { url: PAGE });
    while (await this.evaluate('typeof offer !== "function"')) {
      await new Promise((resolve) => { setTimeout(resolve, 10); });
    }
  }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression, awaitPromise: true, returnByValue: true,
    });
    if (exceptionDetails) {
      const text = exceptionDetails.exception?.description ?? exceptionDetails.text;
      throw new RunError(`in the page: ${text.split('\n')[0]}`);
    }
    return result.value;
  }

  /** A function of page.js. */
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
    fs.rmSync(this.home, { recursive: true, force: true });
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

module.exports = { Browser, CHOICE, Peer, realtimeNs };
