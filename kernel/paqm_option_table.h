/* SPDX-License-Identifier: GPL-2.0 */
/* Every option of sch_paqm, once; paqm_option_units.h says what the columns mean. */
#include "paqm_option_units.h"

#ifndef PAQM_OPTION_WORDS
#define PAQM_OPTION_WORDS

/* Words of the options; those of laws are in core/paqm_laws.h. */
#define PAQM_WORDS_LINKLAYER(first, more, last) first("ethernet") more("atm") last("ptm")
#define PAQM_WORDS_LAW(first, more, last) PAQM_LAWS(first, more, last)
#define PAQM_WORDS_FEEDBACK(first, more, last)                                                     \
	first("none") more("icmp") more("quench") last("in-band")
#define PAQM_WORDS_CLASSIFY(first, more, last) first("auto") last("protocol")
#define PAQM_WORDS_WEIGHTS(first, more, last) first("flow") last("host")

#endif /* PAQM_OPTION_WORDS */

PAQM_OPTION(RATE, BANDWIDTH, bandwidth, "bandwidth", "bandwidth_bps", "none",
	    (8, kbit), (800, gbit), (0, count), ALWAYS, EVERYDAY)
PAQM_OPTION(SIGNED, OVERHEAD, overhead, "overhead", "overhead_bytes", "",
	    (-64, count), (256, bytes), (0, count), SET, EVERYDAY)
PAQM_OPTION(COUNT, MPU, mpu, "mpu", "mpu_bytes", "",
	    (0, count), (256, bytes), (0, count), SET, EVERYDAY)
PAQM_OPTION(WORD, LINKLAYER, linklayer, "linklayer", "linklayer", "",
	    (0, count), (__PAQM_LINK_MAX - 1, count), (PAQM_LINK_ETHERNET, count), SET, EVERYDAY)
PAQM_OPTION(TARGET, MEDIA_TARGET, media_target, "media-target", "media_target_us", "",
	    (100, us), (1, s), (3, ms), ALWAYS, EVERYDAY)
PAQM_OPTION(TARGET_BYTES, MEDIA_TARGET_BYTES, media_target_bytes, "media-target",
	    "media_target_bytes", "time",
	    (256, bytes), (256, MiB), (0, count), ALWAYS, EVERYDAY)
PAQM_OPTION(TARGET, ELASTIC_TARGET, elastic_target, "elastic-target", "elastic_target_us", "",
	    (100, us), (1, s), (30, ms), ALWAYS, EVERYDAY)
PAQM_OPTION(TARGET_BYTES, ELASTIC_TARGET_BYTES, elastic_target_bytes, "elastic-target",
	    "elastic_target_bytes", "time",
	    (256, bytes), (256, MiB), (0, count), ALWAYS, EVERYDAY)
PAQM_OPTION(SIZE, LIMIT, limit, "limit", "limit_bytes", "auto",
	    (3000, bytes), (4294967295, bytes), (0, count), SET, EVERYDAY)
PAQM_OPTION(SIZE, MEDIA_LIMIT, media_limit, "media-limit", "media_limit_bytes", "auto",
	    (3000, bytes), (4294967295, bytes), (0, count), SET, EVERYDAY)
PAQM_OPTION(SIZE, ELASTIC_LIMIT, elastic_limit, "elastic-limit", "elastic_limit_bytes", "auto",
	    (3000, bytes), (4294967295, bytes), (0, count), SET, EVERYDAY)
PAQM_OPTION(WORD, LAW, law, "law", "law", "",
	    (0, count), (__PAQM_LAW_MAX - 1, count), (PAQM_LAW_MAXMIN, count), ALWAYS, RESEARCH)
PAQM_OPTION(WORD, FEEDBACK, feedback, "feedback", "feedback", "",
	    (0, count), (__PAQM_FEEDBACK_MAX - 1, count), (PAQM_FEEDBACK_NONE, count),
	    ALWAYS, EVERYDAY)
