// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic of the torture test: crafted and broken frames through packet sockets
 * (these go through the qdisc and need no address or neighbour), and real
 * sockets to a peer in another namespace: UDP with and without segmentation
 * offload, datagrams that are fragmented, TCP, ICMP, over IPv4 and IPv6.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "../../core/paqm_msg.h"
#include "torture_nl.h"
#include "torture_traffic.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#define MAX_FRAME 65536

struct traffic tr;

/* First bytes of a UDP payload: what the recogniser looks at. */
static int payload_head(uint8_t *at, uint32_t kind, uint32_t flow)
{
	switch (kind) {
	case 0: /* RTP in sequence */
		at[0] = 0x80 | (chance(10) ? rnd(16) : 0);
		at[1] = 96 + flow % 8;
		paqm_put16(at + 2, tr.rtp_seq[flow]++);
		paqm_put32(at + 4, tr.rtp_seq[flow] * 3000);
		paqm_put32(at + 8, 0x1000 + flow);
		return 12;
	case 1: /* RTCP */
		at[0] = 0x80;
		at[1] = 200 + rnd(8);
		return 2;
	case 2: /* STUN */
		paqm_put16(at, 1);
		paqm_put32(at + 4, 0x2112a442);
		return 8;
	case 3: /* QUIC */
		at[0] = 0x40 | rnd(64);
		return 1;
	case 4: /* DTLS */
		at[0] = 20 + rnd(44);
		return 1;
	default:
		for (int i = 0; i < 16; i++)
			at[i] = rnd(256);
		return 16;
	}
}

static int transport(uint8_t *at, uint8_t proto, int room, uint32_t kind, uint32_t flow)
{
	static const uint16_t ports[] = {5004, 5006, 443, 53, 123, 3478, 4500, 4789, 51820, 8000};

	if (room < 20)
		return 0;
	paqm_put16(at, 20000 + flow);
	paqm_put16(at + 2, chance(70) ? 5004 + (flow & ~1U) : ports[rnd(ARRAY_SIZE(ports))]);
	if (proto == IPPROTO_UDP) {
		paqm_put16(at + 4, chance(95) ? (uint32_t)room : rnd(65536));
		if (room >= 32)
			payload_head(at + 8, kind, flow);
		return 8;
	}
	if (proto == IPPROTO_TCP) {
		paqm_put32(at + 4, rnd64());
		paqm_put32(at + 8, rnd64());
		at[12] = (chance(95) ? 5 : rnd(16)) << 4;
		at[13] = chance(80) ? 0x10 : rnd(256);
		paqm_put16(at + 14, 0xffff);
		return 20;
	}
	return 0;
}

/* IPv4 or IPv6 packet of @room bytes; options, extensions, fragments now and then. */
static void network(uint8_t *at, int room, bool v6, uint8_t proto, uint32_t kind, uint32_t flow)
{
	int head = v6 ? 40 : 20;

	if (room < head)
		return;
	if (v6) {
		at[0] = 0x60;
		at[1] = rnd(4) << 4; /* ECN */
		paqm_put16(at + 4, room - 40);
		at[6] = proto;
		at[7] = 64;
		at[8] = at[24] = 0xfd;
		at[23] = chance(60) ? 2 : flow; /* the peer: it can be told */
		at[39] = 9;
		if (chance(10) && room > 80) { /* a chain of extension headers */
			static const uint8_t chain[] = {0, 43, 44, 60, 51};
			int n = 1 + rnd(3), next = 6;

			for (int i = 0; i < n; i++) {
				at[next] = chain[rnd(ARRAY_SIZE(chain))];
				next = head;
				at[head] = proto;
				at[head + 1] = chance(90) ? 0 : rnd(256);
				head += 8;
			}
		}
	} else {
		uint16_t fragment = chance(6) ? rnd(65536) : 0x4000;
		int words = chance(6) && room > 64 ? rnd(11) : 0;

		at[0] = 0x45 + words;
		at[1] = rnd(256); /* DSCP and ECN */
		paqm_put16(at + 2, chance(97) ? (uint32_t)room : rnd(65536));
		paqm_put16(at + 4, flow);
		paqm_put16(at + 6, fragment);
		at[8] = 64;
		at[9] = proto;
		paqm_put32(at + 12, chance(60) ? 0x0a000002 : 0x0a000001 + rnd(1000));
		paqm_put32(at + 16, chance(95) ? 0x0a000009 : rnd64());
		head += 4 * words;
		paqm_put16(at + 10, paqm_checksum(at, head));
	}
	transport(at + head, proto, room - head, kind, flow);
}

