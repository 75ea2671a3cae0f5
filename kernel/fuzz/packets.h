/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets for tests of the recogniser, written as words, one per header:
 *
 *	"eth vlan ip6 hop udp:5004:6000 rtp fill:100"
 *
 * and what the recogniser shall say about each. One table for the KUnit suite, the
 * fuzzer's first inputs and the comparison of its user-space build with the kernel.
 */
#ifndef PAQM_PACKETS_H
#define PAQM_PACKETS_H

#include "kernel/paqm_classify.h"

#define PAQM_PKT_MAX 512
#define PAQM_PKT_LAYERS 24
#define PAQM_PKT_TAGS 8 /* VLAN tags that the kernel follows */

/**
 * struct paqm_layer - a header
 * @name: word
 * @hex: its bytes, blanks allowed
 * @ether: Ethernet type that announces it, 0 if none does
 * @proto: IP protocol that announces it, 0 if none does (hop-by-hop options, too)
 * @next: where it announces the next header; 0: it does not
 * @next_len: in so many bytes: 1 an IP protocol, 2 an Ethernet type
 * @len_at: where its length field is; 0: it has none
 * @len_from: the length counts from this offset on
 */
struct paqm_layer {
	const char *name;
	const char *hex;
	paqm_u16 ether;
	paqm_u8 proto;
	paqm_u8 next, next_len;
	paqm_u8 len_at, len_from;
};

#define PAQM_NEXT_FIRST 255 /* the next header is announced in the first byte */
#define PAQM_IP6_ADDRS " 20010db8000000000000000000000001 20010db8000000000000000000000002"

