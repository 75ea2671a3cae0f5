// SPDX-License-Identifier: GPL-2.0
// For tests of the module: time that passes only when told to, and a peer connection as the module
// sees one, whose statistics are those that Chromium 156 gave for a call.

import { Follower } from '../paqm-rtc.js';

export class Clock {
  constructor() {
    Object.assign(this, { now: 0, due: new Map(), next: 1 });
    globalThis.setTimeout = (call, wait) => {
      this.due.set(this.next, { at: this.now + Math.max(0, wait ?? 0), call });
      return this.next++;
    };
    globalThis.clearTimeout = (id) => this.due.delete(id);
  }

  /** Lets time pass; whatever is asynchronous is done before the next timer. */
  async pass(ms) {
    const end = this.now + ms;
    for (;;) {
      for (let i = 0; i < 20; i++) {
        await null;
      }
      const [id, first] = [...this.due].sort((a, b) => a[1].at - b[1].at)[0] ?? [];
      if (!first || first.at > end) {
        this.now = end;
        return;
      }
      this.now = first.at;
      this.due.delete(id);
      first.call();
    }
  }
}

export class Peer {
  /** @param encodings of its one video sender */
  constructor(clock, encodings = [{ active: true }]) {
    Object.assign(this, {
      clock, encodings, connectionState: 'connected', bps: 1e6, estimate: 5e6, sound: 0, sets: [],
      remote: '10.4.0.2', protocol: 'udp', type: 'host', bytes: 0, packets: 0, soundBytes: 0,
      soundPackets: 0, at: 0, late: 0, fail: 0, told: 0, lost: 0,
      given: 0, target: 0, // a part of what is allowed goes to the encoder, as of the last setting
    });
    this.sender = {
      track: { kind: 'video', getSettings: () => ({ width: 1280, height: 720 }) },
      getParameters: () => ({
        transactionId: `${++this.told}`, encodings: this.encodings.map((one) => ({ ...one })),
      }),
      // what is set is told when the promise is settled, as the specification has it
      setParameters: async ({ transactionId, encodings: all }) => {
        if (transactionId !== `${this.told++}`) { // it was not told last, or is used up
          throw new Error('InvalidModificationError');
        }
        if (this.late) {
          await new Promise((done) => { setTimeout(done, this.late); });
        }
        if (this.fail) {
          this.fail--;
          throw new Error('InvalidStateError');
        }
        this.encodings = all.map((one) => ({ ...one }));
        this.target = this.given * all[0].maxBitrate;
        this.sets.push({ at: clock.now, rates: all.map(({ maxBitrate }) => maxBitrate) });
      },
    };
  }

  getSenders() {
    return [this.sender];
  }

  getTransceivers() {
    return [{ mid: '0', sender: this.sender, currentDirection: 'sendonly' }];
  }

  /** Packets of 1000 bytes on the wire, 40 ms of sound in 150. */
  async getStats() {
    const s = (this.clock.now - this.at) / 1000;
    this.at = this.clock.now;
    this.packets += (this.bps * s) / 8000;
    this.soundPackets += (this.sound * s) / 1200;
    const low = 28;
    const bytes = this.packets * (1000 - low) + this.soundPackets * (150 - low);
    const stats = [
      { type: 'transport', id: 'T01', selectedCandidatePairId: 'CP' },
      {
        type: 'candidate-pair', id: 'CP', transportId: 'T01', localCandidateId: 'L',
        remoteCandidateId: 'R', nominated: true, state: 'succeeded', bytesSent: bytes,
        packetsSent: this.packets + this.soundPackets, availableOutgoingBitrate: this.estimate,
      },
      {
        type: 'local-candidate', id: 'L', candidateType: this.type, protocol: this.protocol,
        address: '10.1.1.2', port: 55407, relatedPort: 40000,
      },
      { type: 'remote-candidate', id: 'R', address: this.remote, port: 33314, protocol: 'udp' },
      {
        type: 'outbound-rtp', id: 'V', kind: 'video', transportId: 'T01', mid: '0', ssrc: 7,
        timestamp: this.at,
        rtxSsrc: 8, remoteId: 'RV', packetsSent: this.packets, bytesSent: this.packets * 938,
        headerBytesSent: this.packets * 24, retransmittedBytesSent: 0,
        qualityLimitationReason: 'none', ...(this.given ? { targetBitrate: this.target } : {}),
      },
    ];
    if (this.lost) {
      stats.push({
        type: 'remote-inbound-rtp', id: 'RV', kind: 'video', fractionLost: this.lost,
        timestamp: this.reported ?? this.at,
      });
    }
    if (this.sound) {
      stats.push({
        type: 'outbound-rtp', id: 'A', kind: 'audio', transportId: 'T01', mid: '1', ssrc: 9,
        packetsSent: this.soundPackets, bytesSent: this.soundPackets * 92,
        headerBytesSent: this.soundPackets * 20,
      });
    }
    return new Map(stats.map((one) => [one.id, one]));
  }
}

/** A follower of a call, what it told, and its newest cap. */
export async function call(encodings, change = {}) {
  const clock = new Clock();
  const pc = Object.assign(new Peer(clock, encodings), change);
  const told = [];
  const follower = new Follower(pc, (message) => told.push(message), () => clock.now);
  await clock.pass(2100);
  const advise = (rate, cause = 'erf') => {
    const { flow } = told.findLast(({ op }) => op === 'add');
    follower.receive({ event: 'advice', flow, rate_bps: rate, cause });
  };
  return { clock, pc, told, follower, advise, cap: () => pc.encodings[0].maxBitrate };
}
