// SPDX-License-Identifier: GPL-2.0
//
// The browsers that send.js and recv.js can have, by name. Each is made of the programs' options, a
// film (a y4m file that its camera shows; recv.js has none), and who hears of the page's reports.

'use strict';

const { Full, Shell } = require('../chromium/browser');
const { Firefox } = require('../firefox/browser');
const { parseText } = require('../webrtc/lib/cli');

const BROWSERS = { 'chromium-shell': Shell, 'chromium-full': Full, firefox: Firefox };

/** The options of send.js and recv.js that say which browser. */
const CHOICE = {
  browser: {
    parse: (text) => {
      if (!Object.hasOwn(BROWSERS, text)) {
        throw new Error(`expected one of ${Object.keys(BROWSERS).join(', ')}`);
      }
      return BROWSERS[text];
    },
    required: true, help: `one of ${Object.keys(BROWSERS).join(', ')}`,
  },
  extension: { parse: parseText, fallback: '', help: 'DIR of one to load; not chromium-shell' },
  'native-host': { parse: parseText, fallback: '', help: 'PROGRAM that the extension speaks with' },
  'field-trials': { parse: parseText, fallback: '', help: 'of WebRTC, for Chromium' },
};

module.exports = { CHOICE };