static const struct paqm_layer paqm_layers[] = {
	{"eth", "020000000002 020000000001 0000", .next = 12, .next_len = 2},
	{"vlan", "000a 0000", .ether = 0x8100, .next = 2, .next_len = 2},
	{"qinq", "0014 0000", .ether = 0x88A8, .next = 2, .next_len = 2},
	{"mpls", "00010140", .ether = 0x8847},
	{"mplstop", "00020040", .ether = 0x8847}, /* more labels follow */
	{"mplslow", "00010140", .ether = 0},
	{"pppoe4", "11000001 0000 0021", .ether = 0x8864, .len_at = 4, .len_from = 6},
	{"pppoe6", "11000001 0000 0057", .ether = 0x8864, .len_at = 4, .len_from = 6},
	{"pppoelcp", "11000001 0000 c021", .ether = 0x8864, .len_at = 4, .len_from = 6},
	{"llc", "aaaa03000000 0000", .ether = 0x0100, .next = 6, .next_len = 2},
	{"stp", "424203 0000000000", .ether = 0x0026},
	{"arp", "00010800 06040001 020000000001 0a010001 000000000000 0a010002", .ether = 0x0806},
	{"lldp", "0207040200000000010403", .ether = 0x88CC},
	/* IPv4: don't fragment, TTL 64, 10.1.0.1 to 10.1.0.2 */
	{"ip4", "4500 0000 0000 4000 4000 0000 0a010001 0a010002", 0x0800, 4, 9, 1, 2, 0},
	{"ip4opt", "4600 0000 0000 4000 4000 0000 0a010001 0a010002 94040000", 0x0800, 4, 9, 1, 2,
	 0},
	{"ip4first", "4500 0000 0007 2000 4000 0000 0a010001 0a010002", 0x0800, 4, 9, 1, 2, 0},
	{"ip4next", "4500 0000 0008 2000 4000 0000 0a010001 0a010002", 0x0800, 4, 9, 1, 2, 0},
	{"ip4later", "4500 0000 0007 00b9 4000 0000 0a010001 0a010002", 0x0800, 4, 9, 1, 2, 0},
	{"ip4short", "4400 0000 0000 4000 4000 0000 0a010001 0a010002", 0x0800, 4, 9, 1, 2,
	 0}, /* a header length of 16 */
	{"ip4six", "6500 0000 0000 4000 4000 0000 0a010001 0a010002", 0x0800, 4, 9, 1, 2,
	 0}, /* says that it is version 6 */
	{"ip4ef", "45b8 0000 0000 4000 4000 0000 0a010001 0a010002", 0x0800, 4, 9, 1, 2, 0},
	{"ip4cs6", "45c0 0000 0000 4000 4000 0000 0a010001 0a010002", 0x0800, 4, 9, 1, 2, 0},
	{"ip6", "60000000 0000 00 40" PAQM_IP6_ADDRS, 0x86DD, 41, 6, 1, 4, 40},
	{"ip6ef", "6b800000 0000 00 40" PAQM_IP6_ADDRS, 0x86DD, 41, 6, 1, 4, 40},
	{"ip6four", "40000000 0000 00 40" PAQM_IP6_ADDRS, 0x86DD, 41, 6, 1, 4, 40},
	{"hop", "0000 0104 00000000", .next = PAQM_NEXT_FIRST, .next_len = 1},
	{"dst", "0000 0104 00000000", .proto = 60, .next = PAQM_NEXT_FIRST, .next_len = 1},
	{"rt", "0000 0400 00000000", .proto = 43, .next = PAQM_NEXT_FIRST, .next_len = 1},
	{"ah", "0002 0000 00000001 00000001 00000000", .proto = 51, .next = PAQM_NEXT_FIRST,
	 .next_len = 1},
	{"first6", "0000 0001 00000007", .proto = 44, .next = PAQM_NEXT_FIRST, .next_len = 1},
	{"later6", "0000 05c9 00000007", .proto = 44, .next = PAQM_NEXT_FIRST, .next_len = 1},
	{"atomic6", "0000 0000 00000007", .proto = 44, .next = PAQM_NEXT_FIRST, .next_len = 1},
	{"endless", "00ff 0104 00000000", .proto = 60, .next = PAQM_NEXT_FIRST,
	 .next_len = 1}, /* 2 kB of options announced */
	{"none6", "", .proto = 59},
	{"esp", "00000001 00000001", .proto = 50},
	{"gre", "0000 0000", .proto = 47, .next = 2, .next_len = 2},
	{"ospf", "0201002c 0a010001 00000000", .proto = 89},
	{"icmp", "0800 0000 00010001", .proto = 1},
	{"icmp6", "8000 0000 00010001", .proto = 58},
	{"nd", "8700 0000 00000000", .proto = 58}, /* neighbour solicitation */
	{"igmp", "1100 0000 00000000", .proto = 2},
	{"udp", "0000 0000 0000 0000", .proto = 17, .len_at = 4},
	{"udplite", "0000 0000 0000 0000", .proto = 136},
	{"tcp", "0000 0000 00000001 00000001 5010ffff 00000000", .proto = 6},
	{"sctp", "0000 0000 00000001 00000000", .proto = 132},
	{"dccp", "0000 0000 0400 0000 40000000 00000001", .proto = 33},
	{"vxlan", "08000000 00000100", .ether = 0},
	{"wireguard", "04000000 00000001 0000000000000000", .ether = 0},
	/* payloads */
	{"rtp", "8060 0001 00000010 12345678", .ether = 0},
	{"rtpvideo", "90e1 0001 00000010 12345678", .ether = 0},
	{"rtpcsrc", "8f60 0001 00000010 12345678", .ether = 0}, /* 15 sources, to be filled in */
	{"rtcp", "80c8 0006 12345678", .ether = 0},
	{"stun", "0001 0000 2112a442 000102030405060708090a0b", .ether = 0},
	{"zrtp", "1000 0001 5a525450", .ether = 0},
	{"dtls", "16fefd 0000 000000000001 0010", .ether = 0},
	{"turn112", "4000 0070", .ether = 0}, /* channel data of 112 bytes */
	{"probe", "0f 50415131 4a3ebc20 0000 00 11223344 00000001", .ether = 0},
	{"noprobe", "0f 50415132 4a3ebc20 0000 00 11223344 00000001", .ether = 0},
	{"quiclong", "c3 00000001 08 0102030405060708 00", .ether = 0},
	{"quicshort", "43 0102030405060708", .ether = 0},
	{"ff", "ffffffff ffffffff", .ether = 0},
	{"byte", "80", .ether = 0},
};

struct paqm_pkt {
	paqm_u32 len;
	paqm_u8 data[PAQM_PKT_MAX];
};

