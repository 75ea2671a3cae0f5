/* SPDX-License-Identifier: GPL-2.0 */
/* Options of sch_paqm, as the other parts see them. */
#ifndef PAQM_OPTIONS_H
#define PAQM_OPTIONS_H

#include <net/netlink.h>
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_fix.h"

/* Options as given, units of the netlink interface; 0 means derived where that says so. */
struct paqm_config {
	u64 bandwidth; /* bytes/s, 0: none */
	u64 router_id;
	u32 media_target; /* us */
	u32 elastic_target;
	u32 limit; /* bytes */
	u32 interval; /* us */
	u32 gain; /* Q24 */
	u32 gamma;
	u32 alpha;
	u32 beta;
	u32 period; /* us */
	u32 rtt;
	u32 target_util; /* Q24 */
	u32 law;
	u32 transfer; /* us */
	u32 credit; /* us */
	u32 md_floor; /* Q24 */
	u32 forced_md;
	u32 ai_hold;
	u32 feedback;
	u32 classify;
	u32 flows;
	u32 ecn;
	u32 police;
	s32 overhead;
	u32 mpu; /* bytes */
	u32 linklayer;
	u32 media_target_bytes;
	u32 elastic_target_bytes;
	u32 media_limit;
	u32 elastic_limit;
	u32 gop; /* us */
	u32 flow_age;
	u32 media_weight;
	u32 elastic_weight;
	u32 split; /* Q16 */
	u32 borrow;
	u32 n_prefixes;
	u64 dscp_media;
	u64 dscp_elastic;
	u64 seed;
	struct tc_paqm_prefix prefix[PAQM_PREFIXES];
	u32 isolate;
	u32 weights;
	u32 key_id; /* the key itself is with the transmitter */
};

extern const struct paqm_config paqm_defaults;

int paqm_parse(struct nlattr *opt, struct paqm_config *cfg, const u8 **key,
	       struct netlink_ext_ack *extack);
int paqm_dump_options(const struct paqm_config *cfg, const struct tc_paqm_prefix *prefix, u32 n,
		      struct sk_buff *skb);

#endif /* PAQM_OPTIONS_H */
