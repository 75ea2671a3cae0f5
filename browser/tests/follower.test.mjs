// SPDX-License-Identifier: GPL-2.0
// The core module: what of a getStats() report is a flow, how a rate is shared, how the cap moves.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Follower, connections, layers, sent, share } from '../paqm-rtc.js';
import { Clock, Peer, call } from './clock.mjs';

test('max-min shares', () => {
  assert.deepEqual(share(10, [Infinity, Infinity]), [5, 5]);
  assert.deepEqual(share(10, [Infinity, 2, 3]), [5, 2, 3]);
  assert.deepEqual(share(2, [4, 4]), [1, 1]);
  assert.deepEqual(share(10, []), []);
});

test('layers of simulcast: the lowest first, none that would starve', () => {
  const wants = [{ pixels: 1 / 16 }, { pixels: 1 / 4 }, { pixels: 1 }];
  const much = layers(4e6, wants);
  assert.ok(much.every((part) => part > 0) && Math.abs(much[0] + much[1] + much[2] - 4e6) < 1);
  assert.ok(much[0] < much[1] && much[1] < much[2]);
  const some = layers(1e6, wants);
  assert.ok(some[0] > 0 && some[1] > 0 && some[2] === 0);
  assert.ok(Math.abs(some[0] + some[1] - 1e6) < 1, 'the highest that fits has the rest');
  assert.deepEqual(layers(1e5, wants), [1e5, 0, 0]);
  assert.deepEqual(layers(2e6, [{ pixels: 1, most: 5e5 }]), [5e5], 'no more than the page allows');
  assert.deepEqual(layers(2e6, [{ pixels: 1 }, { pixels: 0.25, most: 2e5 }]), [1.8e6, 2e5]);
  const off = { pixels: 1 / 4, most: 0 };
  assert.deepEqual(layers(6e5, [off, off, { pixels: 1 }]), [0, 0, 6e5], 'the lowest that is on');
  assert.deepEqual(layers(6e5, [off, off]), [0, 0]);
});

test('the tuple of a connection', async () => {
  const clock = new Clock();
  const pc = new Peer(clock);
  const [one] = connections(await pc.getStats());
  assert.deepEqual(one.tuple, {
    source: '10.1.1.2', source_port: 55407, destination: '10.4.0.2', destination_port: 33314,
    ssrc: 0, // more than one: video and its retransmissions
  });
  const sound = await Object.assign(new Peer(clock), { sound: 3e4 }).getStats();
  sound.delete('V');
  assert.equal(connections(sound)[0].tuple.ssrc, 9);
  assert.equal(one.wrong, '');
  pc.type = 'srflx'; // the socket's port is behind the NAT
  assert.equal(connections(await pc.getStats())[0].tuple.source_port, 40000);
  assert.equal(connections(await pc.getStats())[0].tuple.source, undefined);
  pc.type = 'relay';
  assert.match(connections(await pc.getStats())[0].wrong, /TURN/);
  Object.assign(pc, { type: 'host', protocol: 'tcp' });
  assert.match(connections(await pc.getStats())[0].wrong, /UDP/);
  Object.assign(pc, { protocol: 'udp', remote: 'd1b2.local' });
  assert.match(connections(await pc.getStats())[0].wrong, /hides/);
});

test('Firefox: no transport among the statistics, no packets of a pair', async () => {
  const report = await new Peer(new Clock()).getStats();
  report.delete('T01');
  delete report.get('CP').packetsSent;
  delete report.get('CP').bytesSent;
  const [one] = connections(report);
  assert.equal(one.tuple.source_port, 55407);
  const { all, video } = sent(one);
  assert.equal(all, video);
});

test('a flow is registered once, and again when its addresses change', async () => {
  const { clock, pc, told } = await call();
  assert.equal(told.filter(({ op }) => op === 'add').length, 1);
  pc.remote = '10.4.0.3';
  await clock.pass(1100);
  assert.deepEqual(told.filter(({ op }) => op === 'add' || op === 'remove')
    .map(({ op, flow, destination }) => [op, flow, destination]), [
    ['add', 1, '10.4.0.2'], ['remove', 1, undefined], ['add', 2, '10.4.0.3']]);
  pc.connectionState = 'closed';
  await clock.pass(1100);
  assert.equal(told.at(-1).op, 'remove');
  assert.equal(clock.due.size, 0, 'nothing runs on');
});