/* One frame of @size bytes; broken ones among them. */
static int craft(uint8_t *frame, int size)
{
	static const uint8_t protos[] = {17, 17, 17, 17, 17, 17, 6,   6,
					 6,  1,	 47, 50, 89, 58, 132, 4};
	uint32_t flow = rnd(RTP_FLOWS), kind = chance(60) ? 0 : rnd(8);
	bool v6 = chance(30);
	int at = 14;

	memset(frame, 0x55, size);
	if (chance(4)) { /* nothing but noise */
		for (int i = 0; i < size && i < 256; i++)
			frame[i] = rnd(256);
		return size;
	}
	memcpy(frame, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01", 12);
	for (int tags = chance(10) ? 1 + rnd(3) : 0; tags > 0 && at < 40; tags--, at += 4) {
		paqm_put16(frame + at - 2, chance(70) ? ETH_P_8021Q : ETH_P_8021AD);
		paqm_put16(frame + at, rnd(65536));
	}
	if (chance(3)) { /* MPLS or PPPoE in front */
		bool mpls = chance(50);

		paqm_put16(frame + at - 2, mpls ? ETH_P_MPLS_UC : ETH_P_PPP_SES);
		paqm_put32(frame + at, mpls ? 0x00001140 : 0x11000001);
		at += 4;
		if (!mpls) {
			paqm_put32(frame + at, 0x00400021);
			at += 4;
		}
	} else if (chance(3)) {
		paqm_put16(frame + at - 2, rnd(65536));
	} else {
		paqm_put16(frame + at - 2, v6 ? ETH_P_IPV6 : ETH_P_IP);
	}
	if (size > at)
		network(frame + at, size - at, v6, protos[rnd(ARRAY_SIZE(protos))], kind, flow);
	return chance(5) ? 14 + (int)rnd(size - 13) : size; /* cut anywhere */
}

static int frame_size(uint32_t mtu)
{
	switch (rnd(4)) {
	case 0:
		return 60 + rnd(200);
	case 1:
		return 14 + (mtu < 60 ? 60 : mtu > 9000 ? 9000 : mtu);
	default:
		return 14 + rnd(1500);
	}
}

/* A frame whose segmentation was left to the device, or is claimed to have been. */
static int craft_offload(uint8_t *data)
{
	struct virtio_net_hdr *head = (struct virtio_net_hdr *)data;
	uint8_t *frame = data + sizeof(*head);
	bool udp = chance(50), v6 = chance(30);
	int ip = v6 ? 40 : 20, start = 14 + ip, size = start + 40 + rnd(chance(80) ? 20000 : 65000);
	uint32_t flow = rnd(RTP_FLOWS);

	if (size > 65000)
		size = 65000;
	memset(data, 0, sizeof(*head));
	memset(frame, 0x55, size);
	memcpy(frame, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01", 12);
	paqm_put16(frame + 12, v6 ? ETH_P_IPV6 : ETH_P_IP);
	network(frame + 14, size - 14, v6, udp ? 17 : 6, 0, flow);
	head->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	head->gso_type = udp ? 5 : v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
	head->hdr_len = start + (udp ? 8 : 20);
	head->gso_size = 1 + rnd(chance(90) ? 1460 : 65535);
	if (chance(80) && head->gso_size < 500)
		head->gso_size += 500;
	head->csum_start = start;
	head->csum_offset = udp ? 6 : 16;
	if (chance(5))
		((uint8_t *)head)[rnd(sizeof(*head))] = rnd(256);
	return sizeof(*head) + size;
}

void send_frames(uint32_t ifindex, uint32_t mtu, int count)
{
	static uint8_t data[MAX_FRAME + 64];
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = ifindex};
	uint32_t priority = chance(20) ? between(1, 12) << 16 | rnd(5) : rnd(8);
	int len, fd;

	setsockopt(tr.packet, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
	while (count-- > 0) {
		if (chance(10)) {
			fd = tr.packet_offload;
			len = craft_offload(data);
		} else {
			fd = tr.packet;
			len = craft(data, frame_size(mtu));
		}
		memcpy(&to.sll_protocol,
		       data + 12 + (fd == tr.packet ? 0 : sizeof(struct virtio_net_hdr)), 2);
		tr.frames++;
		if (sendto(fd, data, len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) < 0)
			tr.refused++;
	}
}

int frame_plain(uint8_t *frame, int size, uint8_t proto, const uint32_t *addresses, uint16_t sport,
		uint16_t dport)
{
	memset(frame, 0x55, size);
	memcpy(frame, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0", 14);
	memset(frame + 14, 0, 20);
	frame[14] = 0x45;
	paqm_put16(frame + 16, size - 14);
	paqm_put16(frame + 20, 0x4000);
	frame[22] = 64;
	frame[23] = proto;
	paqm_put32(frame + 26, addresses[0]);
	paqm_put32(frame + 30, addresses[1]);
	paqm_put16(frame + 24, paqm_checksum(frame + 14, 20));
	paqm_put16(frame + 34, sport);
	paqm_put16(frame + 36, dport);
	if (proto == IPPROTO_UDP) {
		paqm_put16(frame + 38, size - 34);
		paqm_put16(frame + 40, 0);
	}
	return size;
}

void frame_rtp(uint8_t *frame, uint16_t seq, uint32_t ssrc)
{
	frame[42] = 0x80;
	frame[43] = 96;
	paqm_put16(frame + 44, seq);
	paqm_put32(frame + 46, seq * 3000);
	paqm_put32(frame + 50, ssrc);
}

bool frame_send(uint32_t ifindex, const uint8_t *frame, int size)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_protocol = htons(ETH_P_IP)};

	return sendto(tr.packet, frame, size, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) >=
	       0;
}

/* A call: a few media flows of the peer's, regular enough to be recognised and told. */
void send_call(uint32_t ifindex, int rounds, void (*pause)(uint64_t us))
{
	static const uint32_t addresses[] = {0x0a000002, 0x0a000009};
	static uint16_t seq[16][4];
	uint8_t frame[1400];

	while (rounds-- > 0) {
		for (int flow = 0; flow < 4; flow++) {
			int size = frame_plain(frame, 300 + rnd(1000), IPPROTO_UDP, addresses,
					       40000 + flow, 5004 + 2 * flow);

			frame_rtp(frame, ++seq[ifindex % 16][flow], flow);
			tr.frames++;
			tr.refused += !frame_send(ifindex, frame, size);
		}
		pause(between(5000, 40000));
	}
}

/* The address of a port of the peer, over IPv4 or IPv6. */
static const struct sockaddr *peer(bool v6, uint16_t port, socklen_t *size)
{
	static union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to;

	memset(&to, 0, sizeof(to));
	if (v6) {
		to.v6.sin6_family = AF_INET6;
		to.v6.sin6_port = htons(port);
		inet_pton(AF_INET6, PEER6, &to.v6.sin6_addr);
	} else {
		to.v4.sin_family = AF_INET;
		to.v4.sin_port = htons(port);
		inet_pton(AF_INET, PEER4, &to.v4.sin_addr);
	}
	*size = v6 ? sizeof(to.v6) : sizeof(to.v4);
	return &to.any;
}

/* Datagrams from real sockets: whole, fragmented, or one buffer cut by UDP_SEGMENT. */
void send_datagrams(int count)
{
	static uint8_t data[65000];
	uint16_t port4 = 5004 + 2 * rnd(RTP_FLOWS), port6 = 5004 + 2 * rnd(RTP_FLOWS);
	bool v6 = chance(40);
	int fd = v6 ? tr.udp6 : tr.udp4, segment = chance(30) ? 100 + rnd(1300) : 0;
	socklen_t size;
	const struct sockaddr *to = peer(v6, v6 ? port6 : port4, &size);

	setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	while (count-- > 0) {
		int len = segment ? 100 + rnd(20000) : chance(90) ? 12 + rnd(1400) : rnd(30000);

		payload_head(data, chance(80) ? 0 : rnd(8), rnd(RTP_FLOWS));
		tr.datagrams += sendto(fd, data, len, MSG_DONTWAIT, to, size) >= 0;
	}
	if (chance(20)) {
		data[0] = v6 ? 128 : 8;
		memset(data + 1, 0, 7);
		if (!v6)
			paqm_put16(data + 2, paqm_checksum(data, 8));
		to = peer(v6, 0, &size);
		sendto(v6 ? tr.icmp6 : tr.icmp4, data, 8, MSG_DONTWAIT, to, size);
	}
}

static void tcp_close(int i)
{
	struct linger hard = {.l_onoff = 1};

	if (tr.tcp[i] < 0)
		return;
	setsockopt(tr.tcp[i], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(tr.tcp[i]);
	tr.tcp[i] = -1;
}

/*
 * Keep some streams to the peer's sink busy, each with one packet under way at a time,
 * though a large one if the path takes offload packets. One that TCP could not send at
 * once, as its queue was full or the MTU became smaller, ends the stream: beside one
 * that is held for lost but still waits in a queue, the kernel would try it again and
 * again until the queue moves, in no virtual time.
 */
void send_streams(void)
{
	static const char zeros[65536];
	int i = rnd(TCP_SOCKETS), family = chance(60) ? AF_INET : AF_INET6;
	struct tcp_info info = {};
	socklen_t size = sizeof(info);
	const struct sockaddr *to;
	int under_way = 0, unsent = 0;
	ssize_t wrote;
	size_t room;

	if (chance(3))
		tcp_close(i);
	if (tr.tcp[i] < 0) {
		tr.tcp[i] = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (tr.tcp[i] < 0)
			return;
		to = peer(family == AF_INET6, SINK_PORT, &size);
		(void)!connect(tr.tcp[i], to, size);
		return;
	}
	if (ioctl(tr.tcp[i], SIOCOUTQ, &under_way) || under_way ||
	    getsockopt(tr.tcp[i], IPPROTO_TCP, TCP_INFO, &info, &size))
		return;
	room = (size_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss;
	if (room > sizeof(zeros) - 1000)
		room = sizeof(zeros) - 1000;
	wrote = send(tr.tcp[i], zeros, 1 + rnd(room), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (wrote > 0)
		tr.stream_bytes += wrote;
	if (wrote > 0 ? ioctl(tr.tcp[i], SIOCOUTQNSD, &unsent) || unsent
		      : errno != EAGAIN && errno != ENOTCONN)
		tcp_close(i);
}

void traffic_quiet(void)
{
	for (int i = 0; i < TCP_SOCKETS; i++)
		tcp_close(i);
}

int traffic_socket(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol), size = 1 << 26;

	if (fd < 0)
		die("socket of family %d type %d: %s", family, type, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	return fd;
}

void traffic_open(void)
{
	int on = 1;

	write_file("/proc/sys/net/ipv4/tcp_min_tso_segs",
		   "64"); /* one packet, see send_streams() */
	tr.packet = traffic_socket(AF_PACKET, SOCK_RAW, 0);
	tr.packet_offload = traffic_socket(AF_PACKET, SOCK_RAW, 0);
	if (setsockopt(tr.packet_offload, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)))
		die("PACKET_VNET_HDR: %s", strerror(errno));
	tr.udp4 = traffic_socket(AF_INET, SOCK_DGRAM, 0);
	tr.udp6 = traffic_socket(AF_INET6, SOCK_DGRAM, 0);
	tr.icmp4 = traffic_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	tr.icmp6 = traffic_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
	for (int i = 0; i < TCP_SOCKETS; i++)
		tr.tcp[i] = -1;
}
