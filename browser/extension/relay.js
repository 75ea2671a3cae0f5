// SPDX-License-Identifier: GPL-2.0
/*
 * In the page, but in the extension's world: passes messages between page.js and background.js. What
 * comes from the page is only looked at for its size here; background.js and the host judge it.
 */

'use strict';

const LONGEST = 1024; // characters; page.js needs a third of that
const PAUSE = { least: 1000, most: 8000 }; // ms, after a port has ended, doubled each time
const STEADY = 60000; // unless it has lasted so long
let port = null;
let begun = 0;
let pause = PAUSE.least / 2;
let waiting = false;

function down(message) {
  document.dispatchEvent(new CustomEvent('paqm-down', { detail: JSON.stringify(message) }));
}

/**
 * The worker was stopped, the extension renewed, or the page has asked for too much. Nobody says any more
 * that advice ends, so the page hears of it twice: to give up its caps, and to begin anew.
 */
function ended() {
  port = null;
  waiting = true;
  down({ event: 'lost' });
  pause = Date.now() < begun + STEADY ? Math.min(2 * pause, PAUSE.most) : PAUSE.least;
  setTimeout(() => {
    waiting = false;
    down({ event: 'lost' });
  }, pause);
}

function connect() {
  const made = chrome.runtime.connect({ name: 'page' });
  port = made;
  begun = Date.now();
  made.onMessage.addListener(down);
  made.onDisconnect.addListener(() => {
    if (port === made) {
      ended();
    }
  });
}

// Firefox brings a renewed extension into pages that are open. The one before has ended there without a word.
down({ event: 'lost' });

document.addEventListener('paqm-up', (event) => {
  if (!chrome.runtime?.id) {
    return; // the extension has ended
  }
  event.preventDefault(); // somebody is here
  const { detail } = event;
  if (waiting || typeof detail !== 'string' || detail.length > LONGEST) {
    return;
  }
  let message;
  try {
    message = JSON.parse(detail);
  } catch {
    return; // not of page.js
  }
  if (!port) {
    connect();
  }
  try {
    port.postMessage(message);
  } catch {
    ended();
  }
});
