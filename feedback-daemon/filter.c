// SPDX-License-Identifier: GPL-2.0
/* The kernel filter; see filter.h. */
#include "filter.h"

#include <linux/if_packet.h>
#include <netinet/in.h>

#include "core/paqm_msg.h"

#define FRAGMENT 0x1FFF

#define AD(field) ((uint32_t)(SKF_AD_OFF + SKF_AD_##field))

struct out {
	struct sock_filter *p;
	unsigned short n;
};

static void put(struct out *o, uint16_t code, uint32_t k)
{
	o->p[o->n++] = (struct sock_filter){.code = code, .k = k};
}

/* Go on if the accumulator is @k, else skip @else_skip instructions. */
static void put_eq(struct out *o, uint32_t k, uint8_t else_skip)
{
	o->p[o->n++] =
		(struct sock_filter){.code = BPF_JMP | BPF_JEQ | BPF_K, .jf = else_skip, .k = k};
}

/* Drop the packet unless the accumulator is @k. */
static void need(struct out *o, uint32_t k)
{
	o->p[o->n++] = (struct sock_filter){.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 1, .k = k};
	put(o, BPF_RET | BPF_K, 0);
}

/* Drop the packet if the accumulator has any of these bits. */
static void forbid(struct out *o, uint32_t bits)
{
	o->p[o->n++] = (struct sock_filter){.code = BPF_JMP | BPF_JSET | BPF_K, .jf = 1, .k = bits};
	put(o, BPF_RET | BPF_K, 0);
}

static void pass(struct out *o)
{
	put(o, BPF_RET | BPF_K, FILTER_SNAP);
}

/* Of a packet of @version, with the length of its header in X: is it of a flow? */
static void put_flows(struct out *o, const struct filter_flows *flows, uint8_t version)
{
	uint32_t i;

	if (flows->n > FILTER_FLOWS) {
		pass(o);
		return;
	}
	for (i = 0; i < flows->n; i++) {
		const struct filter_flow *f = &flows->flow[i];

		if (f->version != version)
			continue;
		put(o, BPF_LD | BPF_W | BPF_IND, 0);
		put_eq(o, f->ports, 3);
		put(o, BPF_LD | BPF_W | BPF_ABS, version == 4 ? 16 : 36);
		put_eq(o, f->addr, 1);
		pass(o);
	}
	put(o, BPF_RET | BPF_K, 0);
}

/* Go on if the accumulator is @k. Return: the jump to be set for the other case. */
static unsigned short if_eq(struct out *o, uint32_t k)
{
	put_eq(o, k, 1);
	put(o, BPF_JMP | BPF_JA, 1);
	put(o, BPF_JMP | BPF_JA, 0);
	return o->n - 1;
}

/* The other case of if_eq() begins here. */
static void otherwise(struct out *o, unsigned short jump)
{
	o->p[jump].k = o->n - jump - 1U;
}

/* IPv4 of protocol @proto, not the later part of a packet in fragments; header
 * length to X.
 */
static void need_v4(struct out *o, uint32_t proto)
{
	put(o, BPF_LD | BPF_B | BPF_ABS, 9);
	need(o, proto);
	put(o, BPF_LD | BPF_H | BPF_ABS, 6);
	forbid(o, FRAGMENT);
	put(o, BPF_LDX | BPF_B | BPF_MSH, 0);
}

/* IPv6 whose first header behind the fixed one is @proto. */
static void need_v6(struct out *o, uint32_t proto)
{
	need(o, 0x60);
	put(o, BPF_LD | BPF_B | BPF_ABS, 6);
	need(o, proto);
	put(o, BPF_LDX | BPF_W | BPF_IMM, 40);
}

static void load_version(struct out *o)
{
	put(o, BPF_LD | BPF_B | BPF_ABS, 0);
	put(o, BPF_ALU | BPF_AND | BPF_K, 0xF0);
}

static void put_messages(struct out *o)
{
	unsigned short v6;

	load_version(o);
	v6 = if_eq(o, 0x40);
	need_v4(o, IPPROTO_ICMP);
	put(o, BPF_LD | BPF_B | BPF_IND, 0);
	put_eq(o, PAQM_ICMP_TYPE_QUENCH, 1);
	pass(o);
	need(o, PAQM_ICMP_TYPE_EXP);
	pass(o);
	otherwise(o, v6);
	need_v6(o, IPPROTO_ICMPV6);
	put(o, BPF_LD | BPF_B | BPF_IND, 0);
	need(o, PAQM_ICMP6_TYPE_EXP);
	pass(o);
}

static void put_media(struct out *o, const struct filter_flows *flows)
{
	unsigned short v6;

	load_version(o);
	v6 = if_eq(o, 0x40);
	need_v4(o, IPPROTO_UDP);
	put_flows(o, flows, 4);
	otherwise(o, v6);
	need_v6(o, IPPROTO_UDP);
	put_flows(o, flows, 6);
}

unsigned short filter_build(const struct filter_flows *flows, bool all,
			    struct sock_filter prog[FILTER_INSNS])
{
	struct out o = {.p = prog};
	unsigned short incoming;

	if (all) {
		/* A tag that the device handles stands beside the packet; number
		 * 0 is a priority and no VLAN.
		 */
		put(&o, BPF_LD | BPF_W | BPF_ABS, AD(VLAN_TAG_PRESENT));
		put_eq(&o, 1, 4);
		put(&o, BPF_LD | BPF_W | BPF_ABS, AD(VLAN_TAG));
		put(&o, BPF_ALU | BPF_AND | BPF_K, 0xFFF);
		need(&o, 0);
		/* One that does not is in the packet. */
		put(&o, BPF_LD | BPF_W | BPF_ABS, AD(PROTOCOL));
		put_eq(&o, 0x8100, 1);
		put(&o, BPF_RET | BPF_K, 0);
		put_eq(&o, 0x88A8, 1);
		put(&o, BPF_RET | BPF_K, 0);
	}
	put(&o, BPF_LD | BPF_W | BPF_ABS, AD(PKTTYPE));
	incoming = if_eq(&o, PACKET_OUTGOING);
	put_media(&o, flows);
	otherwise(&o, incoming);
	need(&o, PACKET_HOST);
	put_messages(&o);
	return o.n;
}
