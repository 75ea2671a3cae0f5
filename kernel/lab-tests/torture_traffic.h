/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Traffic of the torture test; see torture_traffic.c.
 */
#ifndef TORTURE_TRAFFIC_H
#define TORTURE_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#define RTP_FLOWS 64
#define TCP_SOCKETS 4
#define PEER4 "10.0.0.2"
#define PEER6 "fd00::2"
#define SINK_PORT 8000

/* Its sockets, and what went through them. */
struct traffic {
	int packet;	    /* AF_PACKET */
	int packet_offload; /* the same with a virtio_net header in front */
	int udp4, udp6, icmp4, icmp6;
	int tcp[TCP_SOCKETS];
	uint16_t rtp_seq[RTP_FLOWS];
	uint64_t frames, refused, datagrams, stream_bytes;
};

extern struct traffic tr;

/* A frame of IPv4 up to the ports between two addresses; its length. RTP in it; what sends it. */
int frame_plain(uint8_t *frame, int size, uint8_t proto, const uint32_t *addresses, uint16_t sport,
		uint16_t dport);
void frame_rtp(uint8_t *frame, uint16_t seq, uint32_t ssrc);
bool frame_send(uint32_t ifindex, const uint8_t *frame, int size);
void send_frames(uint32_t ifindex, uint32_t mtu, int count);
void send_call(uint32_t ifindex, int rounds, void (*pause)(uint64_t us));
void send_datagrams(int count);
void send_streams(void);
void traffic_quiet(void);
int traffic_socket(int family, int type, int protocol);
void traffic_open(void);

#endif /* TORTURE_TRAFFIC_H */
