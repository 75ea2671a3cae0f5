// SPDX-License-Identifier: GPL-2.0
//
// stats.jsonl: every 200 ms one line with what getStats() knows, under stable keys.
// Keys of libwebrtc are kept as they are (W3C webrtc-stats); absent ones become null.

'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { RunError, realtimeNs } = require('./cli');

const PERIOD_MS = 200;

const FIELDS = {
  'outbound-rtp': [
    'ssrc', 'packetsSent', 'bytesSent', 'headerBytesSent', 'retransmittedPacketsSent',
    'retransmittedBytesSent', 'framesEncoded', 'keyFramesEncoded', 'framesSent',
    'hugeFramesSent', 'qpSum', 'encoderImplementation', 'frameWidth', 'frameHeight',
    'framesPerSecond', 'totalPacketSendDelay', 'qualityLimitationReason',
    'qualityLimitationResolutionChanges', 'nackCount', 'pliCount', 'firCount',
  ],
  'remote-inbound-rtp': ['packetsLost', 'fractionLost', 'jitter', 'roundTripTime'],
  'media-source': ['frames', 'framesPerSecond'],
  'candidate-pair': [
    'availableOutgoingBitrate', 'currentRoundTripTime', 'bytesSent', 'bytesReceived',
    'packetsSent', 'packetsReceived',
  ],
  'inbound-rtp': [
    'ssrc', 'packetsReceived', 'packetsLost', 'bytesReceived', 'headerBytesReceived', 'jitter',
    'framesReceived', 'framesDecoded', 'framesDropped', 'keyFramesDecoded', 'qpSum',
    'frameWidth', 'frameHeight', 'framesPerSecond', 'jitterBufferDelay',
    'jitterBufferEmittedCount', 'totalInterFrameDelay', 'nackCount', 'pliCount', 'firCount',
  ],
  track: ['freezeCount', 'totalFreezesDuration', 'pauseCount', 'totalPausesDuration'],
};

const SENDER = ['outbound-rtp', 'remote-inbound-rtp', 'media-source', 'candidate-pair'];
const RECEIVER = ['inbound-rtp', 'track', 'candidate-pair'];

/** The pair in use, whichever way this version of the library marks it. */
function selectedPair(report) {
  const transport = [...report.values()].find((entry) => entry.type === 'transport');
  const id = transport && transport.selectedCandidatePairId;
  return id ? report.get(id) : undefined;
}

function summarize(report, types) {
  const line = {};
  for (const type of types) {
    const entry = type === 'candidate-pair'
      ? selectedPair(report)
      : [...report.values()].find((candidate) =>
        candidate.type === type && (candidate.kind || 'video') === 'video');
    line[type.replaceAll('-', '_')] = entry
      ? Object.fromEntries(FIELDS[type].map((key) => [key, entry[key] ?? null]))
      : null;
  }
  return line;
}

/** What the call settled on: addresses and codec, for checks and for the log. */
function agreed(report) {
  const pair = selectedPair(report);
  const rtp = [...report.values()].find((entry) => /^(out|in)bound-rtp$/.test(entry.type));
  const codec = rtp && report.get(rtp.codecId);
  const address = (id) => {
    const candidate = report.get(id);
    return candidate ? (candidate.address || candidate.ip) : null;
  };
  return {
    local: pair ? address(pair.localCandidateId) : null,
    remote: pair ? address(pair.remoteCandidateId) : null,
    codec: codec ? codec.mimeType : null,
  };
}

class StatsLog {
  constructor(pc, dir, types) {
    this.pc = pc;
    this.types = types;
    this.last = null;
    this.error = null;
    this.pending = null;
    this.fd = fs.openSync(path.join(dir, 'stats.jsonl'), 'w');
    this.timer = setInterval(() => this.sample(), PERIOD_MS);
  }

  /** One sample at a time: a slow answer skips a line instead of piling up requests. */
  sample() {
    this.pending ??= this.write()
      .catch((error) => { this.error ??= error; })
      .finally(() => { this.pending = null; });
    return this.pending;
  }

  async write() {
    const report = await this.pc.getStats();
    this.last = summarize(report, this.types);
    // by hand: nanoseconds since 1970 do not fit a JavaScript number
    const time = `{"t_ns":${realtimeNs()},`;
    fs.writeSync(this.fd, `${time}${JSON.stringify(this.last).slice(1)}\n`);
  }

  /** A last sample, then the file is complete; throws what went wrong on the way. */
  async close() {
    clearInterval(this.timer);
    await this.pending;
    await this.sample();
    fs.closeSync(this.fd);
    if (this.error) {
      throw new RunError(`stats.jsonl: ${this.error.message}`);
    }
  }
}

module.exports = { RECEIVER, SENDER, StatsLog, agreed, summarize };
