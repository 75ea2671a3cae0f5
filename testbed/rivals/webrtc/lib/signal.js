// SPDX-License-Identifier: GPL-2.0
//
// Call set-up without a server: offer and answer are files in a folder both sides see.
// No trickle: each description holds all its candidates, and only those on the address asked
// for. An answer names the offer it belongs to, so leftovers of a broken run do no harm.

'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { RunError, poll } = require('./cli');

const OFFER = 'offer.json';
const ANSWER = 'answer.json';

/** Whole or not at all: the other side may look at any moment. */
function publish(dir, name, message) {
  const target = path.join(dir, name);
  fs.writeFileSync(`${target}.part`, `${JSON.stringify(message)}\n`);
  fs.renameSync(`${target}.part`, target);
}

function receive(dir, name) {
  const file = path.join(dir, name);
  let text;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') {
      return null;
    }
    throw error;
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RunError(`${file}: not JSON (${error.message}); remove it and start again`);
  }
}

function clear(dir) {
  for (const name of [OFFER, ANSWER]) {
    fs.rmSync(path.join(dir, name), { force: true });
  }
}

/** The SDP with UDP candidates on the given address only. */
function keepAddress(sdp, address) {
  const seen = [];
  const lines = sdp.split('\r\n').filter((line) => {
    const match = /^a=candidate:\S+ \d+ (\S+) \d+ (\S+) \d+ typ (\S+)/.exec(line);
    if (!match) {
      return true;
    }
    seen.push(`${match[2]}/${match[1]}`);
    return match[1].toLowerCase() === 'udp' && match[2] === address && match[3] === 'host';
  });
  if (!lines.some((line) => line.startsWith('a=candidate:'))) {
    throw new RunError(
      `no UDP candidate on ${address} (found: ${seen.join(', ') || 'none'}); ` +
      'is the interface up?');
  }
  return lines.join('\r\n');
}

/**
 * The answer as a browser application limits its peer: b=AS for the session layer, and
 * x-google-* for the encoder. Start and minimum are what libwebrtc takes anyway.
 */
function limitRate(sdp, maxBps) {
  const kbps = Math.floor(maxBps / 1000);
  const codec = /^a=rtpmap:(\d+) VP8\/90000\r?$/m.exec(sdp);
  if (!codec) {
    throw new RunError('the answer has no VP8: the other side is not recv.js of this folder');
  }
  const start = Math.min(300, kbps);
  const format =
    `a=fmtp:${codec[1]} x-google-min-bitrate=30;x-google-start-bitrate=${start};` +
    `x-google-max-bitrate=${kbps}`;
  return sdp
    .split('\r\n')
    .flatMap((line) => {
      if (line.startsWith('c=')) {
        return [line, `b=AS:${kbps}`];
      }
      return line === codec[0].trimEnd() ? [line, format] : [line];
    })
    .join('\r\n');
}

/** Set a description made by make() and return its SDP once every candidate is known. */
async function describe(pc, description, address, stop) {
  await pc.setLocalDescription(description);
  await poll(
    () => pc.iceGatheringState === 'complete' || pc.iceConnectionState === 'closed',
    10, () => 'gathering candidates took more than 10 s', stop);
  return keepAddress(pc.localDescription.sdp, address);
}

/** An offer is known by its ICE user fragment: new for every peer connection. */
function offerId(sdp) {
  const match = /^a=ice-ufrag:(\S+)/m.exec(sdp);
  return match ? match[1] : '';
}

/** Sender's half. Resolves when the answer is in force; false if told to stop before. maxBps 0: as it came. */
async function call(pc, { dir, address, maxBps, wait, stop }) {
  clear(dir);
  const sdp = await describe(pc, await pc.createOffer(), address, stop);
  const id = offerId(sdp);
  publish(dir, OFFER, { id, sdp });
  let answer;
  try {
    answer = await poll(
      () => {
        const message = receive(dir, ANSWER);
        return message && message.id === id ? message : null;
      },
      wait, () => `no answer in ${dir} within ${wait} s; is recv.js running on the same folder?`,
      stop);
  } finally {
    clear(dir);
  }
  if (!answer) {
    return false;
  }
  const sdpInForce = maxBps ? limitRate(answer.sdp, maxBps) : answer.sdp;
  await pc.setRemoteDescription({ type: 'answer', sdp: sdpInForce });
  return true;
}

/** Receiver's half: answer the given offer. */
async function accept(pc, offer, { dir, address, stop }) {
  await pc.setRemoteDescription({ type: 'offer', sdp: offer.sdp });
  const sdp = await describe(pc, await pc.createAnswer(), address, stop);
  publish(dir, ANSWER, { id: offer.id, sdp });
}

/** The offer in dir, unless it is the one with the id already seen. */
function pendingOffer(dir, seenId) {
  const message = receive(dir, OFFER);
  return message && message.id !== seenId ? message : null;
}

module.exports = { accept, call, keepAddress, limitRate, offerId, pendingOffer };