test('what held holds for a moment only, unless the daemon speaks about the new addresses', async () => {
  const { clock, pc, told, advise, cap } = await call();
  for (const speaks of [true, false]) {
    advise(800e3);
    await clock.pass(5000);
    assert.ok(cap() < 800e3);
    pc.remote = speaks ? '10.4.0.4' : '10.4.0.5';
    await clock.pass(1100);
    assert.ok(cap() < 800e3, 'it answers in a moment');
    if (speaks) {
      advise(700e3);
    }
    await clock.pass(5000);
    assert.equal(cap() !== undefined, speaks, `${cap()}`);
  }
  advise(600e3); // it is back
  await clock.pass(5000);
  assert.ok(cap() < 600e3);
  assert.equal(told.filter(({ op }) => op === 'add').length, 3);
});

test('one that only carries data is looked at seldom', async () => {
  const { clock, pc, told, follower: first } = await call();
  let looks = 0;
  pc.getSenders = () => {
    looks++;
    return [];
  };
  await clock.pass(5000);
  assert.equal(told.at(-1).op, 'sent', 'what is muted stays registered');
  assert.ok(looks <= 6, `${looks}`);
  first.stop();
  const fresh = new Peer(clock);
  fresh.getSenders = pc.getSenders;
  looks = 0;
  const follower = new Follower(fresh, () => {}, () => clock.now);
  await clock.pass(5000);
  assert.ok(looks <= 6, `${looks}`);
  follower.stop();
});

test('what is refused for want of room is asked for again', async () => {
  const { clock, told, follower } = await call();
  const adds = () => told.filter(({ op }) => op === 'add').map(({ flow }) => flow);
  follower.receive({ event: 'refused', flow: 1, reason: 'full', kept: false });
  await clock.pass(3000);
  assert.deepEqual(adds(), [1], 'not at once');
  await clock.pass(4000);
  assert.deepEqual(adds(), [1, 2]);
  follower.receive({ event: 'refused', flow: 2, reason: 'taken', kept: true }); // by the host
  await clock.pass(30000);
  assert.deepEqual(adds(), [1, 2]);
  follower.receive({ event: 'refused', flow: 2, reason: 'taken', kept: false });
  await clock.pass(7000);
  assert.deepEqual(adds(), [1, 2, 3]);
  follower.receive({ event: 'refused', flow: 3, reason: 'source', kept: false }); // remains wrong
  await clock.pass(30000);
  assert.deepEqual(adds(), [1, 2, 3]);
});

test('a cap is less than the rate by a margin and by sound', async () => {
  const { clock, advise, cap } = await call([{ active: true }], { bps: 0.8e6 });
  advise(1e6);
  await clock.pass(1);
  assert.ok(cap() > 0.92e6 && cap() < 0.96e6, `${cap()}`);
  const other = await call([{ active: true }], { bps: 0.7e6, sound: 1e5 });
  other.advise(1e6);
  await other.clock.pass(1);
  assert.ok(other.cap() < 0.88e6 && other.cap() > 0.8e6, `${other.cap()}`);
});

test('down at once, and below for a moment', async () => {
  const { clock, pc, advise, cap } = await call();
  advise(3e6);
  await clock.pass(3000);
  const high = cap();
  advise(1e6);
  await clock.pass(1);
  assert.ok(cap() < 0.9 * 1e6 && cap() > 0.7 * 1e6, `${cap()} of ${high}`);
  pc.bps = 1e6;
  await clock.pass(700);
  assert.ok(cap() > 0.86e6 && cap() < 1e6, `${cap()}`);
});

test('up at once as far as libwebrtc believes', async () => {
  const { clock, pc, advise, cap } = await call();
  pc.bps = 0.5e6;
  advise(0.5e6);
  await clock.pass(5000);
  advise(2e6);
  await clock.pass(1);
  assert.ok(cap() > 1.75e6 && cap() < 2e6, `${cap()}`);
});

test('else up in steps of half as much again, within two seconds', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { estimate: undefined });
  pc.bps = 0.5e6;
  advise(0.5e6);
  await clock.pass(5000);
  pc.sets.length = 0;
  advise(2e6);
  await clock.pass(2000);
  assert.ok(cap() > 1.75e6, `${cap()}`);
  const rates = pc.sets.map(({ rates: [rate] }) => rate);
  assert.ok(rates.length > 2);
  rates.slice(1).forEach((rate, i) => assert.ok(rate <= 1.51 * rates[i], `${rates}`));
});

