// SPDX-License-Identifier: GPL-2.0
// A transport with the members that mediasoup 3 documents of a WebRtcTransport and the connector uses:
// mediasoup's own worker is a program that its package fetches from elsewhere. What is set is printed.
// Usage: mediasoup.js PAQM-FOLLOW SOCKET LOCAL-PORT REMOTE-ADDRESS REMOTE-PORT
'use strict';

const { EventEmitter } = require('node:events');
const { Follower } = require('../mediasoup');

const [command, socket, localPort, remoteIp, remotePort] = process.argv.slice(2);
const transport = Object.assign(new EventEmitter(), {
  observer: new EventEmitter(),
  iceSelectedTuple: undefined,
  setMaxOutgoingBitrate: async (bps) => console.log(JSON.stringify({ set: bps })),
});
const onError = (err) => console.log(JSON.stringify({ error: err.message }));
const follower = new Follower({ command, socket, onError });
follower.follow(transport, { ceiling: 2_000_000 });
transport.iceSelectedTuple = {
  localAddress: '0.0.0.0', localPort: Number(localPort), remoteIp, remotePort: Number(remotePort),
  protocol: 'udp',
};
transport.emit('iceselectedtuplechange', transport.iceSelectedTuple);
process.stdin.on('data', () => transport.observer.emit('close'));
process.stdin.on('end', () => {
  follower.close();
  process.exit(0);
});
