// SPDX-License-Identifier: GPL-2.0
/*
 * Which flow is of which page. The worker's bookkeeping, apart from the browser's interfaces so that
 * it can be tested without one (tests/registry.test.mjs).
 */

const FLOWS = 16; // of a tab: a page may have any number of frames
const MESSAGES = { frame: 50, tab: 100 }; // within a second; page.js sends one a flow, and few more
const WHOLE = ['source_port', 'destination_port', 'ssrc'];
const TEXT = ['source', 'destination'];
const TUPLE = ['source', 'source_port', 'destination', 'destination_port'];

const isCount = (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32;

export class Registry {
  /** @param send takes a message for paqm-native-host */
  constructor(send) {
    Object.assign(this, { send, pages: new Set(), flows: new Map(), next: 1 });
    Object.assign(this, { second: 0, counts: new Map() }); // of messages, by frame and tab
    this.refused = 0; // messages above that
    this.host = { connected: false, text: '' };
    this.paqmd = { connected: false, text: '' };
  }

  /** A page, or a frame of one. @param tell takes a message for it */
  open(tell, origin, tab, frame) {
    const page = { tell, origin, tab, frame, own: new Map() };
    this.pages.add(page);
    return page;
  }

  close(page) {
    page.own.forEach((id) => this.remove(page, id));
    this.pages.delete(page);
  }

  /** A message of a page. Return: false if it asks for too much, and is to be cut off. */
  ask(page, message, now) {
    if (!this.pages.has(page)) {
      return false;
    }
    const second = Math.floor(now / 1000);
    if (second !== this.second) {
      this.second = second;
      this.counts.clear();
    }
    // by the frame, not the page: that is a new one whenever it connects
    const frame = this.count(`${page.tab} ${page.frame}`);
    if (frame > MESSAGES.frame || this.count(`${page.tab}`) > MESSAGES.tab) {
      this.refused++;
      return false;
    }
    const { op, pc, flow } = message ?? {};
    if (!isCount(pc) || !isCount(flow)) {
      return true;
    }
    const name = `${pc} ${flow}`;
    const id = page.own.get(name);
    if (op === 'add' || op === 'cannot') {
      this.add(page, name, message);
    } else if (id && op === 'remove') {
      this.remove(page, id);
    } else if (id && op === 'sent' && isCount(message.bps)) {
      const known = this.flows.get(id);
      Object.assign(known, { sent: message.bps, limit: String(message.limit).slice(0, 20) });
      if (known.told) {
        this.send({ op, flow: id, bps: message.bps });
      }
    }
    return true;
  }

  count(place) {
    const count = (this.counts.get(place) ?? 0) + 1;
    this.counts.set(place, count);
    return count;
  }

  add(page, name, message) {
    if (page.own.has(name)) {
      return;
    }
    const refuse = (reason, text) => page.tell({
      pc: message.pc, flow: message.flow, event: 'refused', reason, text, kept: false,
    });
    const all = [...this.flows.values()];
    if (all.filter((known) => known.page.tab === page.tab).length >= FLOWS) {
      refuse('full', `a tab may follow ${FLOWS} flows at a time`);
      return;
    }
    const id = this.next++;
    const told = { op: 'add', flow: id };
    WHOLE.filter((key) => isCount(message[key])).forEach((key) => { told[key] = message[key]; });
    TEXT.filter((key) => typeof message[key] === 'string')
      .forEach((key) => { told[key] = message[key].slice(0, 64); });
    const same = (known) => known.told && TUPLE.every((key) => known.told[key] === told[key]);
    if (message.op === 'add' && all.some(same)) {
      refuse('taken', 'these packets are followed already');
      return;
    }
    const at = message.op === 'add' ? `${told.destination}:${told.destination_port}` : '';
    page.own.set(name, id);
    this.flows.set(id, {
      told: at && told, page, name, pc: message.pc, flow: message.flow, at, rate: 0, sent: 0, limit: '', router: '',
      cause: 'none', text: at ? '' : String(message.text).slice(0, 100),
    });
    if (at) {
      this.send(told);
    }
  }

  remove(page, id) {
    const known = this.flows.get(id);
    page.own.delete(known.name);
    this.flows.delete(id);
    if (known.told) {
      this.send({ op: 'remove', flow: id });
    }
  }

  /** A message of paqm-native-host. */
  heard(message) {
    const known = this.flows.get(message.flow);
    this.host = { connected: true, text: '' };
    if (message.event === 'paqmd') {
      this.paqmd = { connected: message.connected, text: message.text };
    } else if (known && message.event === 'advice') {
      Object.assign(known, {
        rate: message.rate_bps, cause: message.cause, router: message.router, text: '',
        policed: message.policed, overload: message.overload,
      });
      known.page.tell({ ...message, pc: known.pc, flow: known.flow });
    } else if (known && message.event === 'refused') {
      Object.assign(known, { rate: 0, cause: 'refused', text: message.text });
      known.told &&= message.kept && known.told; // else the host has no such flow
      known.page.tell({ ...message, pc: known.pc, flow: known.flow });
    }
  }

  /** paqm-native-host has ended: no advice is in force any more. */
  lost(text) {
    this.host = { connected: false, text };
    this.paqmd = { connected: false, text: '' };
    this.flows.forEach((known) => {
      Object.assign(known, { rate: 0, cause: 'lost' });
      known.page.tell({
        event: 'advice', cause: 'lost', rate_bps: 0, pc: known.pc, flow: known.flow,
      });
    });
  }

  /** paqm-native-host has been started: it hears of every flow. */
  again() {
    this.flows.forEach(({ told }) => told && this.send(told));
  }

  /** For the popup. */
  state() {
    return {
      host: this.host, paqmd: this.paqmd, refused: this.refused,
      flows: [...this.flows.values()].map((
        { page, at, rate, sent, limit, router, cause, text, policed, overload }) => ({
        origin: page.origin, at, rate, sent, limit, router, cause, text, policed, overload,
      })),
    };
  }
}