test('without advice the page has what it asked for', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true, maxBitrate: 1.5e6 }]);
  advise(1e6);
  await clock.pass(2000);
  assert.ok(cap() < 1e6);
  advise(4e6);
  await clock.pass(4000);
  assert.equal(cap(), 1.5e6, 'never more than that');
  pc.encodings[0].maxBitrate = 0.4e6; // the page changes its mind
  advise(1e6);
  await clock.pass(2000);
  assert.equal(cap(), 0.4e6);
  advise(0, 'expired');
  await clock.pass(1);
  assert.equal(cap(), 0.4e6);
  const free = await call();
  free.advise(1e6);
  await free.clock.pass(1000);
  free.advise(0, 'expired');
  await free.clock.pass(1);
  assert.equal('maxBitrate' in free.pc.encodings[0], false);
});

test('a layer that did not fit comes back, one that the page turned off does not', async () => {
  const { clock, pc, advise } = await call([
    { active: true, scaleResolutionDownBy: 4 }, { active: false, scaleResolutionDownBy: 2 },
    { active: true, scaleResolutionDownBy: 1 }]);
  advise(0.3e6);
  await clock.pass(2000);
  assert.deepEqual(pc.encodings.map(({ active }) => active), [true, false, false]);
  advise(5e6);
  await clock.pass(6000);
  assert.deepEqual(pc.encodings.map(({ active }) => active), [true, false, true]);
  advise(0);
  await clock.pass(10);
  assert.deepEqual(pc.encodings.map(({ active, maxBitrate }) => [active, maxBitrate]),
    [[true, undefined], [false, undefined], [true, undefined]]);
});

/** Advice that rises is followed, and when it has ended nothing is left of the cap. */
async function risesAndEnds({ clock, pc, advise, cap }) {
  advise(4e6);
  await clock.pass(20000);
  assert.ok(cap() > 3e6, `${cap()}`);
  advise(0, 'expired');
  await clock.pass(100);
  assert.equal('maxBitrate' in pc.encodings[0], false);
}

test('a cap that is still being set is not taken for the page\'s', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { late: 5, bps: 1.9e6 });
  advise(2e6);
  await clock.pass(3000);
  advise(1e6);
  await clock.pass(1);
  advise(0.5e6);
  await clock.pass(3000);
  assert.ok(cap() < 0.6e6);
  await risesAndEnds({ clock, pc, advise, cap });
});

test('nor is a layer that is just coming back one that the page has off', async () => {
  const { clock, pc, advise } = await call([{ active: true, scaleResolutionDownBy: 2 },
    { active: true, scaleResolutionDownBy: 1 }], { late: 5 });
  advise(0.4e6);
  await clock.pass(3000);
  assert.deepEqual(pc.encodings.map(({ active }) => active), [true, false]);
  advise(3e6);
  await clock.pass(1);
  advise(4e6);
  await clock.pass(3000);
  assert.deepEqual(pc.encodings.map(({ active }) => active), [true, true]);
  advise(0, 'expired');
  await clock.pass(100);
  assert.deepEqual(pc.encodings.map(({ maxBitrate }) => maxBitrate), [undefined, undefined]);
});

test('nor is one when setting another has failed', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { late: 5 });
  advise(1e6);
  await clock.pass(4000);
  pc.fail = 1;
  advise(0.8e6);
  await clock.pass(4000);
  await risesAndEnds({ clock, pc, advise, cap });
});

test('a sender that is muted when advice ends is given back what it had', async () => {
  const { clock, pc, advise, cap } = await call();
  advise(0.3e6);
  await clock.pass(3000);
  assert.ok(cap() < 0.3e6);
  const { track } = pc.sender;
  pc.sender.track = null; // replaceTrack(null)
  await clock.pass(2000);
  advise(0, 'expired');
  await clock.pass(10);
  assert.equal('maxBitrate' in pc.encodings[0], false, 'at once: no one may be here to do it later');
  pc.sender.track = track;
  await clock.pass(2000);
  assert.equal('maxBitrate' in pc.encodings[0], false);
});

