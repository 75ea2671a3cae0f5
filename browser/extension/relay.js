// SPDX-License-Identifier: GPL-2.0
/*
 * In the page, but in the extension's world: passes messages between page.js and background.js. What
 * comes from the page is only looked at for its size here; background.js and the host judge it.
 */

'use strict';

const LONGEST = 1024; // characters; page.js needs a third of that
let port = null;

function down(message) {
  document.dispatchEvent(new CustomEvent('paqm-down', { detail: JSON.stringify(message) }));
}

function connect() {
  port = chrome.runtime.connect({ name: 'page' });
  port.onMessage.addListener(down);
  port.onDisconnect.addListener(() => { // the worker was stopped, or the extension renewed
    port = null;
    down({ event: 'lost' });
  });
}

document.addEventListener('paqm-up', ({ detail }) => {
  if (typeof detail !== 'string' || detail.length > LONGEST || !chrome.runtime?.id) {
    return;
  }
  if (!port) {
    connect();
  }
  try {
    port.postMessage(JSON.parse(detail));
  } catch {
    port = null; // it ended meanwhile; page.js begins anew at its next look
  }
});
