// SPDX-License-Identifier: GPL-2.0
//
// In the page: Chromium's fake camera, and a look at every picture of a track. report() is
// browser.js's.

'use strict';

/** Hands every picture of a track to look(), in order. */
async function each(track, look) {
  const reader = new MediaStreamTrackProcessor({ track, maxBufferSize: 10 }).readable.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    await look(value);
    value.close();
  }
}

/** The camera, and a look at what it sees. */
async function camera(width, height, fps) {
  const video = {
    width: { exact: width }, height: { exact: height }, frameRate: { exact: fps },
  };
  const stream = await navigator.mediaDevices.getUserMedia({ video });
  const [track] = stream.getVideoTracks();
  pc.addTransceiver(track, { direction: 'sendonly', streams: [stream] });
  window.watch = () => {
    each(track.clone(), async (frame) => {
      const rect = { x: 0, y: 8, width: 256, height: 2 };
      const data = new Uint8Array(frame.allocationSize({ rect }));
      await frame.copyTo(data, { rect });
      report(JSON.stringify({ source: number(data) }));
    });
  };
  return track.getSettings();
}

/** The I420 bytes of a picture, without what may stand between its rows. */
async function compact(frame) {
  if (frame.format !== 'I420') {
    throw new Error(`Chromium decodes to ${frame.format}, not to I420`);
  }
  const { width, height } = frame.visibleRect;
  const [w, h] = [(width + 1) >> 1, (height + 1) >> 1];
  const data = new Uint8Array(width * height + 2 * w * h);
  await frame.copyTo(data, {
    layout: [
      { offset: 0, stride: width },
      { offset: width * height, stride: w },
      { offset: width * height + w * h, stride: w },
    ],
  });
  return data;
}

/** Tells of every picture that would be shown. */
pc.ontrack = ({ track }) => {
  each(track, async (frame) => {
    const { width, height } = frame.visibleRect;
    tell(await compact(frame), width, height, frame.metadata?.() ?? {});
  });
};
