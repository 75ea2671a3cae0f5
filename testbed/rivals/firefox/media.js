// SPDX-License-Identifier: GPL-2.0
//
// In the page: a camera that draws the film's pictures at their times, and report(), which
// browser.js hears in order.

'use strict';

const BEAT = 1000 / 72; // ms: preferences.js
let before = Promise.resolve();

function report(body) {
  before = before.then(() => fetch('/report', { method: 'POST', body }));
}

window.onerror = (text) => report(JSON.stringify({ error: text }));
window.onunhandledrejection = ({ reason }) => report(JSON.stringify({ error: String(reason) }));

/** The camera, and a look at what it sees: a canvas, captured when a picture has been drawn. */
async function camera(width, height, fps) {
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width, height });
  const paint = canvas.getContext('2d', { alpha: false, willReadFrequently: true });
  const stream = canvas.captureStream(0);
  const [track] = stream.getVideoTracks();
  pc.addTransceiver(track, { direction: 'sendonly', streams: [stream] });
  let watched = false;
  window.watch = () => { watched = true; };
  const load = async (count) => (await fetch(`/picture/${count}`)).arrayBuffer();
  let data = await load(0);
  let count = 0;
  let start = null;
  const next = (beat) => { // the beat of the screen that is nearest to when it is due
    start ??= beat;
    const wait = start + (1000 * count) / fps - beat;
    if (wait > BEAT / 2) {
      setTimeout(() => requestAnimationFrame(next), Math.max(0, wait - 2 * BEAT));
      return;
    }
    const picture = new VideoFrame(data, {
      format: 'I420', codedWidth: width, codedHeight: height, timestamp: 0,
      colorSpace: { matrix: 'smpte170m', primaries: 'smpte170m', transfer: 'smpte170m', fullRange: false },
    });
    paint.drawImage(picture, 0, 0);
    picture.close();
    stream.requestFrame();
    if (watched) {
      report(JSON.stringify({ source: number(new Uint8Array(data, 8 * width, 256)) }));
    }
    load(++count).then((loaded) => {
      data = loaded;
      requestAnimationFrame(next);
    });
  };
  requestAnimationFrame(next);
  return { width, height };
}
