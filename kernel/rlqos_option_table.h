/* SPDX-License-Identifier: GPL-2.0 */
/* Every option of sch_rlqos, once; paqm_option_units.h says what the columns mean. */
#include "paqm_option_units.h"

PAQM_OPTION(COUNT, LIMIT, limit, "limit", "limit_packets", "",
	    (1, count), (8192, count), (200, count), ALWAYS, EVERYDAY)
PAQM_OPTION(COUNT, OTHER_LIMIT, other_limit, "other-limit", "other_limit_packets", "",
	    (1, count), (8192, count), (1000, count), SET, EVERYDAY)
PAQM_OPTION(COUNT, TRANSIT, transit, "transit", "transit_mark", "none",
	    (1, count), (0xFFFFFFFF, count), (0, count), SET, EVERYDAY)
PAQM_OPTION(DSCPS, TC1, tc1, "tc1", "tc1", "none",
	    (0, count), (0xFFFFFFFFFFFFFFFF, count), (0x0101400000000000, count), SET, EVERYDAY)
PAQM_OPTION(DSCPS, TC2, tc2, "tc2", "tc2", "none",
	    (0, count), (0xFFFFFFFFFFFFFFFF, count), (0x5500000000, count), SET, EVERYDAY)
PAQM_OPTION(SHARE, TC1_SHARE, tc1_share, "tc1-share", "tc1_share", "",
	    (0, 0, 1), (1, 1, 1), (0.1, 1, 10), SET, EVERYDAY)
PAQM_OPTION(FLAG, FRAMES, frames, "frames", "frames", "",
	    (0, count), (1, count), (1, count), SET, EVERYDAY)
PAQM_OPTION(COUNT, K1, k1, "k1", "k1_packets", "auto",
	    (1, count), (65536, count), (0, count), SET, RESEARCH)
PAQM_OPTION(SHARE, DOWN_SHARE, down_share, "down-share", "down_share", "",
	    (0, 0, 1), (1, 1, 1), (0.25, 1, 4), SET, RESEARCH)
PAQM_OPTION(SHARE, K3, k3, "k3", "k3", "",
	    (0, 0, 1), (1, 1, 1), (0.02, 1, 50), SET, RESEARCH)
PAQM_OPTION(RATIO, WEIGHT, weight, "weight", "weight", "",
	    (0.001, 1, 1000), (1, 1, 1), (0.3, 3, 10), SET, RESEARCH)
PAQM_OPTION(TIME, INTERVAL, interval, "interval", "interval_us", "",
	    (100, us), (1, s), (1, ms), SET, RESEARCH)
PAQM_OPTION(COUNT, SAMPLES, samples, "samples", "samples", "",
	    (1, count), (1000, count), (5, count), SET, RESEARCH)

#undef PAQM_OPTION
