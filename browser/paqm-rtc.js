// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Makes the senders of an RTCPeerConnection follow the rate that P-AQM routers advise. An ES module
 * without dependencies: sites build it in, and the extension carries it into pages (page.js).
 *
 *	const follower = new Follower(pc, (message) => ...);  // to paqm-native-host, in its words
 *	follower.receive(message);                            // from it
 *	follower.stop();
 *
 * Advice is for all packets of a 5-tuple, headers included; libwebrtc's maxBitrate is what its encoder
 * makes, without. What video may have is set there; sound is left alone. The browser's congestion
 * control goes on below that, and alone when advice expires. Rates: bit/s, times: ms. docs/browser.md
 */

const EVERY = 1000; // between two looks at the statistics
const SOON = 250; // and as long as there is something to send, and no connection
const STEP = 1.5; // a rise at most: libwebrtc probes at once and twice what it may send
const HOLD = 350; // between two rises
const DIP = 500; // after a fall less is sent for so long: encoders are slow to follow
const DEEP = 0.9; // and so much of what is allowed
const NEAR = 0.03; // a cap that is as near as that stays: encoders swing after every change
const LONG = 3000; // a mean of what is sent
const TAKES = 0.95; // of the rate to begin with: the rest is headers
const MUCH = 0.7; // an estimate that is less of the rate is lifted, else it grows by itself
const WIDE = 1.25; // times libwebrtc's estimate: a cap above that would not bind, and is not set
// libwebrtc looks for more only when it is allowed more while it sends less than 0.65 of its estimate
// (probe_controller.cc): what it could have sent and has not must come to 0.8 of half a second of
// that (alr_detector.cc). So where the estimate is below what is advised, so little of it is sent
// until that is so, for as long as that at most, and then all is allowed.
const [UNUSED, WINDOW, ENOUGH] = [0.65, 500, 0.85];
const [LIFT, LOW] = [2500, 0.25];
const OFTEN = 100; // between two looks meanwhile
const AGAIN = 8000; // between two of these
const [LOST, CALM] = [0.02, 5000]; // so many lost hold libwebrtc's estimate, and for so long
const SLACK = 1.03; // times the rate: what is sent beyond that is owed,
const OWED = 1500; // made up for in so long,
const OWES = 500; // and worth so long of the rate at most: never more than a third is taken away
// Whenever something is set, libwebrtc gives the encoder a sixth less than it is allowed, until 30
// pictures have shown what that takes, and for up to a second more (encoder_bitrate_adjuster.cc). So
// the encoder is allowed as much more, and that is set anew before those pictures are over.
const SHY = 0.97; // times what is allowed: given less than that
const MORE = 1.3; // times as much is allowed for that, at most
const KEPT = 1.2; // times as much where it is not told what is given (Firefox), but only as long
const BINDS = 0.75; // as so much of the rate is sent: else the rate is not what limits
const AFRESH = 500; // between two settings meanwhile
const STEADY = 2000; // after a change of the advice what is sent says nothing of the encoder
const ROOM = 5000; // until a flow is asked for again that others left no room for
const HELD = 3000; // that advice outlives its way if paqmd says nothing about the new one
const LEAST = 30e3; // of an encoding: libwebrtc sends no less
const HD = 2.5e6; // what simulcast wants for 1280x720 (libwebrtc: simulcast.cc)

/** What a receiver said last of a stream: nothing if that is old, as of an encoding that is paused. */
const lost = (own, r) => (own.timestamp - r?.timestamp > CALM ? 0 : r?.fractionLost ?? 0);
/** What the page lets a sender have, all layers. */
const most = ({ wants }) => wants.reduce((sum, one) => sum + (one.most ?? Infinity), 0);

/** Max-min fair parts of a total, none above what it wants. */
export function share(total, wants) {
  const parts = wants.map(() => 0);
  const order = wants.map((_, i) => i).sort((a, b) => wants[a] - wants[b]);
  order.forEach((i, served) => {
    parts[i] = Math.min(wants[i], total / (order.length - served));
    total -= parts[i];
  });
  return parts;
}

