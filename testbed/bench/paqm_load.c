// SPDX-License-Identifier: GPL-2.0
/*
 * paqm_load - packets for the qdisc benchmarks
 *
 * What pktgen does in its mode queue_xmit, with payloads that a recogniser can
 * tell apart: pktgen's own looks like RTP whose sequence number stands still.
 * Loading the module sends @warm packets, then @count packets whose cost is its
 * parameter @cycles, in cycles of the time-stamp counter: instructions under
 * QEMU's counting clock. Flows take turns, so each packet of @flows is of another flow
 * than those before it, and RTP sequence numbers are those of a real stream.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/timex.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/net_namespace.h>

static char *dev = "dut";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "device to send to");
static char *kind = "rtp";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "rtp, udp (random payload) or tcp");
static uint flows = 1;
module_param(flows, uint, 0444);
MODULE_PARM_DESC(flows, "number of flows, each of another source address");
static uint size = 64;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "bytes of a packet with its Ethernet header");
static uint skip;
module_param(skip, uint, 0444);
MODULE_PARM_DESC(skip, "packets that an earlier load has sent: streams go on behind them");
static uint warm;
module_param(warm, uint, 0444);
MODULE_PARM_DESC(warm, "packets before the measured ones");
static uint count = 1000;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "measured packets");
static unsigned long long cycles;
module_param(cycles, ullong, 0444);
MODULE_PARM_DESC(cycles, "result: what the measured packets cost");

struct paqm_load_head {
	struct ethhdr eth;
	struct iphdr ip;
	union {
		struct udphdr udp;
		struct tcphdr tcp;
	};
} __packed;

enum paqm_load_kind { PAQM_LOAD_RTP, PAQM_LOAD_UDP, PAQM_LOAD_TCP };

/*
 * Packets that are allocated and kept while others are sent: without them it would
 * hang on the allocator's history whether each packet empties its slab, at the price
 * of a thousand instructions.
 */
#define PAQM_LOAD_KEPT 256

static enum paqm_load_kind what;
static struct paqm_load_head head;
static u64 sent; /* in all: streams go on behind the warm-up */

static void paqm_load_template(void)
{
	u32 ip_len = size - ETH_HLEN;

	/* to one host: nobody is told about frames that all get */
	head.eth.h_dest[0] = 2;
	head.eth.h_dest[ETH_ALEN - 1] = 1;
	head.eth.h_source[0] = 2;
	head.eth.h_proto = htons(ETH_P_IP);
	head.ip.version = 4;
	head.ip.ihl = 5;
	head.ip.ttl = 64;
	head.ip.tot_len = htons(ip_len);
	head.ip.daddr = htonl(0xCB007101); /* 203.0.113.1 */
	if (what == PAQM_LOAD_TCP) {
		head.ip.protocol = IPPROTO_TCP;
		head.tcp.source = htons(5001);
		head.tcp.dest = htons(5001);
		head.tcp.doff = 5;
		head.tcp.ack = 1;
		return;
	}
	head.ip.protocol = IPPROTO_UDP;
	head.udp.source = htons(5004);
	head.udp.dest = htons(5004);
	head.udp.len = htons(ip_len - sizeof(struct iphdr));
}

static struct sk_buff *paqm_load_packet(struct net_device *out)
{
	u32 flow = sent % flows, turn = sent / flows;
	struct paqm_load_head *h;
	struct sk_buff *skb;
	u8 *payload;

	skb = __netdev_alloc_skb(out, size + LL_MAX_HEADER, GFP_KERNEL);
	if (!skb)
		return NULL;
	skb_reserve(skb, LL_MAX_HEADER);
	h = skb_put(skb, size);
	*h = head;
	h->ip.saddr = htonl(0x0A000001 + flow); /* 10.0.0.1 and on */
	ip_send_check(&h->ip);
	payload = (u8 *)&h->udp + sizeof(struct udphdr);
	switch (what) {
	case PAQM_LOAD_RTP:
		payload[0] = 0x80;
		payload[1] = 96;
		put_unaligned_be16(turn, payload + 2);
		put_unaligned_be32(turn * 3000, payload + 4); /* 90 kHz, 30 frames per second */
		put_unaligned_be32(flow + 1, payload + 8);
		break;
	case PAQM_LOAD_UDP:
		put_unaligned_be32(0x47400011, payload); /* MPEG transport stream, say */
		put_unaligned_be32(turn, payload + 4);
		break;
	case PAQM_LOAD_TCP:
		h->tcp.seq = htonl(turn * (size - sizeof(*h)));
		break;
	}
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(struct iphdr));
	skb->protocol = htons(ETH_P_IP);
	skb->dev = out;
	skb->priority = 0;
	return skb;
}

/* Send @n packets. */
static int paqm_load_send(struct net_device *out, u32 n)
{
	int err = 0;

	while (n-- && !err) {
		struct sk_buff *skb = paqm_load_packet(out);

		if (!skb)
			return -ENOMEM;
		local_bh_disable();
		err = dev_queue_xmit(skb);
		local_bh_enable();
		sent++;
		cond_resched();
	}
	return err ? net_xmit_errno(err) : 0;
}

static int __init paqm_load_init(void)
{
	static const char *const kinds[] = {"rtp", "udp", "tcp"};
	struct sk_buff_head kept;
	struct net_device *out;
	cycles_t begin;
	int err, i;

	err = match_string(kinds, ARRAY_SIZE(kinds), kind);
	if (err < 0 || !flows || size < sizeof(head) || size > ETH_FRAME_LEN)
		return -EINVAL;
	what = err;
	out = dev_get_by_name(&init_net, dev);
	if (!out)
		return -ENODEV;
	paqm_load_template();
	__skb_queue_head_init(&kept);
	for (i = 0; i < PAQM_LOAD_KEPT; i++) {
		struct sk_buff *skb = paqm_load_packet(out);

		if (skb)
			__skb_queue_tail(&kept, skb);
	}
	sent = skip;
	err = paqm_load_send(out, warm);
	if (!err) {
		begin = get_cycles();
		err = paqm_load_send(out, count);
		cycles = get_cycles() - begin;
	}
	__skb_queue_purge(&kept);
	dev_put(out);
	return err;
}

static void __exit paqm_load_exit(void)
{
}

module_init(paqm_load_init);
module_exit(paqm_load_exit);

MODULE_DESCRIPTION("Packets for the qdisc benchmarks");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