test('a sender that comes back, or anew, has its part at the next look', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { bps: 2.8e6 });
  advise(3e6);
  await clock.pass(3000);
  const { sender } = pc;
  const [first] = pc.getTransceivers();
  Object.assign(first, { currentDirection: 'recvonly' });
  pc.getTransceivers = () => [first];
  advise(1e6);
  await clock.pass(2000);
  assert.ok(cap() > 2e6, 'it sends nothing');
  first.currentDirection = 'sendrecv';
  await clock.pass(1100);
  assert.ok(cap() < 1e6, `${cap()}`);
  const other = new Peer(clock);
  pc.getTransceivers = () => [first, { ...first, mid: '1', sender: other.sender }];
  pc.getSenders = () => [sender, other.sender];
  await clock.pass(1100);
  assert.ok(cap() < 0.5e6 && other.encodings[0].maxBitrate < 0.5e6);
});

test('what could not be set is set at the next look', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { bps: 0.97e6 });
  advise(1e6);
  await clock.pass(3000);
  pc.fail = 2;
  advise(0.6e6);
  pc.bps = 0.57e6;
  await clock.pass(2100);
  assert.ok(cap() < 0.6e6, `${cap()}`);
  pc.fail = 1;
  advise(0, 'expired');
  await clock.pass(1100);
  assert.equal('maxBitrate' in pc.encodings[0], false);
});

test('a cap that cannot be taken back at the end is taken back a little later', async () => {
  for (const fail of [1, 3]) {
    const { clock, pc, advise, follower } = await call([{ active: true }], { bps: 0.97e6 });
    advise(1e6);
    await clock.pass(3000);
    pc.fail = fail;
    follower.stop();
    await clock.pass(1000 * fail + 100);
    assert.equal('maxBitrate' in pc.encodings[0], false, 'nobody looks any more');
    pc.sets.length = 0;
    await clock.pass(5000);
    assert.equal(pc.sets.length, 0);
  }
});

/** A page that wants this of the first encoding that is not so, if there is one. */
async function ask(sender, wants) {
  const parameters = sender.getParameters();
  if (parameters.encodings.some((one, i) => wants(i, one))) {
    await sender.setParameters(parameters);
  }
}

const turn = (layer, active) => (i, one) => {
  const changes = i === layer && one.active !== active;
  one.active = i === layer ? active : one.active;
  return changes;
};

for (const late of [0, 5]) {
  test(`a paused layer that the page turns off stays off (${late} ms)`, async () => {
    const { clock, pc, advise } = await call([
      { active: true, scaleResolutionDownBy: 2 }, { active: true, scaleResolutionDownBy: 1 }], { late });
    const active = () => pc.encodings.map((one) => one.active);
    advise(0.4e6);
    await clock.pass(2000);
    assert.deepEqual(active(), [true, false]);
    const [own] = pc.sender.getParameters().encodings.slice(1);
    assert.deepEqual([own.active, 'maxBitrate' in own], [true, false], 'the page sees its own wish');
    // a page that changes something else leaves it on
    ask(pc.sender, (_, one) => { one.maxBitrate = 0.5e6; return true; });
    advise(4e6);
    await clock.pass(5000);
    assert.deepEqual(active(), [true, true]);
    assert.equal(pc.encodings[0].maxBitrate, 0.5e6);
    advise(0.4e6);
    await clock.pass(2000);
    assert.deepEqual(active(), [true, false]);
    ask(pc.sender, turn(1, false));
    advise(4e6);
    await clock.pass(5000);
    assert.deepEqual(active(), [true, false]);
    ask(pc.sender, turn(1, true));
    await clock.pass(5000);
    assert.deepEqual(active(), [true, true]);
    pc.fail = 1;
    await assert.rejects(async () => {
      const asked = ask(pc.sender, turn(1, false));
      clock.pass(100);
      await asked;
    });
    advise(0, 'expired');
    await clock.pass(2000);
    assert.deepEqual(pc.encodings.map(({ active: on, maxBitrate }) => [on, maxBitrate]),
      [[true, 0.5e6], [true, undefined]]);
  });
}