/**
 * Parts of a rate for the layers of one sender, 0 for a layer that does not fit.
 * Lower layers come first, as in libwebrtc; the highest that fits has what is left. The lowest that
 * is on always has a part, or no picture would be sent.
 * @param wants what each may have, undefined: not limited, 0: it is off; and its pixels, 1 for 1280x720
 */
export function layers(total, wants) {
  const parts = wants.map(() => 0);
  const order = wants.map((_, i) => i).filter((i) => wants[i].most !== 0)
    .sort((a, b) => wants[a].pixels - wants[b].pixels);
  if (!order.length) {
    return parts;
  }
  let last = order[0];
  order.forEach((i, place) => {
    const want = wants[i].most ?? HD * wants[i].pixels ** 0.9;
    if (place && total < want / 4) {
      return;
    }
    last = i;
    parts[i] = Math.min(want, total);
    total -= parts[i];
  });
  parts[last] = Math.min(wants[last].most ?? Infinity, parts[last] + Math.max(0, total));
  return parts;
}

/** The connections of a getStats() report that carry media: addresses, SSRCs, counters. */
export function connections(report) {
  const all = [...report.values()];
  const chosen = new Set(all.map((s) => s.type === 'transport' && s.selectedCandidatePairId));
  const pairs = all.filter((s) => s.type === 'candidate-pair' && (chosen.has(s.id)
    || (chosen.size === 1 && (s.selected ?? (s.nominated && s.state === 'succeeded')))));
  return pairs.map((pair) => {
    const local = report.get(pair.localCandidateId) ?? {};
    const remote = report.get(pair.remoteCandidateId) ?? {};
    const rtp = all.filter((s) => s.type === 'outbound-rtp'
      && (s.transportId ?? pair.transportId) === pair.transportId);
    const ip = /^[\d.]+$|^[\da-f:.]*:[\da-f:.]*$/i; // an mDNS name is none
    const host = local.candidateType === 'host';
    return {
      transport: pair.transportId, pair, rtp,
      lost: Math.max(0, ...rtp.map((s) => lost(s, report.get(s.remoteId)))),
      wrong: local.protocol !== 'udp' ? 'not UDP' : local.candidateType === 'relay' ? 'TURN relay'
        : ip.test(remote.address ?? '') ? '' : 'the browser hides the address of the peer',
      tuple: {
        ...(host && ip.test(local.address ?? '') ? { source: local.address } : {}),
        // behind a NAT the socket's own port is the related one
        source_port: host ? local.port : local.relatedPort || local.port,
        destination: remote.address, destination_port: remote.port,
        // one number in all packets: the daemon checks it, too; video has others to repair it
        ssrc: rtp.length === 1 && rtp[0].kind === 'audio' ? rtp[0].ssrc : 0,
      },
    };
  });
}

/** What a connection has sent: all, and of it video with its headers; bytes. */
export function sent({ pair, rtp, tuple }) {
  const low = 8 + (tuple.destination?.includes(':') ? 40 : 20);
  const whole = (list) => list.reduce((sum, s) => sum + (s.bytesSent ?? 0)
    + (s.headerBytesSent ?? 0) + (s.packetsSent ?? 0) * (low + 10), 0); // SRTP's tag
  const video = whole(rtp.filter((s) => s.kind === 'video'));
  const all = pair.packetsSent === undefined // Firefox
    ? whole(rtp) : pair.bytesSent + pair.packetsSent * low;
  return { all, video };
}

/** Makes an encoding what the page has asked for, within its part; 0: it is paused, undefined: all. */
function give(encoding, { most, active }, part) {
  encoding.active = active && part !== 0;
  if (part) {
    encoding.maxBitrate = Math.round(Math.max(LEAST, Math.min(part, most ?? Infinity)));
  } else if (most === undefined) {
    delete encoding.maxBitrate;
  } else {
    encoding.maxBitrate = most;
  }
  return encoding;
}

/** One connection that is followed. */
class Flow {
  constructor(transport) {
    Object.assign(this, {
      transport, id: 0, key: '', rtp: [], // as registered
      again: Infinity, holds: Infinity, // when to register it anew, and when to end what held before
      rate: 0, changed: 0, // what is advised, and since when about that
      cap: 0, raised: 0, timer: 0, // what video has of it
      dip: 0, depth: 0, // until when it has less, and how much at most
      estimate: 0, best: 0, lifted: -Infinity, // libwebrtc's, the most so far, last lifted
      lifting: false, hit: -Infinity, // since when fewer are lost
      unused: 0, seen: null, // bits that libwebrtc could have sent and has not, as it counts
      other: 0, trim: TAKES, sum: 0, since: 0, last: null, bps: 0, // how much that is
      owed: 0, // bits beyond the rate
      more: 1, set: -Infinity, had: 0, // times as much is allowed; when it was set, for how much
    });
  }

