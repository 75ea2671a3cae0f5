// SPDX-License-Identifier: GPL-2.0
//
// Firefox with one page, driven through Marionette. It has no camera that shows a film: the page
// fetches the pictures from here and draws them (media.js), and tells here what it has to tell.

'use strict';

const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const path = require('node:path');
const { Driver } = require('../browser/driver');
const { RunError, sleep } = require('../webrtc/lib/cli');
const { Y4mReader } = require('../webrtc/lib/y4m');
const PREFERENCES = require('./preferences');

const PROGRAM = '/usr/lib/firefox-esr/firefox-esr';
const HOST = '127.0.0.1';
const ID = 'follow@paqm'; // of the extension
const TYPES = { '.html': 'text/html', '.js': 'text/javascript' };
const FILES = new Set(['/firefox/page.html', '/firefox/media.js', '/browser/page.js']);
// No sandboxes: a guest's programs are root, and its kernel has not what they need.
const OPEN = Object.fromEntries(['CONTENT', 'GMP', 'GPU', 'RDD', 'SOCKET_PROCESS', 'UTILITY'].map(
  (part) => [`MOZ_DISABLE_${part}_SANDBOX`, '1']));
const LONG = 1e9; // ms that a function of the page may take: no limit

class Firefox extends Driver {
  constructor(options, film, heard) {
    if (options['field-trials']) {
      throw new RunError('--field-trials: Firefox has none');
    }
    if (!film) {
      throw new RunError('Firefox only sends here (README.md): receive with a Chromium');
    }
    super('Firefox', heard);
    this.film = new Y4mReader(film);
    this.extension = options.extension;
    if (this.extension) {
      this.allow(path.join(this.home, '.mozilla', 'native-messaging-hosts'), options['native-host'],
        { allowed_extensions: [ID] });
    }
    this.profile = path.join(this.home, 'profile');
    fs.mkdirSync(this.profile);
    const lines = Object.entries(PREFERENCES).map(([name, value]) => (
      `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`));
    fs.writeFileSync(path.join(this.profile, 'user.js'), lines.join(''));
    this.server = http.createServer((request, response) => this.serve(request, response));
    this.start(PROGRAM, ['--headless', '--no-remote', '--profile', this.profile, '--marionette'],
      ['ignore', 'ignore', 'inherit'],
      { HOME: this.home, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent',
        MOZ_CRASHREPORTER_DISABLE: '1', ...OPEN });
  }

  /** What the page asks for: its files, the film's pictures; and what it reports. */
  serve(request, response) {
    const picture = /^\/picture\/(\d{1,9})$/.exec(request.url);
    if (request.method === 'POST') {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        response.end();
        this.told(JSON.parse(Buffer.concat(parts)));
      });
    } else if (picture) {
      response.end(Buffer.from(this.film.read(Number(picture[1]) % this.film.frames)));
    } else if (FILES.has(request.url)) {
      response.setHeader('Content-Type', TYPES[path.extname(request.url)]);
      response.end(fs.readFileSync(path.join(__dirname, '..', request.url)));
    } else {
      response.statusCode = 404;
      response.end();
    }
  }

  told(message) {
    if (message.error) {
      this.fail(`in the page: ${message.error}`);
    } else {
      this.heard(message);
    }
  }

  /** Messages of Marionette: LENGTH:[1, id, error, result]; the first is a greeting. */
  receive(data) {
    this.rest = Buffer.concat([this.rest, data]);
    for (let colon; (colon = this.rest.indexOf(':')) >= 0;) {
      const end = colon + 1 + Number(this.rest.subarray(0, colon));
      if (this.rest.length < end) {
        return;
      }
      const message = JSON.parse(this.rest.subarray(colon + 1, end));
      this.rest = this.rest.subarray(end);
      if (Array.isArray(message)) {
        const [, id, error, result] = message;
        this.answered(id, error && `${error.error}: ${error.message.split('\n')[0]}`, result);
      }
    }
  }

  write(id, name, values = {}) {
    const text = JSON.stringify([0, id, name, values]);
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
  }

  async connect() {
    const file = path.join(this.profile, 'MarionetteActivePort');
    while (!fs.existsSync(file) || !fs.readFileSync(file).length) {
      if (this.failure) {
        throw this.failure;
      }
      await sleep(20);
    }
    this.rest = Buffer.alloc(0);
    this.socket = net.connect(Number(fs.readFileSync(file)), HOST);
    this.socket.on('error', () => {}); // its end is told by 'exit'
    this.socket.on('data', (data) => this.receive(data));
    await new Promise((resolve) => { this.server.listen(0, HOST, resolve); });
  }

  /** Opens the page; its functions can be called then. */
  async open() {
    await this.connect();
    await this.send('WebDriver:NewSession', {});
    await this.send('WebDriver:SetTimeouts', { script: LONG });
    if (this.extension) {
      await this.send('Addon:Install', { path: this.extension, temporary: true });
    }
    const url = `http://${HOST}:${this.server.address().port}/firefox/page.html`;
    await this.send('WebDriver:Navigate', { url });
    await this.loaded();
  }

  async evaluate(expression) {
    const { value } = await this.send('WebDriver:ExecuteScript', {
      script: `return ${expression}`, args: [], sandbox: null,
    });
    return value;
  }

  async close() {
    await super.close();
    this.socket?.destroy();
    this.server.close();
    this.server.closeAllConnections();
    this.film.close();
  }
}

module.exports = { Firefox };