test('a page that waits between asking and setting is not refused', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { bps: 1e6, given: 1 / 1.2 });
  advise(1e6);
  await clock.pass(3000);
  const parameters = pc.sender.getParameters();
  await clock.pass(3000);
  parameters.encodings[0].maxBitrate = 0.5e6;
  await pc.sender.setParameters(parameters);
  await clock.pass(1000);
  assert.equal(cap(), 0.5e6);
});

test('the only layer that the page has on stays on', async () => {
  const { clock, pc, advise } = await call([
    { active: false, scaleResolutionDownBy: 4 }, { active: false, scaleResolutionDownBy: 2 },
    { active: true, scaleResolutionDownBy: 1 }]);
  advise(0.1e6);
  await clock.pass(2000);
  assert.deepEqual(pc.encodings.map(({ active }) => active), [false, false, true]);
  assert.ok(pc.encodings[2].maxBitrate <= 1e5);
});

test('an encoder that takes more than it is given is given less', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { bps: 0.97e6 });
  advise(1e6);
  await clock.pass(4000);
  const before = cap();
  pc.bps = 1.1e6;
  await clock.pass(12000);
  const less = cap();
  assert.ok(less < 0.8 * before && less > 0.5 * before, `${before} ${less}`);
  pc.bps = 0.9e6;
  await clock.pass(30000);
  assert.ok(cap() > less && cap() <= 1.1e6, `at most a tenth above the rate: ${cap()}`);
});

test('what was sent beyond the rate is made up for, and then no more', async () => {
  for (const change of [{}, { estimate: undefined }]) {
    const { clock, pc, advise, cap } = await call([{ active: true }], { ...change, bps: 0.97e6 });
    advise(1e6);
    await clock.pass(4000);
    const before = cap();
    pc.bps = 1.3e6;
    await clock.pass(2000);
    assert.equal(cap() < 0.9 * before, !('estimate' in change), `${before} ${cap()}`);
    pc.bps = 0.8e6;
    await clock.pass(3000);
    assert.ok(cap() > 0.95 * before, `${before} ${cap()}`);
  }
});

test('an encoder that takes less is given more, unless an estimate that is not told may hold it', async () => {
  const given = async (change) => {
    const { clock, advise, cap } = await call([{ active: true }], { ...change, bps: 0.7e6 });
    advise(1e6);
    await clock.pass(15000);
    return cap();
  };
  assert.ok(await given({}) > 1.02e6);
  const cap = await given({ estimate: undefined });
  assert.ok(cap > 0.93e6 && cap < 0.96e6, `${cap}`);
});

test('an encoder that is given less than it is allowed is allowed more, again and again', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { bps: 1e6, given: 1 / 1.2 });
  advise(1e6);
  await clock.pass(1);
  const own = cap();
  await clock.pass(5000);
  assert.ok(Math.abs(cap() / own - 1.2) < 0.03, `${own} ${cap()}`);
  pc.sets.length = 0;
  await clock.pass(5000);
  assert.ok(pc.sets.length >= 8 && pc.sets.length <= 12, `${pc.sets.length}`);
  pc.sets.slice(1).forEach(({ rates: [rate] }, i) => (
    assert.notEqual(rate, pc.sets[i].rates[0], 'what is the same is no setting')));
  advise(0.5e6);
  pc.bps = 0.5e6;
  await clock.pass(100);
  assert.ok(cap() < 0.6 * own, 'down as ever');
  await clock.pass(600);
  assert.ok(cap() > 1.1 * own / 2, `more at once: this browser is known ${cap()}`);
  Object.assign(pc, { given: 1, target: cap() });
  await clock.pass(1000);
  assert.ok(cap() < 1.03 * own / 2, `${cap()}`);
  pc.sets.length = 0;
  await clock.pass(2000);
  assert.equal(pc.sets.length, 0);
});

test('several videos are allowed more together, layers are not', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { bps: 1e6, given: 1 / 1.2 });
  const other = Object.assign(new Peer(clock), { bps: 0, given: 1 / 1.2 });
  const [first] = pc.getTransceivers();
  pc.getTransceivers = () => [first, { ...first, mid: '1', sender: other.sender }];
  const [one, two] = [pc, other].map((peer) => peer.getStats.bind(peer));
  pc.getStats = async () => {
    const more = (await two()).get('V');
    return (await one()).set('W', { ...more, id: 'W', mid: '1', ssrc: 17 });
  };
  advise(1e6);
  await clock.pass(5000);
  const both = () => cap() + other.encodings[0].maxBitrate;
  assert.ok(Math.abs(both() / 0.95e6 - 1.2) < 0.05, `${both()}`);
  pc.getStats = async () => {
    const report = await one();
    return report.set('W', { ...report.get('V'), id: 'W', ssrc: 17 });
  };
  await clock.pass(3000);
  assert.ok(both() < 1.1e6, `${both()}`);
});