  advise(rate, now) {
    this.holds = Infinity;
    if (Math.abs(rate - this.rate) > 0.05 * this.rate) {
      this.changed = now;
    }
    this.rate = rate;
    if (!this.estimate) {
      this.judge(now);
    }
  }

  /** What has been sent since the last look, and what that says of the cap. Return: bit/s. */
  measure(counters, now) {
    const { last } = this;
    if (last && now < last.now + 0.9 * EVERY) {
      return this.bps;
    }
    this.last = { ...counters, now };
    if (!last || counters.all < last.all) {
      return 0;
    }
    const per = 8000 / (now - last.now);
    const all = per * (counters.all - last.all);
    const video = per * (counters.video - last.video);
    this.other += (Math.max(0, all - video) - this.other) / 2;
    this.owe(all, last.now, now);
    this.correct(all * (now - last.now), last.now, now);
    this.bps = all;
    return all;
  }

  /** libwebrtc's estimate, and its account of what it leaves of that. */
  account(estimate, { all }, now) {
    const { seen } = this;
    const part = (UNUSED * estimate) / 1000; // bits a millisecond
    this.estimate = estimate;
    this.best = Math.max(this.best, estimate);
    if (seen && all >= seen.all) {
      const left = this.unused + part * (now - seen.now) - 8 * (all - seen.all);
      this.unused = Math.max(-part * WINDOW, Math.min(part * WINDOW, left));
    }
    this.seen = { all, now };
  }

  /** How much more the encoder must be allowed, by what it is given of that. */
  judge(now) {
    const video = this.rtp.filter((s) => s.kind === 'video');
    const given = video.reduce((sum, { targetBitrate = 0 }) => sum + targetBitrate, 0);
    if (video.length > new Set(video.map(({ mid }) => mid)).size) {
      this.more = 1; // layers: 30 pictures of all of them are soon over
    } else if (!given) { // Firefox tells neither that nor its estimate
      const blind = video.length === 1 && !this.estimate;
      this.more = blind && this.bps > BINDS * this.rate ? KEPT : 1;
    } else if (this.cap && now >= this.set + 0.9 * SOON) {
      const part = given / this.cap; // still less is because of something else
      this.more = part < SHY && part > 1 / MORE ? 1 / part : 1;
    }
  }

  /** Until the next look at the statistics. */
  wait(now) {
    if (this.lifting) {
      return OFTEN;
    }
    if (!this.cap) {
      return EVERY;
    }
    return this.more > 1 ? AFRESH : this.estimate && now < this.set + SOON ? SOON : EVERY;
  }

  /** Would libwebrtc look for more now, if it were allowed more? */
  get looks() {
    return this.unused >= (ENOUGH * WINDOW * UNUSED * this.estimate) / 1000;
  }

  /**
   * A router lets a flow be late with its rate for a picture or so; what is beyond waits in a queue
   * of its own, for as long as the flow sends all of its rate. So it is made up for. Firefox, which
   * does not tell its estimate, is kept below the rate anyway.
   */
  owe(all, from, now) {
    const most = (this.rate * OWES) / 1000;
    const beyond = from < Math.max(this.changed, this.dip) ? 0 : all - SLACK * this.rate;
    const owed = this.owed + (beyond * (now - from)) / 1000;
    this.owed = this.cap && this.estimate ? Math.max(0, Math.min(most, owed)) : 0;
  }

  /** An encoder does not take exactly what it is given. */
  correct(amount, from, now) {
    if (!this.cap || from < Math.max(this.changed, this.dip) + STEADY) {
      this.since = 0;
      return;
    }
    if (!this.since) {
      Object.assign(this, { since: from, sum: 0 });
    }
    this.sum += amount;
    if (now >= this.since + LONG) {
      const error = this.sum / (now - this.since) / this.rate - 1;
      this.trim *= 1 - Math.max(-0.05, Math.min(0.05, error / 2));
      // Firefox does not tell its estimate: less may be sent because of that, too.
      this.trim = Math.max(this.estimate ? 0.85 : 0.85 / this.more,
        Math.min(this.estimate ? 1.1 : TAKES, this.trim));
      this.since = 0;
    }
  }

