// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: the recogniser of the kernel module. Two bytes say how the packet is
 * laid out and how the qdisc is configured, the rest is a frame.
 *
 * Whatever comes in: nothing is read beyond the packet (sanitizers), the answer is one
 * of the possible ones, does not depend on how much of the packet is linear nor on what
 * lies behind its end, and every packet that may be quoted is one that the rules allow.
 */
#include <stdio.h>

#include "kernel/fuzz/frame.h"
#include "kernel/fuzz/packets.h"

#define LAYOUT_PROTOCOL 1 /* classify protocol */
#define LAYOUT_ODD 2	  /* the network header is where the Ethernet header ends */
#define LAYOUT_DSCP 4	  /* some DSCP have their class */
#define LAYOUT_GSO 8	  /* several packets in one */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz_classify: %s\n", what);
	abort();
}

static int same(const struct paqm_packet *a, const struct paqm_packet *b)
{
	return a->hash == b->hash && a->kind == b->kind && a->note == b->note &&
	       a->family == b->family && a->quotable == b->quotable && a->ports == b->ports &&
	       (!a->family || a->proto == b->proto) &&
	       (a->kind != PAQM_KIND_RTP || (a->seq == b->seq && a->ssrc == b->ssrc));
}

/*
 * The rules for a quote, read from the bytes anew: UDP straight behind an IP header
 * without options, no fragment, and by its header long enough to prove that it was seen.
 * Whether all of it is there the transmitter finds out.
 */
static int may_quote(const u8 *ip, size_t len)
{
	if (len >= 20 + 4 && ip[0] == 0x45)
		return ip[9] == 17 && !((ip[6] << 8 | ip[7]) & 0x3FFF) &&
		       (ip[2] << 8 | ip[3]) >= 20 + 8 + PAQM_PROOF_OTHER;
	return len >= 40 + 4 && ip[0] >> 4 == 6 && ip[6] == 17 &&
	       (ip[4] << 8 | ip[5]) >= 8 + PAQM_PROOF_OTHER;
}

/* What any answer has to be like. */
static void verify(const struct paqm_packet *p, const u8 *frame, size_t len, int network)
{
	must(p->kind <= PAQM_KIND_OTHER, "no such kind");
	must(p->family == 0 || p->family == 4 || p->family == 6, "no such family");
	must(!p->family == !!(p->note & PAQM_NOTE_NOT_IP), "neither IP nor not");
	must(p->family ||
		     (!p->hash && (p->kind == PAQM_KIND_OTHER || p->kind == PAQM_KIND_CONTROL)),
	     "flow without IP");
	must(!p->hash == (p->kind == PAQM_KIND_SMALL || p->kind == PAQM_KIND_CONTROL ||
			  p->kind == PAQM_KIND_OTHER),
	     "a flow that is not counted, or none that is");
	must(p->kind != PAQM_KIND_RTP || p->proto == IPPROTO_UDP, "RTP outside of UDP");
	must(!(p->note & PAQM_NOTE_FRAGMENT) || !p->ports, "ports of a later fragment");
	must(!p->quotable || p->hash, "quotable without a flow");
	must(!p->quotable || (p->family && p->proto == IPPROTO_UDP), "quotable, but no UDP");
	must(!p->quotable || may_quote(frame + network, len - (size_t)network),
	     "quotable against the rules");
}

/* The short way to a flow leads to the same one, or is not taken. */
static void short_way(const struct paqm_packet *p, u64 plain)
{
	must(!plain || plain == p->hash || p->kind == PAQM_KIND_SMALL, "two hashes of a flow");
	must(!plain || !(p->note & ~PAQM_NOTE_TUNNEL), "a packet to be noted is not ordinary");
	must(!plain || p->proto == IPPROTO_UDP || p->proto == IPPROTO_TCP, "ordinary, but neither");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct paqm_rules rules = frame_rules();
	struct paqm_packet whole, other;
	const uint8_t *frame = data + 2;
	u8 longer[2 + 2048 + 64];
	struct sk_buff skb;
	size_t len, i;
	int network;
	u64 plain;
	bool gso;

	if (size < 2 + ETH_HLEN || size > 2048)
		return 0;
	len = size - 2;
	gso = data[0] & LAYOUT_GSO;
	rules.protocol = data[0] & LAYOUT_PROTOCOL;
	if (data[0] & LAYOUT_DSCP)
		paqm_rules_dscp(&rules, 1ULL << 46 | 1ULL << 34, 1ULL << 8 | 1);
	network = data[0] & LAYOUT_ODD ? ETH_HLEN : paqm_pkt_network(frame, (u32)len);
	frame_classify(frame, len, len, network, gso, &rules, &whole, &plain);
	verify(&whole, frame, len, network);
	short_way(&whole, plain);

	/* the same packet with another part of it in fragments */
	frame_classify(frame, len, data[1] % (len + 1), network, gso, &rules, &other, &plain);
	must(same(&whole, &other), "answer depends on the linear part");
	short_way(&other, plain);
	frame_classify(frame, len, 0, network, gso, &rules, &other, &plain);
	must(same(&whole, &other), "answer depends on the linear part");
	short_way(&other, plain);

	/* the same packet at the beginning of a longer buffer */
	memcpy(longer + 2, frame, len);
	for (i = 0; i < 64; i++)
		longer[2 + len + i] = (u8)(i * 37 + data[1]);
	skb = (struct sk_buff){.data = longer + 2,
			       .headlen = (unsigned int)len,
			       .len = (unsigned int)len,
			       .network = network,
			       .gso = gso};
	memcpy(&skb.protocol, frame + 12, 2);
	paqm_classify(&skb, &rules, &other);
	must(same(&whole, &other), "answer depends on bytes behind the packet");
	return 0;
}
