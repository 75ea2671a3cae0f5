// SPDX-License-Identifier: GPL-2.0
//
// In the page: one peer connection, and what is told of its pictures. Functions here are called
// through driver.js. Each browser's media.js has a camera, and a report() is there; one that receives
// has a look at what arrives, too.

'use strict';

const pc = new RTCPeerConnection();

pc.onconnectionstatechange = () => {
  report(JSON.stringify({ state: pc.connectionState }));
};

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

/** Tells of a picture that a viewer would see now: its I420 bytes; rtp: its timestamp, if known. */
function tell(data, width, height, { rtpTimestamp }) {
  report(JSON.stringify({ width, height, rtp: rtpTimestamp, data: data.toBase64() }));
}

/** From now on the page allows its video no more than this; for send.js. */
async function allow(bps) {
  const [sender] = pc.getSenders();
  const parameters = sender.getParameters();
  parameters.encodings[0].maxBitrate = bps;
  await sender.setParameters(parameters);
}

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
