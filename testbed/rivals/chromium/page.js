// SPDX-License-Identifier: GPL-2.0
//
// In the page: one peer connection, and a look at every picture of its track. report() is
// browser.js's; functions here are called from there.

'use strict';

const pc = new RTCPeerConnection();

pc.onconnectionstatechange = () => {
  report(JSON.stringify({ state: pc.connectionState }));
};

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

/** The number that the first cells of a picture of the clip show (paqm_lab/clip.py: Gray code). */
function number(luma) {
  let bit = 0;
  let value = 0;
  for (let cell = 0; cell < 16; cell++) {
    bit ^= Number(luma[cell * 16 + 8] > 125);
    value = 2 * value + bit;
  }
  return value;
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

/** Tells of every picture that would be shown. */
pc.ontrack = ({ track }) => {
  each(track, async (frame) => {
    const data = new Uint8Array(frame.allocationSize());
    const layout = await frame.copyTo(data);
    const { width, height } = frame.visibleRect;
    report(JSON.stringify({
      width, height, layout, format: frame.format, meta: frame.metadata?.() ?? {},
      data: data.toBase64(),
    }));
  });
};

function gathered() {
  return new Promise((resolve) => {
    const look = () => pc.iceGatheringState === 'complete' && resolve(pc.localDescription.sdp);
    pc.onicegatheringstatechange = look;
    look();
  });
}

async function offer() {
  await pc.setLocalDescription(await pc.createOffer());
  return gathered();
}

async function answer() {
  await pc.setLocalDescription(await pc.createAnswer());
  return gathered();
}

async function remote(description) {
  await pc.setRemoteDescription(description);
}

async function stats() {
  return [...(await pc.getStats()).values()];
}
