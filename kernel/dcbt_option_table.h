/* SPDX-License-Identifier: GPL-2.0 */
/* Every option of sch_dcbt, once; paqm_option_units.h says what the columns mean. */
#include "paqm_option_units.h"

#ifndef DCBT_OPTION_WORDS
#define DCBT_OPTION_WORDS

#define PAQM_WORDS_MODE(first, more, last)                                                         \
	first("red") more("fred") more("cbt") more("cbt-tcp") last("dcbt")
#define PAQM_WORDS_SPACING(first, more, last) first("wait") last("uniform")
#define PAQM_WORDS_FORCED(first, more, last) first("random") last("tail")
#define PAQM_WORDS_FLOW_KEY(first, more, last) first("tuple") last("hosts")

#endif /* DCBT_OPTION_WORDS */

PAQM_OPTION(WORD, MODE, mode, "mode", "mode", "",
	    (0, count), (__DCBT_MODE_MAX - 1, count), (DCBT_MODE_DCBT, count), ALWAYS, EVERYDAY)
PAQM_OPTION(COUNT, LIMIT, limit, "limit", "limit_packets", "",
	    (1, count), (16384, count), (60, count), ALWAYS, EVERYDAY)
PAQM_OPTION(PACKETS, MIN_TH, min_th, "min", "min_packets", "",
	    (0, 0, 1), (16383, 16383, 1), (5, 5, 1), ALWAYS, EVERYDAY)
PAQM_OPTION(PACKETS, MAX_TH, max_th, "max", "max_packets", "",
	    (0.5, 1, 2), (16384, 16384, 1), (15, 15, 1), ALWAYS, EVERYDAY)
PAQM_OPTION(PERCENT, MAX_P, max_p, "max-p", "max_p", "",
	    (0.001, 1, 1000), (1, 1, 1), (0.1, 1, 10), ALWAYS, EVERYDAY)
PAQM_OPTION(RATIO, WEIGHT, weight, "weight", "weight", "",
	    (0.0001, 1, 10000), (1, 1, 1), (0.002, 2, 1000), SET, EVERYDAY)
PAQM_OPTION(FLAG, GENTLE, gentle, "gentle", "gentle", "",
	    (0, count), (1, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(FLAG, ADAPTIVE, adaptive, "adaptive", "adaptive", "",
	    (0, count), (1, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(FLAG, ECN, ecn, "ecn", "ecn", "",
	    (0, count), (1, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(DSCPS, TAG, tag, "tag", "tag", "none",
	    (0, count), (0xFFFFFFFFFFFFFFFF, count), (8, count), SET, EVERYDAY)
PAQM_OPTION(PACKETS, TAGGED_TH, tagged_th, "tagged-threshold", "tagged_packets", "",
	    (0, 0, 1), (16384, 16384, 1), (2.9, 29, 10), SET, EVERYDAY)
PAQM_OPTION(PACKETS, UNTAGGED_TH, untagged_th, "untagged-threshold", "untagged_packets", "",
	    (0, 0, 1), (16384, 16384, 1), (0.6, 6, 10), SET, EVERYDAY)
PAQM_OPTION(FLAG, CHIPS, chips, "chips", "chips", "",
	    (0, count), (1, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(SHARE, CHIPS_SHARE, chips_share, "chips-share", "chips_share", "",
	    (0, 0, 1), (1, 1, 1), (0.5, 1, 2), SET, EVERYDAY)
PAQM_OPTION(COUNT, FLOWS, flows, "flows", "flows", "",
	    (16, count), (65536, count), (1024, count), DETAIL, EVERYDAY)
PAQM_OPTION(WORD, FLOW_KEY, flow_key, "flow-key", "flow_key", "",
	    (0, count), (__DCBT_FLOW_KEY_MAX - 1, count), (DCBT_FLOW_KEY_TUPLE, count),
	    DETAIL, EVERYDAY)
PAQM_OPTION(COUNT, MIN_Q, min_q, "min-q", "min_q_packets", "",
	    (1, count), (16384, count), (2, count), SET, RESEARCH)
PAQM_OPTION(PERCENT, BETA, beta, "beta", "beta", "",
	    (0, 0, 1), (1, 1, 1), (0.1, 1, 10), SET, RESEARCH)
PAQM_OPTION(FLAG, CAP, cap, "cap", "cap", "",
	    (0, count), (1, count), (0, count), SET, RESEARCH)
PAQM_OPTION(TIME, SWEEP, sweep, "sweep", "sweep_us", "",
	    (10, ms), (10, s), (300, ms), SET, RESEARCH)
PAQM_OPTION(WORD, SPACING, spacing, "spacing", "spacing", "",
	    (0, count), (__DCBT_SPACING_MAX - 1, count), (DCBT_SPACING_WAIT, count), SET, RESEARCH)
PAQM_OPTION(WORD, FORCED, forced, "forced", "forced", "",
	    (0, count), (__DCBT_FORCED_MAX - 1, count), (DCBT_FORCED_RANDOM, count), SET, RESEARCH)

#undef PAQM_OPTION
