// SPDX-License-Identifier: GPL-2.0
/*
 * In the page's own world, before its scripts: finds every peer connection that it makes. Behind
 * paqm-rtc.js in one function (make_extension.py). Speaks with relay.js by events of the document,
 * which the page may forge: it gains no more than advice for packets of its own.
 */

const FLOWS = 16; // of a tab (registry.js): a page with more would ask for them again and again, and be cut off
const followers = new Map(); // by a number of the connection's own
const asked = new Set(); // flows that the worker knows, or has refused
const Native = window.RTCPeerConnection;
const HERE = Symbol.for('paqm');
let count = 0;

/** Nobody hears: the extension has been removed, or a page has begun its document anew. No advice holds. */
function alone() {
  asked.forEach((name) => {
    const [pc, flow] = name.split(' ').map(Number);
    followers.get(pc)?.receive({ flow, event: 'advice', rate_bps: 0, cause: 'lost' });
  });
}

function up(pc, message) {
  const { op, flow } = message;
  const name = `${pc} ${flow}`;
  const begins = op === 'add' || op === 'cannot';
  if (begins && asked.size >= FLOWS) {
    followers.get(pc)?.receive({ flow, event: 'refused', reason: 'full', kept: false });
  } else if (begins ? asked.add(name) : asked.has(name)) {
    const detail = JSON.stringify({ pc, ...message });
    if (document.dispatchEvent(new CustomEvent('paqm-up', { detail, cancelable: true }))) {
      alone();
    }
  }
  if (op === 'remove') {
    asked.delete(name);
  }
}

document.addEventListener('paqm-down', ({ detail }) => {
  const { pc, ...message } = JSON.parse(detail);
  if (message.event === 'lost') {
    asked.clear();
    followers.forEach((follower) => follower.receive(message));
  } else {
    followers.get(pc)?.receive(message);
  }
});

// Where a former version is in the page already (relay.js), that goes on: what it follows is its own.
if (Native && !document[HERE]) {
  Object.defineProperty(document, HERE, { value: true });
  window.RTCPeerConnection = new Proxy(Native, {
    construct(target, values, made) {
      const pc = Reflect.construct(target, values, made);
      const number = ++count;
      let follower = null;
      pc.addEventListener('connectionstatechange', () => {
        if (pc.connectionState === 'connected' && !follower && !pc[HERE]) {
          follower = new Follower(pc, (message) => up(number, message));
          followers.set(number, follower);
          follower.ended = () => followers.delete(number); // closed ones end by themselves
        } else if (pc.connectionState === 'failed') {
          follower?.stop();
          follower = null;
        }
      });
      return pc;
    },
  });
  if (window.webkitRTCPeerConnection) {
    window.webkitRTCPeerConnection = window.RTCPeerConnection;
  }
}
