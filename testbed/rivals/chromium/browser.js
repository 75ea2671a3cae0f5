// SPDX-License-Identifier: GPL-2.0
//
// Chromium with one page, driven through its DevTools pipe.

'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { createHash } = require('node:crypto');
const { Driver } = require('../browser/driver');
const { RunError } = require('../webrtc/lib/cli');

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

class Chromium extends Driver {
  constructor(program, mode, options, film, heard) {
    super('Chromium', heard);
    const words = [...FLAGS, ...mode];
    const unlike = [...UNLIKE];
    if (options.extension) {
      words.push(`--load-extension=${options.extension}`);
      unlike.push('DisableLoadExtensionCommandLineSwitch');
      this.know(options);
    }
    words.push(`--disable-features=${unlike}`, `--user-data-dir=${this.home}`);
    if (film) {
      words.push(`--use-file-for-fake-video-capture=${film}`);
    }
    words.push(`--force-fieldtrials=${options['field-trials']}`);
    this.start(program, words, ['ignore', 'inherit', 'inherit', 'pipe', 'pipe'],
      { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent' });
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
  know(options) {
    const { key } = JSON.parse(fs.readFileSync(path.join(options.extension, 'manifest.json')));
    const digest = createHash('sha256').update(Buffer.from(key, 'base64')).digest('hex');
    const id = [...digest.slice(0, 32)].map((digit) => 'abcdefghijklmnop'[parseInt(digit, 16)]);
    this.allow(path.join(this.home, 'NativeMessagingHosts'), options['native-host'],
      { allowed_origins: [`chrome-extension://${id.join('')}/`] });
  }

  receive(message) {
    const { id, method, params } = message;
    if (id !== undefined) {
      this.answered(id, message.error && `DevTools: ${message.error.message}`, message.result);
    } else if (method === 'Runtime.bindingCalled') {
      this.heard(JSON.parse(params.payload));
    } else if (method === 'Runtime.exceptionThrown') {
      const told = params.exceptionDetails;
      this.fail(`in the page: ${told.exception?.description ?? told.text}`);
    }
  }

  write(id, method, params = {}) {
    const message = { id, method, params, sessionId: this.session };
    this.process.stdio[3].write(`${JSON.stringify(message)}\0`);
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
    await this.loaded();
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
}

/** Without windows, in one process. */
class Shell extends Chromium {
  constructor(...values) {
    super('/usr/lib/chromium/chromium-headless-shell', ['--single-process'], ...values);
  }
}

/** The one with windows, though none is shown: it knows extensions. */
class Full extends Chromium {
  constructor(...values) {
    super('/usr/lib/chromium/chromium', ['--headless=new'], ...values);
  }
}

module.exports = { Full, Shell };
