// SPDX-License-Identifier: GPL-2.0
/*
 * Media classifier for sch_paqm as a BPF program: says by the rules of a site what
 * is media where the built-in recogniser cannot know, e.g. video over QUIC or a
 * backup tool that speaks RTP. A worked example: change the rules below, or at run
 * time the maps.
 *
 *	clang -O2 -g -target bpf -c media.bpf.c -o media.bpf.o
 *	tc filter add dev eth0 parent 1: bpf obj media.bpf.o
 *	bpftool map update name paqm_ports key 0x1b 0x58 value 2 0 0 0   # UDP 7000: elastic
 *
 * The key is a UDP port in network order, the value a class: 1 media, 2 elastic.
 * A packet that no rule knows is left to the recogniser. Rules last as long as the
 * filter.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define CLASS_NONE 0 /* no match: tc asks the next filter, then the recogniser */
#define CLASS_MEDIA 1
#define CLASS_ELASTIC 2

/* Rules of the site: UDP port, in network order, to class. Both ends' ports count. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be16);
	__type(value, __u32);
} paqm_ports SEC(".maps");

/* Class of a DSCP, 0: none. Asked first; bpftool writes it as paqm_dscp. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} paqm_dscp SEC(".maps");

/* Rules that need no map: RFC 8837's markings of browsers, and bulk by RFC 8622. */
static __u32 class_of_dscp(__u32 dscp)
{
	const __u32 *rule = bpf_map_lookup_elem(&paqm_dscp, &dscp);

	if (rule && *rule)
		return *rule;
	switch (dscp) {
	case 46: /* EF: voice */
	case 34: /* AF41, AF42: interactive video */
	case 36:
		return CLASS_MEDIA;
	case 1: /* LE: lower effort */
		return CLASS_ELASTIC;
	}
	return CLASS_NONE;
}

static __u32 class_of_port(__be16 port)
{
	const __u32 *rule = bpf_map_lookup_elem(&paqm_ports, &port);

	return rule ? *rule : CLASS_NONE;
}

SEC("classifier")
int paqm_media(struct __sk_buff *skb)
{
	__u32 off, dscp, proto, class;
	struct udphdr udp;

	/* from the network header: there may be a link header, a VLAN tag or neither */
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET))
			return CLASS_NONE;
		dscp = ip.tos >> 2;
		/* a later fragment has no ports */
		proto = ip.frag_off & bpf_htons(0x1FFF) ? 0 : ip.protocol;
		off = ip.ihl * 4;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip6;

		if (bpf_skb_load_bytes_relative(skb, 0, &ip6, sizeof(ip6), BPF_HDR_START_NET))
			return CLASS_NONE;
		dscp = ip6.priority << 2 | ip6.flow_lbl[0] >> 6;
		proto = ip6.nexthdr; /* extension headers: no rule by port */
		off = sizeof(ip6);
	} else {
		return CLASS_NONE;
	}

	class = class_of_dscp(dscp);
	if (class || proto != IPPROTO_UDP)
		return class;
	if (bpf_skb_load_bytes_relative(skb, off, &udp, sizeof(udp), BPF_HDR_START_NET))
		return CLASS_NONE;
	class = class_of_port(udp.dest);
	return class ? class : class_of_port(udp.source);
}

char paqm_license[] SEC("license") = "GPL";
