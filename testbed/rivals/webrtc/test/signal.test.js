// SPDX-License-Identifier: GPL-2.0
//
// What the call set-up does to session descriptions, and the command line's parsers.

'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const cli = require('../lib/cli');
const { keepAddress, limitRate, offerId } = require('../lib/signal');

const SDP = [
  'v=0',
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97',
  'c=IN IP4 0.0.0.0',
  'a=candidate:1 1 udp 2122260223 10.0.1.2 40000 typ host generation 0',
  'a=candidate:2 1 tcp 1518280447 10.0.1.2 9 typ host tcptype active generation 0',
  'a=candidate:3 1 udp 2122260222 192.0.2.7 40001 typ host generation 0',
  'a=ice-ufrag:Ab+1',
  'a=rtpmap:96 VP8/90000',
  'a=rtpmap:97 rtx/90000',
  'a=fmtp:97 apt=96',
  '',
].join('\r\n');

test('only UDP candidates on the address asked for are left', () => {
  const kept = keepAddress(SDP, '10.0.1.2').split('\r\n');
  assert.deepEqual(kept.filter((line) => line.startsWith('a=candidate')),
    ['a=candidate:1 1 udp 2122260223 10.0.1.2 40000 typ host generation 0']);
  assert.equal(kept.length, SDP.split('\r\n').length - 2);
});

test('no candidate on the address is an error that lists what there is', () => {
  assert.throws(() => keepAddress(SDP, '10.0.1.3'), /10\.0\.1\.3.*192\.0\.2\.7\/udp/);
});

test('the maximum rate is set for the session and for the encoder', () => {
  const lines = limitRate(SDP, 3e6).split('\r\n');
  assert.equal(lines[lines.indexOf('c=IN IP4 0.0.0.0') + 1], 'b=AS:3000');
  assert.equal(lines[lines.indexOf('a=rtpmap:96 VP8/90000') + 1],
    'a=fmtp:96 x-google-min-bitrate=30;x-google-start-bitrate=300;x-google-max-bitrate=3000');
});

test('the start rate never exceeds the maximum', () => {
  assert.match(limitRate(SDP, 2e5), /start-bitrate=200;x-google-max-bitrate=200\r\n/);
});

test('an answer without VP8 is refused', () => {
  assert.throws(() => limitRate(SDP.replace('VP8', 'H264'), 3e6), /no VP8/);
});

test('an offer is known by its ICE user fragment', () => {
  assert.equal(offerId(SDP), 'Ab+1');
});

test('rates', () => {
  assert.equal(cli.parseRate('3mbit'), 3e6);
  assert.equal(cli.parseRate('1.5Mbit'), 15e5);
  assert.equal(cli.parseRate('800kbit'), 8e5);
  assert.equal(cli.parseRate('3000000'), 3e6);
  for (const text of ['', 'fast', '-1', '0', '3mb', '1e6']) {
    assert.throws(() => cli.parseRate(text), /is not a rate/);
  }
});

test('numbers and addresses', () => {
  assert.equal(cli.parsePositive('0.5'), 0.5);
  assert.throws(() => cli.parsePositive('0'));
  assert.equal(cli.parseCount('0'), 0);
  assert.throws(() => cli.parseCount('1.5'));
  assert.equal(cli.parseLocalAddress('127.0.0.1'), '127.0.0.1');
  assert.throws(() => cli.parseLocalAddress('192.0.2.77'), /not an address of this host/);
  assert.throws(() => cli.parseLocalAddress('localhost'), /not an IP address/);
});