static inline paqm_u32 paqm_pkt_nibble(char c)
{
	return (paqm_u32)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Number behind a colon at *@at; *@at is put behind it. */
static inline paqm_u32 paqm_pkt_number(const char **at)
{
	paqm_u32 n = 0;

	if (**at == ':')
		(*at)++;
	while (**at >= '0' && **at <= '9')
		n = n * 10 + (paqm_u32)(*(*at)++ - '0');
	return n;
}

/* The layer whose word begins at *@at; *@at is put behind it. */
static inline const struct paqm_layer *paqm_pkt_layer(const char **at)
{
	paqm_u32 i, n;

	for (i = 0; i < sizeof(paqm_layers) / sizeof(paqm_layers[0]); i++) {
		const char *name = paqm_layers[i].name;

		for (n = 0; name[n] && name[n] == (*at)[n];)
			n++;
		if (!name[n] && ((*at)[n] == ' ' || (*at)[n] == ':' || !(*at)[n])) {
			*at += n;
			return &paqm_layers[i];
		}
	}
	return 0;
}

/**
 * paqm_pkt_make() - build a packet
 * @p: result
 * @words: its headers; besides those of the table "fill:N", N bytes of payload, and
 *	"trail:N", N bytes behind what the headers count (padding of the link)
 *
 * Return: 0, or -1 if the words are not understood or the packet gets too long.
 */
static inline int paqm_pkt_make(struct paqm_pkt *p, const char *words)
{
	const struct paqm_layer *layer[PAQM_PKT_LAYERS] = {0};
	paqm_u32 pos[PAQM_PKT_LAYERS], n = 0, i, end = 0, count, fill;
	const char *at = words;

	p->len = 0;
	while (*at) {
		const char *hex;

		if (*at == ' ') {
			at++;
			continue;
		}
		fill = at[0] == 'f' && at[1] == 'i' && at[2] == 'l' && at[3] == 'l'   ? 4
		       : at[0] == 't' && at[1] == 'r' && at[2] == 'a' && at[3] == 'i' ? 5
										      : 0;
		if (fill) {
			if (fill == 5)
				end = p->len;
			at += fill;
			count = paqm_pkt_number(&at);
			if (p->len + count > PAQM_PKT_MAX)
				return -1;
			for (i = 0; i < count; i++)
				p->data[p->len++] = 0x55;
			continue;
		}
		if (n == PAQM_PKT_LAYERS)
			return -1;
		pos[n] = p->len;
		layer[n] = paqm_pkt_layer(&at);
		if (!layer[n])
			return -1;
		for (hex = layer[n]->hex; *hex; hex++) {
			if (*hex == ' ')
				continue;
			if (p->len == PAQM_PKT_MAX)
				return -1;
			p->data[p->len++] =
				(paqm_u8)(paqm_pkt_nibble(hex[0]) << 4 | paqm_pkt_nibble(hex[1]));
			hex++;
		}
		if (*at == ':') {
			paqm_put16(p->data + pos[n], (paqm_u16)paqm_pkt_number(&at));
			paqm_put16(p->data + pos[n] + 2, (paqm_u16)paqm_pkt_number(&at));
		}
		n++;
	}
	if (!end)
		end = p->len;
	for (i = 0; i < n; i++) {
		const struct paqm_layer *l = layer[i], *next = i + 1 < n ? layer[i + 1] : 0;
		paqm_u8 *data = p->data + pos[i];

		if (l->next && next) {
			paqm_u32 where = l->next == PAQM_NEXT_FIRST ? 0 : l->next;

			if (l->next_len == 2)
				paqm_put16(data + where, next->ether);
			else
				data[where] = next->proto;
		}
		if (l->len_at)
			paqm_put16(data + l->len_at, (paqm_u16)(end - pos[i] - l->len_from));
	}
	return 0;
}

/*
 * Offset of the network header as the kernel's packet sockets and VLAN devices set it:
 * behind all tags, or behind the Ethernet header if the tags cannot be followed.
 */
static inline int paqm_pkt_network(const paqm_u8 *data, paqm_u32 len)
{
	paqm_u32 off = ETH_HLEN;
	int tags = 0;

	for (;;) {
		paqm_u32 type = paqm_get16(data + off - 2);

		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			return (int)off;
		off += VLAN_HLEN;
		if (off > len || ++tags == PAQM_PKT_TAGS)
			return ETH_HLEN;
	}
}

/**
 * struct paqm_pkt_case - a packet and what it is
 * @words: the packet
 * @kind: what it is evidence for
 * @note: what is rare about it
 * @quotable: a message may quote it
 */
struct paqm_pkt_case {
	const char *words;
	enum paqm_kind kind;
	paqm_u8 note;
	paqm_u8 quotable;
};

#define PAQM_NO_IP (PAQM_NOTE_NOT_IP)
#define PAQM_QUOTE 1

__attribute__((unused)) static const struct paqm_pkt_case paqm_pkt_cases[] = {
	/* what UDP carries */
	{"eth ip4 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 rtpvideo fill:100", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 rtp fill:16", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 rtp fill:15", PAQM_KIND_RTP, 0, 0},
	{"eth ip4 udp:5004:6000 rtp", PAQM_KIND_RTP, 0, 0},
	{"eth ip4 udp:5004:6000 rtpvideo", PAQM_KIND_UNKNOWN_UDP, 0, 0},
	{"eth ip4 udp:5004:6000 rtpcsrc fill:60", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 rtpcsrc fill:59", PAQM_KIND_UNKNOWN_UDP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 turn112 rtp fill:100", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 turn112 rtcp fill:104", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 turn112 rtp fill:90", PAQM_KIND_UNKNOWN_UDP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 turn112 ff fill:104", PAQM_KIND_UNKNOWN_UDP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 rtcp fill:20", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 stun", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 probe", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 noprobe", PAQM_KIND_UNKNOWN_UDP, 0, 0},
	{"eth ip4 udp:5004:6000 zrtp fill:50", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 dtls fill:50", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 quiclong fill:100", PAQM_KIND_UNKNOWN_UDP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 quicshort fill:100", PAQM_KIND_UNKNOWN_UDP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000 ff fill:100", PAQM_KIND_UNKNOWN_UDP, 0, PAQM_QUOTE},
	{"eth ip4 udp:5004:6000", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 byte", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 byte trail:17", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5004:6000 turn112 rtp fill:100 trail:9", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	/* ports that say it */
	{"eth ip4 udp:50000:443 rtp fill:100", PAQM_KIND_ELASTIC, 0, PAQM_QUOTE},
	{"eth ip4 udp:443:50000 stun fill:100", PAQM_KIND_ELASTIC, 0, PAQM_QUOTE},
	{"eth ip4 udp:50000:53 ff fill:30", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:53:50000 ff fill:300", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:68:67 ff fill:200", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:123:123 quicshort fill:40", PAQM_KIND_SMALL, 0, 0},
	{"eth ip4 udp:5353:5353 ff fill:60", PAQM_KIND_SMALL, 0, 0},
	{"eth ip6 udp:546:547 ff fill:60", PAQM_KIND_SMALL, 0, 0},
	/* other transports */
	{"eth ip4 tcp:50000:443 fill:100", PAQM_KIND_ELASTIC, 0, 0},
	{"eth ip4 tcp:50000:53", PAQM_KIND_ELASTIC, 0, 0},
	{"eth ip6 tcp:50000:443 fill:10", PAQM_KIND_ELASTIC, 0, 0},
	{"eth ip4 udplite:5004:6000 rtp fill:50", PAQM_KIND_ELASTIC, 0, 0},
	{"eth ip4 sctp:5000:5000 fill:50", PAQM_KIND_ELASTIC, 0, 0},
	{"eth ip4 dccp:5000:5000 fill:50", PAQM_KIND_ELASTIC, 0, 0},
	{"eth ip4 icmp fill:56", PAQM_KIND_SMALL, 0, 0},
	{"eth ip6 icmp6 fill:56", PAQM_KIND_SMALL, 0, 0},
	{"eth ip6 nd fill:16", PAQM_KIND_CONTROL, 0, 0},
	{"eth ip6 hop nd fill:16", PAQM_KIND_CONTROL, 0, 0},
	{"eth ip4 ospf", PAQM_KIND_CONTROL, 0, 0},
	{"eth ip4opt igmp", PAQM_KIND_CONTROL, 0, 0},
	{"eth ip4cs6 tcp:179:50000 fill:19", PAQM_KIND_CONTROL, PAQM_NOTE_DSCP, 0},
	{"eth ip4cs6 udp:49152:3784 ff fill:24", PAQM_KIND_CONTROL, PAQM_NOTE_DSCP, 0},
	/* IPv4 */
	{"eth ip4ef udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	{"eth ip4opt udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, 0},
	{"eth ip4first udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, 0},
	{"eth ip4later fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_FRAGMENT, 0},
	{"eth ip4short udp:5004:6000 rtp fill:50", PAQM_KIND_OTHER, PAQM_NO_IP, 0},
	{"eth ip4six udp:5004:6000 rtp fill:50", PAQM_KIND_OTHER, PAQM_NO_IP, 0},
	{"eth ip4 udp:5004:6000 rtp fill:100 trail:8", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	/* IPv6 */
	{"eth ip6 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	{"eth ip6ef udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, PAQM_QUOTE},
	{"eth ip6four udp:5004:6000 rtp fill:100", PAQM_KIND_OTHER, PAQM_NO_IP, 0},
	{"eth ip6 hop udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, 0},
	{"eth ip6 hop dst rt udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, 0},
	{"eth ip6 ah udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, 0},
	{"eth ip6 dst hop dst hop dst udp:5004:6000 rtp fill:9", PAQM_KIND_RTP, 0, 0},
	{"eth ip6 first6 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, 0},
	{"eth ip6 atomic6 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, 0, 0},
	{"eth ip6 later6 fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_FRAGMENT, 0},
	{"eth ip6 hop later6 fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_FRAGMENT, 0},
	{"eth ip6 endless fill:100", PAQM_KIND_ELASTIC, 0, 0},
	{"eth ip6 dst dst dst dst dst dst dst dst udp:5004:6000 rtp fill:9", PAQM_KIND_RTP, 0, 0},
	{"eth ip6 dst dst dst dst dst dst dst dst dst udp:5004:6000 rtp fill:9", PAQM_KIND_ELASTIC,
	 0, 0}, /* more than are looked through */
	{"eth ip6 none6 fill:20", PAQM_KIND_ELASTIC, 0, 0},
	{"eth ip6 hop udp:443:5000 rtp fill:100", PAQM_KIND_ELASTIC, 0, 0},
	/* tunnels */
	{"eth ip4 esp fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TUNNEL, 0},
	{"eth ip6 esp fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TUNNEL, 0},
	{"eth ip4 ah udp:5004:6000 rtp fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TUNNEL, 0},
	{"eth ip4 gre ip4 udp:5004:6000 rtp fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TUNNEL, 0},
	{"eth ip4 ip4 udp:5004:6000 rtp fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TUNNEL, 0},
	{"eth ip4 ip6 udp:5004:6000 rtp fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TUNNEL, 0},
	{"eth ip6 ip4 udp:5004:6000 rtp fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TUNNEL, 0},
	{"eth ip4 udp:40000:4789 vxlan eth ip4 udp:5004:6000 rtp fill:100", PAQM_KIND_ELASTIC,
	 PAQM_NOTE_TUNNEL, PAQM_QUOTE},
	{"eth ip4 udp:51820:51820 wireguard fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TUNNEL,
	 PAQM_QUOTE},
	{"eth ip6 udp:40000:40001 wireguard fill:100", PAQM_KIND_UNKNOWN_UDP, PAQM_NOTE_TUNNEL,
	 PAQM_QUOTE},
	/* within the link's own headers */
	{"eth vlan ip4 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, PAQM_NOTE_TAGGED, PAQM_QUOTE},
	{"eth qinq vlan ip6 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, PAQM_NOTE_TAGGED,
	 PAQM_QUOTE},
	{"eth vlan arp", PAQM_KIND_CONTROL, PAQM_NOTE_TAGGED | PAQM_NO_IP, 0},
	{"eth pppoe4 ip4 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, PAQM_NOTE_TAGGED, 0},
	{"eth pppoe6 ip6 tcp:5004:6000 fill:100", PAQM_KIND_ELASTIC, PAQM_NOTE_TAGGED, 0},
	{"eth vlan pppoe6 ip6 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, PAQM_NOTE_TAGGED, 0},
	{"eth pppoelcp fill:10", PAQM_KIND_OTHER, PAQM_NOTE_TAGGED | PAQM_NO_IP, 0},
	{"eth mpls ip4 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, PAQM_NOTE_TAGGED, 0},
	{"eth mplstop mplslow ip6 udp:5004:6000 rtp fill:100", PAQM_KIND_RTP, PAQM_NOTE_TAGGED, 0},
	{"eth mpls ff fill:50", PAQM_KIND_OTHER, PAQM_NOTE_TAGGED | PAQM_NO_IP, 0},
	{"eth arp trail:18", PAQM_KIND_CONTROL, PAQM_NO_IP, 0},
	{"eth lldp", PAQM_KIND_CONTROL, PAQM_NO_IP, 0},
	{"eth stp trail:20", PAQM_KIND_OTHER, PAQM_NO_IP, 0},
	{"eth llc ip4 udp:5004:6000 rtp fill:50", PAQM_KIND_OTHER, PAQM_NO_IP, 0},
};

#endif /* PAQM_PACKETS_H */