  /** What video may have. */
  get own() {
    return Math.max(LEAST, (this.rate - this.other) * this.trim - (1000 * this.owed) / OWED);
  }

  /** What it is allowed for that: as much as libwebrtc believes starts no probe. */
  get target() {
    return Math.max(this.own, Math.min(this.more * this.own, this.estimate || Infinity));
  }
}

/** Follows advice for one RTCPeerConnection. */
export class Follower {
  constructor(pc, send, now = () => performance.now()) {
    Object.assign(this, { pc, send, now, flows: new Map(), senders: new Map(), next: 1 });
    this.stopped = false;
    this.ended = () => {}; // called when it has stopped, by itself or not
    this.look();
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    [...this.flows.values()].forEach((flow) => this.drop(flow));
    this.ended();
  }

  /** One look at the statistics, and the next after a while. */
  async look() {
    clearTimeout(this.timer);
    let tracks = false;
    try {
      tracks = this.pc.getSenders().some((s) => s.track);
      if (this.pc.connectionState === 'closed') {
        this.stop();
      } else if (tracks) {
        this.take(connections(await this.pc.getStats()));
      }
    } catch (error) {
      console.debug('paqm:', error); // a connection may be closed meanwhile
    }
    if (!this.stopped) {
      const waits = [...this.flows.values()].map((flow) => flow.wait(this.now()));
      this.later(tracks && !waits.length ? SOON : Math.min(EVERY, ...waits));
    }
  }

