/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an H.264 access unit costs on the wire when rtph264pay (packetization
 * mode 1) cuts it into RTP packets over UDP. The encoder plans in these bytes,
 * because an allowance counts them.
 */
#ifndef PAQM_WIRE_H
#define PAQM_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#define WIRE_PACKET 1200      /* largest IP packet sent, */
#define WIRE_LONGEST 1500     /* and that anybody may ask for */
#define WIRE_PACKET_SHORT 800 /* while routers set the rate, */
#define WIRE_SHORT_RATE 500e3 /* and it is this at least, bit/s */
#define WIRE_RTP 12
#define WIRE_EXTENSION 8 /* RTP header extension: transport-wide sequence number */
#define WIRE_SRTP 10	 /* tag of HMAC-SHA1-80 behind each packet, RFC 3711 */
#define WIRE_FRAGMENT 2	 /* FU indicator and FU header, RFC 6184 */

/* Payload types, the same at both ends: of H.264, and of what repairs it. */
#define VIDEO_PT 96
#define RTX_PT 106
#define FEC_PT 107
#define RTP_JUMP_MAX (10 * 90000) /* of time stamps: beyond is another sender, or begun anew */

/* Header extension of transport-wide sequence numbers, and its id in our streams. */
#define TWCC_URI "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
#define TWCC_ID 1

/* In all below @packet is the longest IP packet, @headers what is around its payload. */

/*
 * The longest packet of a stream of @rate bit/s that @follows what routers say. Even streams
 * that share a link wait for each other a packet at a time, so short ones wait less. But queues
 * that are limited in packets, or mark from a packet's time on, want long ones, and a picture of
 * two packets is not spread better by three (docs/design-notes.md, "Short packets").
 */
static inline unsigned int wire_packet(bool follows, double rate)
{
	return follows && rate >= WIRE_SHORT_RATE ? WIRE_PACKET_SHORT : WIRE_PACKET;
}

/*
 * A picture after one coarser than this is coarse itself. There it shows what headers take, and
 * worst where scenes cut: its packets are long again.
 */
#define WIRE_COARSE_QP 28

static inline unsigned int wire_packet_of(unsigned int packet, unsigned int coarse, double last_qp)
{
	return last_qp > WIRE_COARSE_QP && coarse > packet ? coarse : packet;
}

#define WIRE_PARTS 3	     /* of a usual picture that is sent at once, so that a receiver */
#define WIRE_PACKET_PART 400 /* can measure by packets which follow each other, but no shorter */

static inline unsigned int wire_burst_packet(double rate, double fps)
{
	double part = rate / 8 / fps / WIRE_PARTS;

	return part < WIRE_PACKET_PART ? WIRE_PACKET_PART
	       : part > WIRE_PACKET    ? WIRE_PACKET
				       : (unsigned int)part;
}

/* Of what comes to a port for both, by its second byte: is it RTCP? RFC 5761 section 4. */
static inline bool wire_is_rtcp(unsigned char kind)
{
	return kind >= 192 && kind <= 223;
}

/* Bytes of IP and UDP headers. */
static inline unsigned int wire_ip_udp(bool ipv6)
{
	return (ipv6 ? 40 : 20) + 8;
}

#define WIRE_CHANNEL 4 /* that TURN adds, RFC 8656 section 12.4 */

/* Bytes around the payload of a packet of video. */
static inline unsigned int wire_headers(bool ipv6, bool srtp)
{
	return wire_ip_udp(ipv6) + WIRE_RTP + WIRE_EXTENSION + (srtp ? WIRE_SRTP : 0);
}

/* Those of them that are not RTP's: IP, UDP, SRTP. */
static inline unsigned int wire_below(unsigned int headers)
{
	return headers - WIRE_RTP - WIRE_EXTENSION;
}

/* What payloaders call mtu: they count the RTP header, but not the extension. */
static inline unsigned int wire_rtp_mtu(unsigned int packet, unsigned int headers)
{
	return packet - headers + WIRE_RTP;
}

/* Share of a full packet that is video. */
static inline double wire_share(unsigned int packet, unsigned int headers)
{
	return (double)(packet - headers - WIRE_FRAGMENT) / packet;
}

/* Packets for one NAL unit of so many bytes, start code not counted. */
static inline unsigned int wire_packets(size_t nal, unsigned int packet, unsigned int headers)
{
	size_t most = packet - headers, part = most - WIRE_FRAGMENT;

	return nal <= most ? 1 : (unsigned int)((nal - 1 + part - 1) / part);
}

static inline size_t wire_bytes(size_t nal, unsigned int packet, unsigned int headers)
{
	unsigned int packets = wire_packets(nal, packet, headers);

	return packets == 1 ? nal + headers : nal - 1 + packets * (headers + WIRE_FRAGMENT);
}

/* Largest NAL unit that costs no more than so many wire bytes. */
static inline size_t wire_largest_nal(size_t wire, unsigned int packet, unsigned int headers)
{
	size_t around = headers + WIRE_FRAGMENT, rest;

	if (wire <= headers)
		return 0;
	if (wire <= packet)
		return wire - headers;
	rest = wire % packet;
	rest = rest > around ? rest - around : 0;
	return wire / packet * (packet - around) + rest + 1;
}

#endif /* PAQM_WIRE_H */
