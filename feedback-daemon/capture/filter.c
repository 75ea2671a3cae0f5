// SPDX-License-Identifier: GPL-2.0
/* The kernel filters; see filter.h. */
#include "feedback-daemon/capture/filter.h"

#include <linux/if_packet.h>
#include <pcap/pcap.h>
#include <stdio.h>

#include "feedback-daemon/capture/batch.h"
#include "core/paqm_msg.h"

#define AD(field) ((uint32_t)(SKF_AD_OFF + SKF_AD_##field))

/* Of a flow; of UDP that is no later part of a packet in fragments. */
#define FLOW_V4 "udp[0:4] = 0x%x and ip[16:4] = 0x%x"
#define FLOW_V6 "ip6[6] = 17 and ip6[40:4] = 0x%x and ip6[36:4] = 0x%x"
#define ALL_UDP "(ip[9] = 17 and ip[6:2] & 0x1fff = 0) or ip6[6] = 17"
#define NUMBER(n) TEXT_OF(n)
#define TEXT_OF(n) #n
#define OF_CARRIER(carrier, number) "icmp[0] = " NUMBER(number) " or "
#define MESSAGES                                                                                   \
	PAQM_ICMP_CARRIERS(OF_CARRIER)                                                             \
	"(ip6[6] = 58 and (ip6[40] = " NUMBER(PAQM_ICMP6_TYPE_EXP) " or ip6[40] = " NUMBER(        \
		PAQM_ICMP6_TYPE_OLD) "))"
#define TEXT_MAX (FILTER_FLOWS * 160 + 1)

struct out {
	struct sock_filter *p;
	unsigned short n;
};

static void put(struct out *o, uint16_t code, uint32_t k)
{
	o->p[o->n++] = (struct sock_filter){.code = code, .k = k};
}

static void load(struct out *o, uint32_t where)
{
	put(o, BPF_LD | BPF_W | BPF_ABS, where);
}

/* Skip @then instructions if the accumulator is @k, else @otherwise. */
static void skip_if(struct out *o, uint32_t k, uint8_t then, uint8_t otherwise)
{
	o->p[o->n++] = (struct sock_filter){
		.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = then, .jf = otherwise, .k = k};
}

static void drop(struct out *o)
{
	put(o, BPF_RET | BPF_K, 0);
}

/* @also: a device beside those that are wanted; 0: none */
static void put_devices(struct out *o, const struct filter_devices *d, uint32_t also)
{
	uint8_t left = also != 0;
	uint32_t i;

	if (d->all) {
		/* A tag that the device handles stands beside the packet; number
		 * 0 is a priority and no VLAN.
		 */
		load(o, AD(VLAN_TAG_PRESENT));
		skip_if(o, 1, 0, 4);
		load(o, AD(VLAN_TAG));
		put(o, BPF_ALU | BPF_AND | BPF_K, 0xFFF);
		skip_if(o, 0, 1, 0);
		drop(o);
		/* One that does not is in the packet. */
		load(o, AD(PROTOCOL));
		skip_if(o, 0x8100, 1, 0);
		skip_if(o, 0x88A8, 0, 1);
		drop(o);
		return;
	}
	for (i = 0; i < d->n; i++)
		left += d->index[i] != 0;
	load(o, AD(IFINDEX));
	for (i = 0; i < d->n; i++)
		if (d->index[i])
			skip_if(o, d->index[i], left--, 0);
	if (also)
		skip_if(o, also, left, 0);
	drop(o);
}

/* The rest is what @text says of an IP packet. */
static unsigned short finish(struct out *o, const char *text)
{
	pcap_t *ip = pcap_open_dead(DLT_RAW, BATCH_SNAP); /* each capture cuts for itself */
	struct bpf_program b = {0};
	uint32_t i;

	if (!ip)
		return 0;
	if (pcap_compile(ip, &b, text, 1, PCAP_NETMASK_UNKNOWN) || o->n + b.bf_len > FILTER_INSNS)
		o->n = 0;
	for (i = 0; o->n && i < b.bf_len; i++)
		o->p[o->n++] = (struct sock_filter){.code = b.bf_insns[i].code,
						    .jt = b.bf_insns[i].jt,
						    .jf = b.bf_insns[i].jf,
						    .k = b.bf_insns[i].k};
	pcap_freecode(&b);
	pcap_close(ip);
	return o->n;
}

unsigned short filter_messages(const struct filter_devices *devices, struct sock_filter *prog)
{
	struct out o = {.p = prog};
	load(&o, AD(PKTTYPE));
	skip_if(&o, PACKET_HOST, 2, 0);
	skip_if(&o, PACKET_OUTGOING, 1, 0);
	drop(&o);
	put_devices(&o, devices, devices->loopback);
	return finish(&o, MESSAGES);
}

unsigned short filter_media(const struct filter_devices *devices, const struct filter_flows *flows,
			    bool batches, struct sock_filter *prog)
{
	struct out o = {.p = prog};
	char text[TEXT_MAX] = ALL_UDP;
	size_t len = 0;
	uint32_t i;

	if (!flows->n) {
		drop(&o);
		return o.n;
	}
	load(&o, AD(PKTTYPE));
	skip_if(&o, PACKET_OUTGOING, 4, 0);
	skip_if(&o, PACKET_HOST, 0, 2);
	load(&o, AD(IFINDEX));
	skip_if(&o, devices->loopback, 1, 0);
	drop(&o);
	put_devices(&o, devices, 0);
	put(&o, BPF_LD | BPF_W | BPF_LEN, 0);
	prog[o.n++] = (struct sock_filter){
		.code = BPF_JMP | BPF_JGT | BPF_K, .jt = batches, .jf = !batches, .k = BATCH_LEAST};
	drop(&o);
	for (i = 0; i < flows->n && flows->n <= FILTER_FLOWS; i++) {
		const struct filter_flow *f = &flows->flow[i];

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s(" FLOW_V6 ")",
					i ? " or " : "", f->ports, f->addr);
		if (f->version == 4) /* that was what it may have become */
			len += (size_t)snprintf(text + len, sizeof(text) - len, " or (" FLOW_V4 ")",
						f->ports, f->addr);
	}
	return finish(&o, text);
}