  later(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), wait);
  }

  take(found) {
    if (this.stopped) {
      return;
    }
    const seen = new Set(found.filter((c) => c.rtp.length).map((c) => {
      const key = c.wrong || JSON.stringify(c.tuple);
      const flow = this.flows.get(c.transport) ?? new Flow(c.transport);
      this.flows.set(c.transport, flow);
      // new, more streams, or ICE has chosen another way
      if (flow.key !== key || this.now() >= flow.again) {
        if (flow.id) {
          this.send({ op: 'remove', flow: flow.id });
        }
        flow.key = key;
        flow.again = Infinity;
        flow.holds = this.now() + HELD;
        flow.id = this.next++;
        flow.rate = c.wrong ? 0 : flow.rate; // else what held holds until the daemon speaks
        this.send(c.wrong ? { op: 'cannot', flow: flow.id, text: c.wrong }
          : { op: 'add', flow: flow.id, ...c.tuple });
      }
      if (this.now() >= flow.holds) {
        flow.advise(0, this.now());
      }
      flow.rtp = c.rtp;
      const counters = sent(c);
      const last = flow.last?.now;
      flow.account(c.pair.availableOutgoingBitrate ?? 0, counters, this.now()); // not in Firefox
      flow.hit = c.lost > LOST ? this.now() : flow.hit;
      const bps = Math.round(flow.measure(counters, this.now()));
      if (last !== undefined && flow.last.now !== last) { // the first look has nothing to tell
        this.send({ op: 'sent', flow: flow.id, bps, limit: this.limit(flow, bps) });
      }
      flow.judge(this.now());
      this.lift(flow);
      this.steer(flow);
      // one that is new, sends again, or could not be set has not what it should have
      if (this.video(flow).some((sender) => (this.senders.get(sender)?.cap ?? 0) !== flow.cap)) {
        this.apply(flow);
      }
      return flow;
    }));
    [...this.flows.values()].filter((flow) => !seen.has(flow)).forEach((flow) => this.drop(flow));
  }

  /** Who limits the flow now. */
  limit(flow, bps) {
    const of = flow.rtp.find((s) => s.kind === 'video')?.qualityLimitationReason;
    return flow.rate && bps > 0.85 * flow.rate ? 'router'
      : of === 'cpu' ? 'cpu' : of === 'bandwidth' ? 'congestion control' : 'sender';
  }

  /** A message of paqm-native-host. */
  receive(message) {
    const flow = [...this.flows.values()].find((f) => f.id === message.flow);
    if (message.event === 'lost') { // registrations are gone: begin anew
      [...this.flows.values()].forEach((f) => this.drop(f, false));
      this.look();
    } else if (flow && message.event === 'advice') {
      const before = flow.rate;
      flow.advise(message.rate_bps, this.now());
      if (before && flow.rate > 1.2 * before) {
        flow.lifted = Math.min(flow.lifted, this.now() - AGAIN - 1); // there is more now
        this.lift(flow);
      }
      this.steer(flow);
    } else if (flow && message.event === 'refused') {
      if (!message.kept && ['full', 'taken'].includes(message.reason)) {
        flow.again = this.now() + ROOM;
      }
      flow.advise(0, this.now());
      this.steer(flow);
    }
  }

  drop(flow, known = true) {
    if (known) {
      this.send({ op: 'remove', flow: flow.id });
    }
    flow.rate = 0;
    this.steer(flow); // while it is there: the senders of others are not its own
    this.flows.delete(flow.transport);
  }

  /** Moves the cap towards what advice allows: down at once, up in steps. */
  steer(flow) {
    clearTimeout(flow.timer);
    const { own, target, cap } = flow;
    const now = this.now();
    const later = (wait) => { flow.timer = setTimeout(() => this.steer(flow), wait); };
    if (!flow.rate) {
      flow.dip = 0;
      this.cap(flow, 0);
      return;
    }
    if (!flow.dip && own < 0.9 * (flow.had || flow.bps)) {
      flow.dip = now + DIP;
      flow.depth = Infinity;
    }
    if (flow.dip > now) {
      this.cap(flow, Math.max(LEAST, Math.min(DEEP * own, flow.depth)));
      later(flow.dip - now);
      return;
    }
    const jump = flow.dip || !cap;
    flow.dip = 0;
    if (flow.estimate && own > WIDE * flow.estimate) {
      this.cap(flow, 0);
    } else if (jump || target < (1 - NEAR) * cap) {
      flow.raised = now;
      this.cap(flow, target);
    } else if (flow.more > 1 && now >= flow.set + 0.9 * AFRESH
      && (!flow.estimate || target <= flow.estimate)) {
      this.cap(flow, cap === target ? target - 1 : target);
    } else if (target > (1 + NEAR) * cap) {
      const believed = Math.min(target, flow.estimate); // as much as that starts no probe
      const wait = believed > (1 + NEAR) * cap ? 0 : flow.raised + HOLD - now;
      if (wait <= 0) {
        flow.raised = now;
        this.cap(flow, Math.max(believed, Math.min(target, cap * STEP)));
      }
      later(wait > 0 ? wait : HOLD);
    }
  }

  /**
   * Where libwebrtc's estimate is below what is advised and what the page allows, and was higher
   * before: makes it look for more. In the beginning it does so by itself, and what was never
   * higher may be a limit of the page.
   */
  lift(flow) {
    const now = this.now();
    if (flow.lifting) {
      if (flow.looks || now >= flow.dip) {
        flow.lifting = false;
        flow.dip = Math.min(flow.dip, now); // steer() allows all
      }
      return;
    }
    const page = () => flow.other
      + this.video(flow).reduce((sum, one) => sum + most(this.known(one)), 0) / TAKES;
    const calm = flow.rate && !flow.dip && now > flow.lifted + AGAIN && now > flow.hit + CALM;
    if (calm && flow.estimate && flow.estimate < MUCH * Math.min(flow.rate, flow.best, page())) {
      flow.lifted = now;
      flow.dip = now + LIFT;
      flow.depth = LOW * flow.estimate;
      flow.lifting = true;
      this.later(OFTEN);
    }
  }

  cap(flow, cap) {
    if (flow.cap !== cap) {
      Object.assign(flow, { cap, set: this.now(), had: Math.min(cap, flow.own) });
      if (cap && flow.more === 1 && flow.estimate) {
        this.later(SOON); // what is given now?
      }
      this.apply(flow);
    }
  }

  /** The video senders of the connection that send now. */
  video(flow) {
    const mids = new Set(flow.rtp.map((s) => s.mid));
    return this.pc.getTransceivers().filter(({ mid, sender, currentDirection }) => (
      sender.track?.kind === 'video' && currentDirection?.startsWith('send')
      && (this.flows.size < 2 || mids.has(mid)))).map(({ sender }) => sender);
  }

  /** Gives each of them its part; when there is none any more, those as well that are muted. */
  apply(flow) {
    const video = this.video(flow).map((sender) => this.known(sender));
    const parts = share(flow.cap, video.map(most));
    const muted = flow.cap ? [] : [...this.senders.values()].filter((one) => (
      one.flow === flow && one.cap !== 0 && !video.includes(one)));
    [...video, ...muted].forEach((one, i) => {
      one.parts = flow.cap ? layers(parts[i], one.wants) : null;
      Object.assign(one, { flow, cap: flow.cap });
      this.set(one);
    });
  }

  /** A sender, and what the page itself has asked of its encodings. */
  known(sender) {
    const one = this.senders.get(sender) ?? this.meet(sender);
    const { encodings } = this.read(one);
    const { width = 1280, height = 720 } = sender.track?.getSettings?.() ?? {};
    one.wants = encodings.map(({ scaleResolutionDownBy: by = 1 }, i) => ({
      most: one.own[i].active ? one.own[i].most : 0,
      pixels: width * height / 921600 / by ** 2,
    }));
    return one;
  }

  /**
   * A sender from now on. The page sees of it what it has asked for itself, and what it asks is told from
   * what we set: a layer that we have paused is none that it has turned off.
   */
  meet(sender) {
    const one = {
      sender, own: [], set: [], busy: false, asks: 0, // what the page has on its way
      get: sender.getParameters.bind(sender), put: sender.setParameters.bind(sender),
    };
    sender.getParameters = () => {
      const parameters = this.read(one);
      parameters.encodings.forEach((encoding, i) => give(encoding, one.own[i]));
      return parameters;
    };
    sender.setParameters = async (parameters, ...more) => {
      const own = parameters.encodings.map(({ maxBitrate, active = true }) => ({ most: maxBitrate, active }));
      const encodings = parameters.encodings.map((encoding, i) => (
        give({ ...encoding }, own[i], one.parts?.[i])));
      one.asks++;
      try {
        const { transactionId } = one.get(); // the page's is used up if we have set something since
        await one.put({ ...parameters, transactionId, encodings }, ...more);
        Object.assign(one, { own, set: encodings });
        one.cap = one.parts ? NaN : one.cap; // the next look shares anew
      } finally {
        one.asks--;
        if (one.again && !one.asks && !one.busy) {
          this.set(one);
        }
      }
    };
    this.senders.set(sender, one);
    return one;
  }

  /** What holds now; meanwhile it may be either, so nothing is judged by it. */
  read(one) {
    const parameters = one.get();
    parameters.encodings ??= [];
    if (!(one.busy || one.asks) || one.own.length < parameters.encodings.length) {
      this.judge(one, parameters.encodings);
    }
    return parameters;
  }

  /** What differs from the last setting is the page's: it may have set it before, or past us. */
  judge(one, encodings) {
    encodings.forEach(({ maxBitrate, active = true }, i) => {
      const set = one.set[i] ?? {};
      one.own[i] = {
        most: maxBitrate === set.maxBitrate && one.own[i] ? one.own[i].most : maxBitrate,
        active: active === (set.active ?? active) && one.own[i] ? one.own[i].active : active,
      };
    });
  }

  async set(one) {
    if (one.busy || one.asks) { // the newest is set when this is done
      one.again = true;
      return;
    }
    one.busy = true;
    try {
      do {
        one.again = false;
        const parameters = one.get();
        this.judge(one, parameters.encodings);
        parameters.encodings.forEach((encoding, i) => give(encoding, one.own[i], one.parts?.[i]));
        await one.put(parameters);
        one.set = parameters.encodings; // not before: until then, and if it fails, the former holds
      } while (one.again && !one.asks);
    } catch (error) {
      console.debug('paqm:', error); // the page was changing them
      one.cap = NaN; // the next look sets them again
      if (this.stopped && this.pc.connectionState !== 'closed') { // there is none
        setTimeout(() => this.set(one), EVERY);
      }
    }
    one.busy = false;
  }
}