test('without BUNDLE one that ends leaves the cap of the other', async () => {
  const { clock, pc, told, follower } = await call([{ active: true }], { bps: 0.97e6 });
  const other = Object.assign(new Peer(clock), { bps: 0.97e6, remote: '10.4.0.3' });
  const [first] = pc.getTransceivers();
  const second = { ...first, mid: '1', sender: other.sender };
  pc.getTransceivers = () => [first, second];
  pc.getSenders = () => [first.sender, second.sender];
  const [one, two] = [pc, other].map((peer) => peer.getStats.bind(peer));
  let both = true;
  pc.getStats = async () => {
    const [all, more] = [await one(), await two()];
    if (both) {
      more.forEach((stat, id) => all.set(`${id}2`, {
        ...stat, id: `${id}2`, ...Object.fromEntries(['transportId', 'selectedCandidatePairId', 'localCandidateId',
          'remoteCandidateId'].filter((key) => stat[key]).map((key) => [key, `${stat[key]}2`])),
        ...(stat.mid ? { mid: '1' } : {}),
      }));
    }
    return all;
  };
  await clock.pass(1500);
  const adds = told.filter(({ op }) => op === 'add');
  assert.equal(adds.length, 2);
  adds.forEach(({ flow }) => follower.receive({ event: 'advice', flow, rate_bps: 1e6, cause: 'erf' }));
  await clock.pass(2000);
  assert.ok(pc.encodings[0].maxBitrate < 1e6 && other.encodings[0].maxBitrate < 1e6);
  both = false;
  second.currentDirection = 'inactive';
  pc.sets.length = 0;
  await clock.pass(1500);
  assert.equal('maxBitrate' in other.encodings[0], false);
  assert.ok(pc.sets.every(({ rates: [rate] }) => rate), 'not for a moment');
});

test('so it is where neither is told, as long as the rate is what limits', async () => {
  const { clock, pc, advise, cap } = await call([{ active: true }], { estimate: undefined, bps: 0.97e6 });
  advise(1e6);
  await clock.pass(5000);
  assert.ok(Math.abs(cap() / 0.95e6 - 1.2) < 0.03, `${cap()}`);
  pc.sets.length = 0;
  await clock.pass(5000);
  assert.ok(pc.sets.length >= 8 && pc.sets.length <= 12, `${pc.sets.length}`);
  advise(4e6);
  await clock.pass(1500);
  assert.ok(cap() < 3.9e6, `its own limit is less: ${cap()}`);
  pc.sets.length = 0;
  await clock.pass(5000);
  assert.equal(pc.sets.length, 0, 'and it is given all of that');
  advise(1e6);
  pc.bps = 1.2e6; // this one keeps nothing from its encoder
  await clock.pass(15000);
  assert.ok(cap() < 0.95e6, `${cap()}`);
});

test('it is not allowed more than libwebrtc believes, nor where something else is the cause', async () => {
  const limited = await call([{ active: true }], { bps: 1e6, given: 1 / 1.2, estimate: 1.05e6 });
  limited.advise(1e6);
  await limited.clock.pass(5000);
  assert.ok(limited.cap() <= 1.05e6 && limited.cap() > 1.04e6, `${limited.cap()}`);
  const other = await call([{ active: true }], { bps: 1e6, given: 0.5 });
  other.advise(1e6);
  await other.clock.pass(5000);
  assert.ok(other.cap() < 1e6, `${other.cap()}`);
});

test('what cannot be followed is told, and is left alone', async () => {
  const clock = new Clock();
  const pc = Object.assign(new Peer(clock), { remote: '' });
  const told = [];
  const follower = new Follower(pc, (message) => told.push(message), () => clock.now);
  await clock.pass(3000);
  assert.match(told.find(({ op }) => op === 'cannot').text, /hides/);
  assert.equal(pc.sets.length, 0);
  follower.stop();
});
