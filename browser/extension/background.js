// SPDX-License-Identifier: GPL-2.0
/*
 * The extension's worker: brings the flows of all pages to paqm-native-host and advice back to the
 * page that each flow is of. Pages are not trusted: a tab has a number of flows, tab and frame have one of
 * messages, only members that are known go on, and a page hears of its own flows only.
 */

import { Registry } from './registry.js';

const HOST = 'paqm.native_host';
const RETRY = { least: 1000, most: 60000 }; // ms

const popups = new Set();
let host = null;
let retry = RETRY.least;
let wait = null;

const registry = new Registry((message) => {
  if (host) {
    host.postMessage(message);
  } else if (!wait) {
    connect(); // and tell of all flows
  }
});

function lost(text) {
  host = null;
  registry.lost(text);
  wait = setTimeout(() => {
    wait = null;
    if (registry.flows.size) {
      connect();
    }
  }, retry);
  retry = Math.min(2 * retry, RETRY.most);
}

function connect() {
  host = chrome.runtime.connectNative(HOST);
  host.onMessage.addListener((message) => {
    retry = RETRY.least;
    registry.heard(message);
  });
  host.onDisconnect.addListener((port) => {
    lost((chrome.runtime.lastError ?? port.error)?.message ?? 'paqm-native-host has ended');
  });
  registry.again();
}

chrome.runtime.onConnect.addListener((port) => {
  if (port.name === 'popup') {
    popups.add(port);
    port.postMessage(registry.state());
    port.onDisconnect.addListener(() => popups.delete(port));
    return;
  }
  const page = registry.open((message) => port.postMessage(message),
    port.sender?.origin ?? port.sender?.url ?? '', port.sender?.tab?.id,
    port.sender?.frameId);
  port.onMessage.addListener((message) => {
    if (!registry.ask(page, message, Date.now())) {
      registry.close(page);
      port.disconnect();
    }
  });
  port.onDisconnect.addListener(() => registry.close(page));
});

setInterval(() => {
  if (popups.size) {
    const state = registry.state();
    popups.forEach((port) => port.postMessage(state));
  }
}, 1000);