PAQM_OPTION(PREFIXES, FEEDBACK_TO, prefix, "feedback-to", "feedback_to", "any",
	    (0, count), (PAQM_PREFIXES, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(WORD, CLASSIFY, classify, "classify", "classify", "",
	    (0, count), (__PAQM_CLASSIFY_MAX - 1, count), (PAQM_CLASSIFY_AUTO, count),
	    ALWAYS, EVERYDAY)
PAQM_OPTION(DSCPS, DSCP_MEDIA, dscp_media, "dscp-media", "dscp_media", "none",
	    (0, count), (0xFFFFFFFFFFFFFFFF, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(DSCPS, DSCP_ELASTIC, dscp_elastic, "dscp-elastic", "dscp_elastic", "none",
	    (0, count), (0xFFFFFFFFFFFFFFFF, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(PERCENT, TARGET_UTIL, target_util, "target-util", "target_util", "",
	    (0.5, 1, 2), (1, 1, 1), (0.96, 96, 100), ALWAYS, EVERYDAY)
PAQM_OPTION(SHARE, SPLIT, split, "split", "split", "flows",
	    (0.05, 1, 20), (0.95, 19, 20), (0, 0, 1), SET, EVERYDAY)
PAQM_OPTION(COUNT, MEDIA_WEIGHT, media_weight, "media-weight", "media_weight", "",
	    (1, count), (64, count), (1, count), SET, EVERYDAY)
PAQM_OPTION(COUNT, ELASTIC_WEIGHT, elastic_weight, "elastic-weight", "elastic_weight", "",
	    (1, count), (64, count), (1, count), SET, EVERYDAY)
PAQM_OPTION(FLAG, BORROW, borrow, "borrow", "borrow", "",
	    (0, count), (1, count), (1, count), SET, EVERYDAY)
PAQM_OPTION(WORD, WEIGHTS, weights, "weights", "weights", "",
	    (0, count), (__PAQM_WEIGHTS_MAX - 1, count), (PAQM_WEIGHTS_FLOW, count), SET, EVERYDAY)
PAQM_OPTION(FLAG, ECN, ecn, "ecn", "ecn", "",
	    (0, count), (1, count), (1, count), ALWAYS, EVERYDAY)
PAQM_OPTION(FLAG, ISOLATE, isolate, "isolate", "isolate", "",
	    (0, count), (1, count), (1, count), SET, EVERYDAY)
PAQM_OPTION(FLAG, POLICE, police, "police", "police", "",
	    (0, count), (1, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(TIME, INTERVAL, interval, "interval", "interval_us", "auto",
	    (1, ms), (40, ms), (0, count), SET, RESEARCH)
PAQM_OPTION(RATIO, GAIN, gain, "gain", "gain", "",
	    (0.05, 1, 20), (1, 1, 1), (0.3, 3, 10), DETAIL, RESEARCH)
PAQM_OPTION(RATIO, GAMMA, gamma, "gamma", "gamma", "auto",
	    (0.015625, 1, 64), (1, 1, 1), (0, 0, 1), SET, RESEARCH)
PAQM_OPTION(RATIO, ALPHA, alpha, "alpha", "alpha", "",
	    (0.01, 1, 100), (2, 2, 1), (0.484, 484, 1000), DETAIL, RESEARCH)
PAQM_OPTION(RATIO, BETA, beta, "beta", "beta", "",
	    (0.01, 1, 100), (2, 2, 1), (0.131, 131, 1000), DETAIL, RESEARCH)
PAQM_OPTION(TIME, PERIOD, period, "period", "period_us", "",
	    (50, ms), (5, s), (250, ms), DETAIL, EVERYDAY)
PAQM_OPTION(TIME, RTT, rtt, "rtt", "rtt_us", "auto",
	    (100, us), (2, s), (100, ms), DETAIL, EVERYDAY)
PAQM_OPTION(TIME, GOP, gop, "gop", "gop_us", "auto",
	    (1, us), (2, s), (0, count), SET, EVERYDAY)
PAQM_OPTION(TIME, TRANSFER, transfer, "transfer", "transfer_us", "",
	    (0, count), (2, s), (150, ms), DETAIL, EVERYDAY)
PAQM_OPTION(TIME, CREDIT, credit, "credit", "credit_us", "",
	    (0, count), (1, s), (50, ms), DETAIL, EVERYDAY)
PAQM_OPTION(RATIO, MD_FLOOR, md_floor, "md-floor", "md_floor", "",
	    (0.1, 1, 10), (0.95, 95, 100), (0.1, 1, 10), DETAIL, RESEARCH)
PAQM_OPTION(FLAG, FORCED_MD, forced_md, "forced-md", "forced_md", "",
	    (0, count), (1, count), (1, count), DETAIL, RESEARCH)
PAQM_OPTION(FLAG, AI_HOLD, ai_hold, "ai-hold", "ai_hold", "",
	    (0, count), (1, count), (0, count), DETAIL, RESEARCH)
PAQM_OPTION(COUNT, FLOWS, flows, "flows", "flows", "",
	    (64, count), (1048576, count), (4096, count), DETAIL, EVERYDAY)
PAQM_OPTION(TIME, FLOW_AGE, flow_age, "flow-age", "flow_age_us", "",
	    (1, s), (60, s), (2, s), DETAIL, EVERYDAY)
PAQM_OPTION(ID, ROUTER_ID, router_id, "router-id", "router_id", "",
	    (1, count), (0xFFFFFFFFFFFFFFFF, count), (0, count), DETAIL, EVERYDAY)
PAQM_OPTION(SEED, SEED, seed, "seed", "seed", "random",
	    (1, count), (0xFFFFFFFFFFFFFFFF, count), (0, count), SET, RESEARCH)
PAQM_OPTION(SIZE, MEDIA_INNER_TARGET, media_inner_target, "media-inner-target",
	    "media_inner_target_bytes", "auto",
	    (3000, bytes), (4294967295, bytes), (0, count), SET, RESEARCH)
PAQM_OPTION(RATIO, AI_FACTOR, ai_factor, "ai-factor", "ai_factor", "",
	    (0.1, 1, 10), (1, 1, 1), (1, 1, 1), SET, RESEARCH)
PAQM_OPTION(FLAG, ERF_COUNT, erf_count, "erf-count", "erf_count", "",
	    (0, count), (1, count), (1, count), SET, RESEARCH)
PAQM_OPTION(FLAG, EVENTS, events, "events", "events", "",
	    (0, count), (1, count), (1, count), SET, RESEARCH)
PAQM_OPTION(FLAG, ADAPT_UTIL, adapt_util, "adapt-util", "adapt_util", "",
	    (0, count), (1, count), (1, count), SET, RESEARCH)
PAQM_OPTION(COUNT, NOTICE_PART, notice_part, "notice-part", "notice_part", "",
	    (10, count), (10000, count), (200, count), SET, RESEARCH)
PAQM_OPTION(TIME, NOTICE_PAUSE, notice_pause, "notice-pause", "notice_pause_us", "",
	    (0, count), (60, s), (10, s), SET, RESEARCH)
PAQM_OPTION(FLAG, IN_STEP, in_step, "in-step", "in_step", "",
	    (0, count), (1, count), (0, count), SET, RESEARCH)
PAQM_OPTION(KEY, KEY, key, "key", "key", "none",
	    (0, count), (0, count), (0, count), SET, EVERYDAY)

#undef PAQM_OPTION
