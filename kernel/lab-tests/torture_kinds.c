// SPDX-License-Identifier: GPL-2.0
/*
 * Options of the qdiscs, classes and filters that the torture test makes: what
 * the kernel accepts most of the time, and at times anything.
 *
 * For paqm nothing is listed here. The program asks the kernel at its start which
 * widths and values of which attribute it takes (torture.c: learn()), so that a new
 * attribute is tried as soon as the UAPI header has it.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_gact.h>
#include <linux/tc_act/tc_mirred.h>
#include <linux/tc_act/tc_skbedit.h>
#include <string.h>
#include "../uapi/linux/pkt_sched_dcbt.h"
#include "../uapi/linux/pkt_sched_rlqos.h"
#include "torture_kinds.h"
#include "torture_nl.h"
#include "torture_report.h"

/* ------------------------------------------------------------ options of paqm */

struct known known[PAQM_ATTRS + 1];

static void paqm_prefixes(bool valid)
{
	struct tc_paqm_prefix prefix[PAQM_PREFIXES + 2] = {};
	uint32_t n = valid ? rnd(PAQM_PREFIXES + 1) : rnd(ARRAY_SIZE(prefix) + 1);

	for (uint32_t i = 0; i < n; i++) {
		prefix[i].family = chance(50) ? 4 : 6;
		/* host bits may have to be 0: whole bytes, the rest stays 0 */
		prefix[i].len = 8 * rnd(prefix[i].family == 4 ? 5 : 17);
		for (int byte = 0; byte < prefix[i].len / 8; byte++)
			prefix[i].addr[byte] = rnd(256);
		if (prefix[i].len == 32 && chance(50))
			memcpy(prefix[i].addr, "\x0a\0\0\x02", 4);
	}
	if (!valid && n)
		((uint8_t *)prefix)[rnd(n * sizeof(prefix[0]))] = rnd(256);
	nl_attr(TCA_PAQM_FEEDBACK_TO, prefix, n * sizeof(prefix[0]) - (!valid && n && chance(30)));
}

static void paqm_key(bool valid)
{
	struct tc_paqm_key key = {.id = rnd(3)};

	if (key.id)
		memset(key.key, 1 + rnd(255), sizeof(key.key));
	if (!valid)
		((uint8_t *)&key)[rnd(sizeof(key))] = rnd(256);
	nl_attr(TCA_PAQM_KEY, &key, sizeof(key) - (!valid && chance(30)));
}

/* A value between two neighbouring steps that the kernel took. */
static uint64_t paqm_value(const struct known *k)
{
	int i = rnd(k->count);
	uint64_t low = k->value[i];

	if (i + 1 < k->count && chance(50))
		return low + rnd64() % (k->value[i + 1] - low);
	return low;
}

static void paqm_attr(int number, bool valid)
{
	const struct known *k = &known[number];
	uint64_t value;
	char junk[64];

	if (number == TCA_PAQM_FEEDBACK_TO) {
		paqm_prefixes(valid);
		return;
	}
	if (number == TCA_PAQM_KEY || (valid && number == TCA_PAQM_KEY_ID)) {
		paqm_key(valid); /* the id alone cannot be set */
		return;
	}
	if (!valid && chance(30)) { /* of any length */
		for (size_t i = 0; i < sizeof(junk); i++)
			junk[i] = rnd(256);
		nl_attr(number | (chance(10) ? NLA_F_NESTED : 0), junk, rnd(sizeof(junk)));
		return;
	}
	value = k->count && valid ? paqm_value(k) : chance(50) ? rnd_edge() : rnd_magnitude();
	/* A million slots are tried, but seldom: the guest's memory is small. */
	if (number == TCA_PAQM_FLOWS && value > 16384 && !chance(2))
		value = 64 + rnd(4096);
	nl_attr(number, &value, k->width ? k->width : valid ? 4 : 1 << rnd(4));
}

void opt_paqm(bool valid)
{
	static const uint16_t limits[] = {TCA_PAQM_LIMIT, TCA_PAQM_MEDIA_LIMIT,
					  TCA_PAQM_ELASTIC_LIMIT};
	struct rtattr *nest = nl_nest(TCA_OPTIONS);
	int n = chance(20) ? rnd(PAQM_ATTRS) : rnd(5);

	for (int i = 0; i < n; i++)
		paqm_attr(valid ? 2 + rnd(TCA_PAQM_MAX - 1) : 1 + rnd(PAQM_ATTRS),
			  valid || chance(60));
	if (chance(60)) /* without a shaper nothing waits here */
		nl_u64(TCA_PAQM_BANDWIDTH, 12500ULL << rnd(8));
	if (chance(60))
		nl_u32(TCA_PAQM_FEEDBACK, rnd(__PAQM_FEEDBACK_MAX));
	if (chance(20)) /* what waits is too much, mostly */
		nl_u32(limits[rnd(ARRAY_SIZE(limits))], between(3000, 30000));
	nl_end(nest);
}

/* ---------------------------------------------------------- options of others */

static uint32_t rate_bytes(void)
{
	return 12500U << rnd(14); /* 100 kbit/s .. 0.8 Gbit/s */
}

static struct tc_ratespec rate_spec(void)
{
	return (struct tc_ratespec){
		.rate = rate_bytes(), .linklayer = TC_LINKLAYER_ETHERNET, .mpu = rnd(100)};
}

void opt_none(bool valid)
{
	if (!valid)
		opt_paqm(false);
}

static void opt_fifo(bool valid)
{
	struct tc_fifo_qopt opt = {.limit = valid ? 1 + rnd(200) : rnd_edge()};

	nl_attr(TCA_OPTIONS, &opt, valid ? sizeof(opt) : rnd(sizeof(opt) + 1));
}

static void opt_bfifo(bool valid)
{
	struct tc_fifo_qopt opt = {.limit = valid ? rnd(100000) : rnd_edge()};

	nl_attr(TCA_OPTIONS, &opt, sizeof(opt));
}

static void opt_prio(bool valid)
{
	struct tc_prio_qopt opt = {.bands = valid ? between(2, 8) : rnd(20)};

	for (int i = 0; i <= TC_PRIO_MAX; i++)
		opt.priomap[i] = valid ? rnd(opt.bands) : rnd(32);
	nl_attr(TCA_OPTIONS, &opt, sizeof(opt));
}

static void opt_tbf(bool valid)
{
	struct tc_tbf_qopt opt = {.rate = rate_spec(),
				  .limit = number(valid, 3000, 200000),
				  .buffer = 1000000};
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	nl_attr(TCA_TBF_PARMS, &opt, sizeof(opt));
	nl_u32(TCA_TBF_BURST, number(valid, 2000, 100000));
	nl_end(nest);
}

static void opt_netem(bool valid)
{
	struct tc_netem_qopt opt = {.latency = rnd(15625 * 200), /* up to 200 ms */
				    .limit = valid ? 1 + rnd(1000) : rnd_edge(),
				    .loss = chance(20) ? rnd64() >> 34 : 0,
				    .duplicate = chance(30) ? rnd64() >> 34 : 0,
				    .jitter = chance(30) ? rnd(15625 * 50) : 0};
	struct tc_netem_corrupt corrupt = {.probability = rnd64() >> 34};
	struct tc_netem_reorder reorder = {.probability = rnd64() >> 33};
	struct tc_netem_rate rate = {.rate = rate_bytes()};

	nl_attr(TCA_OPTIONS, &opt, sizeof(opt));
	/* netem has its further attributes behind its structure */
	struct rtattr *nest =
		(struct rtattr *)(req.bytes + req.head.nlmsg_len - RTA_SPACE(sizeof(opt)));
	if (chance(30))
		nl_attr(TCA_NETEM_CORRUPT, &corrupt, sizeof(corrupt));
	if (chance(30))
		nl_attr(TCA_NETEM_REORDER, &reorder, sizeof(reorder));
	if (chance(30))
		nl_attr(TCA_NETEM_RATE, &rate, sizeof(rate));
	nl_end(nest);
}

static void opt_fq_codel(bool valid)
{
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	nl_u32(TCA_FQ_CODEL_TARGET, number(valid, 100, 20000));
	nl_u32(TCA_FQ_CODEL_LIMIT, number(valid, 1, 500));
	if (chance(30))
		nl_u32(TCA_FQ_CODEL_FLOWS, number(valid, 1, 64));
	if (chance(30))
		nl_u32(TCA_FQ_CODEL_MEMORY_LIMIT, between(1, 100000));
	nl_end(nest);
}

static void opt_codel(bool valid)
{
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	nl_u32(TCA_CODEL_TARGET, number(valid, 1, 20000));
	nl_u32(TCA_CODEL_LIMIT, number(valid, 1, 500));
	nl_u32(TCA_CODEL_INTERVAL, between(100, 100000));
	nl_end(nest);
}

static void opt_pie(bool valid)
{
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	nl_u32(TCA_PIE_LIMIT, number(valid, 1, 500));
	nl_u32(TCA_PIE_TARGET, between(1000, 20000));
	nl_end(nest);
}

struct range {
	uint16_t attr;
	uint32_t low, high;
};

/* Any of these options, in their ranges or not. */
static void some(bool valid, const struct range *range, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (chance(25))
			nl_u32(range[i].attr, number(valid, range[i].low, range[i].high));
}

static void opt_dcbt(bool valid)
{
	static const struct range range[] = {
		{TCA_DCBT_MODE, 0, __DCBT_MODE_MAX - 1},
		{TCA_DCBT_LIMIT, 1, 200},
		{TCA_DCBT_WEIGHT, 1678, 1 << 24},
		{TCA_DCBT_MAX_P, 16778, 1 << 24},
		{TCA_DCBT_GENTLE, 0, 1},
		{TCA_DCBT_ADAPTIVE, 0, 1},
		{TCA_DCBT_ECN, 0, 1},
		{TCA_DCBT_SPACING, 0, __DCBT_SPACING_MAX - 1},
		{TCA_DCBT_FORCED, 0, __DCBT_FORCED_MAX - 1},
		{TCA_DCBT_MIN_Q, 1, 16},
		{TCA_DCBT_TAGGED_TH, 0, 100 << 16},
		{TCA_DCBT_UNTAGGED_TH, 0, 100 << 16},
		{TCA_DCBT_BETA, 0, 1 << 24},
		{TCA_DCBT_CAP, 0, 1},
		{TCA_DCBT_SWEEP, 10000, 1000000},
		{TCA_DCBT_FLOWS, 16, 500},
		{TCA_DCBT_FLOW_KEY, 0, __DCBT_FLOW_KEY_MAX - 1},
		{TCA_DCBT_CHIPS, 0, 1},
		{TCA_DCBT_CHIPS_SHARE, 0, 1 << 16},
	};
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	some(valid, range, ARRAY_SIZE(range));
	if (chance(30))
		nl_u64(TCA_DCBT_TAG, rnd64());
	if (chance(40)) {
		nl_u32(TCA_DCBT_MIN_TH, number(valid, 0, 20 << 16));
		nl_u32(TCA_DCBT_MAX_TH, number(valid, 21 << 16, 100 << 16));
	}
	nl_end(nest);
}

/* The same, and what a neighbour says. */
static void opt_rlqos(bool valid)
{
	static const struct range range[] = {
		{TCA_RLQOS_LIMIT, 1, 200},	  {TCA_RLQOS_OTHER_LIMIT, 1, 200},
		{TCA_RLQOS_K1, 0, 65536},	  {TCA_RLQOS_K3, 0, 1 << 16},
		{TCA_RLQOS_DOWN_SHARE, 0, 1 << 16}, {TCA_RLQOS_WEIGHT, 16778, 1 << 24},
		{TCA_RLQOS_INTERVAL, 100, 1000000}, {TCA_RLQOS_SAMPLES, 1, 1000},
		{TCA_RLQOS_TRANSIT, 0, UINT32_MAX}, {TCA_RLQOS_FRAMES, 0, 1},
		{TCA_RLQOS_TC1_SHARE, 0, 1 << 16},
	};
	struct rtattr *nest = nl_nest(TCA_OPTIONS);
	uint64_t tc1 = rnd64();

	some(valid, range, ARRAY_SIZE(range));
	if (chance(30)) {
		nl_u64(TCA_RLQOS_TC1, tc1);
		nl_u64(TCA_RLQOS_TC2, valid ? rnd64() & ~tc1 : rnd64());
	}
	if (chance(40))
		nl_u32(TCA_RLQOS_DOWNSTREAM, rnd64());
	nl_end(nest);
}

static void opt_red(bool valid)
{
	struct tc_red_qopt opt = {.limit = between(1000, 300000),
				  .qth_min = between(500, 10000),
				  .qth_max = between(10000, 100000),
				  .Wlog = between(1, 20),
				  .Plog = between(1, 20),
				  .Scell_log = rnd(20)};
	struct rtattr *nest = nl_nest(TCA_OPTIONS);
	uint8_t stab[256] = {};

	nl_attr(TCA_RED_PARMS, &opt, sizeof(opt));
	nl_attr(TCA_RED_STAB, stab, valid ? sizeof(stab) : rnd(sizeof(stab)));
	nl_u32(TCA_RED_MAX_P, rnd64());
	nl_end(nest);
}

static void opt_sfq(bool valid)
{
	struct tc_sfq_qopt_v1 opt = {};

	opt.v0.quantum = number(valid, 256, 3000);
	opt.v0.limit = valid ? between(2, 127) : rnd(300);
	opt.v0.perturb_period = rnd(3);
	opt.depth = valid ? 0 : rnd(300);
	nl_attr(TCA_OPTIONS, &opt, sizeof(opt));
}

static void opt_sfb(bool valid)
{
	struct tc_sfb_qopt opt = {.rehash_interval = 600000,
				  .warmup_time = 60000,
				  .max = 25,
				  .bin_size = 20,
				  .increment = 1000,
				  .decrement = 10,
				  .limit = number(valid, 1, 500),
				  .penalty_rate = 10,
				  .penalty_burst = 20};
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	nl_attr(TCA_SFB_PARMS, &opt, sizeof(opt));
	nl_end(nest);
}

static void opt_htb(bool valid)
{
	struct tc_htb_glob opt = {
		.version = valid ? 3 : rnd(5), .rate2quantum = 10, .defcls = between(1, 4)};
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	nl_attr(TCA_HTB_INIT, &opt, sizeof(opt));
	nl_end(nest);
}

static void opt_hfsc(bool valid)
{
	struct tc_hfsc_qopt opt = {.defcls = between(1, 4)};

	nl_attr(TCA_OPTIONS, &opt, valid ? sizeof(opt) : rnd(sizeof(opt)));
}

static void opt_ets(bool valid)
{
	uint8_t bands = valid ? between(2, 8) : rnd(20);
	struct rtattr *nest = nl_nest(TCA_OPTIONS), *inner;

	nl_u8(TCA_ETS_NBANDS, bands);
	nl_u8(TCA_ETS_NSTRICT, valid ? rnd(bands) : rnd(20));
	inner = nl_nest(TCA_ETS_PRIOMAP);
	for (int i = 0; i < 8; i++)
		nl_u8(TCA_ETS_PRIOMAP_BAND, valid ? rnd(bands) : rnd(20));
	nl_end(inner);
	nl_end(nest);
}

static void opt_cake(bool valid)
{
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	nl_u64(TCA_CAKE_BASE_RATE64, rate_bytes());
	/* no other number of tins: cake frees what waits in one that goes and tells no parent */
	if (!valid)
		nl_u32(TCA_CAKE_DIFFSERV_MODE, between(CAKE_DIFFSERV_MAX, 1000));
	nl_u32(TCA_CAKE_MEMORY, between(1, 200000));
	nl_end(nest);
}

/*
 * Qdiscs by name; the first is what all is about. Not those that leave their parents
 * with wrong counts, whoever the parent is: multiq does not count the bytes that it
 * takes in, blackhole counts nothing, skbprio does not tell that it took a packet in
 * another one's place.
 */
const struct kind kinds[] = {
	{"paqm", opt_paqm, true, 180},
	{"dcbt", opt_dcbt, false, 40},
	{"rlqos", opt_rlqos, false, 40},
	{"pfifo", opt_fifo, false, 10},
	{"bfifo", opt_bfifo, false, 5},
	{"prio", opt_prio, true, 12},
	{"drr", opt_none, true, 10},
	{"qfq", opt_none, true, 10},
	{"hfsc", opt_hfsc, true, 10},
	{"htb", opt_htb, true, 12},
	{"ets", opt_ets, true, 10},
	{"mq", opt_none, true, 8},
	{"tbf", opt_tbf, true, 12},
	{"netem", opt_netem, true, 14},
	{"fq_codel", opt_fq_codel, true, 10},
	{"codel", opt_codel, false, 6},
	{"red", opt_red, true, 8},
	{"sfq", opt_sfq, true, 6},
	{"sfb", opt_sfb, true, 4},
	{"choke", opt_red, true, 3},
	{"cake", opt_cake, true, 5},
	{"fq", opt_none, false, 3},
	{"pie", opt_pie, false, 4},
	{"fq_pie", opt_none, false, 3},
	{"dualpi2", opt_none, true, 4},
	{"clsact", opt_none, false, 2},
	{"ingress", opt_none, false, 1},

	{"nonesuch", opt_none, false, 1},
};

const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

const struct kind *random_kind(void)
{
	static uint32_t total;
	uint32_t pick;

	if (!total)
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
			total += kinds[i].weight;
	pick = rnd(total);
	for (size_t i = 0;; i++) {
		if (pick < kinds[i].weight)
			return &kinds[i];
		pick -= kinds[i].weight;
	}
}

/* A size table with a small or an extreme overhead. */
void opt_stab(void)
{
	struct tc_sizespec spec = {.linklayer = TC_LINKLAYER_ETHERNET,
				   .overhead = chance(50) ? (int)rnd(200) - 100 : (int)rnd64(),
				   .mpu = rnd(200)};
	struct rtattr *nest = nl_nest(TCA_STAB);

	nl_attr(TCA_STAB_BASE, &spec, sizeof(spec));
	nl_end(nest);
}

/* ------------------------------------------------------------ classes, filters */

/*
 * hfsc of Linux 7.3 forgets at a reset that classes with a real-time curve have left its tree
 * of eligible ones: one that held packets as its device went down never sends again. So an
 * epoch has either such curves or devices that go down.
 */
bool hfsc_real_time(void)
{
	return epoch % 2;
}

void opt_class(const char *kind, bool valid)
{
	struct tc_service_curve curve = {.m1 = rate_bytes(), .d = rnd(10000), .m2 = rate_bytes()};
	struct tc_htb_opt htb = {.rate = rate_spec(),
				 .ceil = rate_spec(),
				 .buffer = 100000,
				 .cbuffer = 100000,
				 .prio = rnd(8)};
	struct rtattr *nest = nl_nest(TCA_OPTIONS);

	if (!valid && chance(50)) {
		nl_u32(rnd(10), rnd_edge());
	} else if (!strcmp(kind, "drr")) {
		nl_u32(TCA_DRR_QUANTUM, number(valid, 1, 10000));
	} else if (!strcmp(kind, "qfq")) {
		nl_u32(TCA_QFQ_WEIGHT, number(valid, 1, 20));
		nl_u32(TCA_QFQ_LMAX, number(valid, 512, 65000));
	} else if (!strcmp(kind, "hfsc")) {
		nl_attr(TCA_HFSC_FSC, &curve, sizeof(curve));
		if (hfsc_real_time() && chance(50))
			nl_attr(TCA_HFSC_RSC, &curve, sizeof(curve));
		if (chance(30))
			nl_attr(TCA_HFSC_USC, &curve, sizeof(curve));
	} else if (!strcmp(kind, "htb")) {
		if (htb.ceil.rate < htb.rate.rate)
			htb.ceil.rate = htb.rate.rate;
		nl_attr(TCA_HTB_PARMS, &htb, sizeof(htb));
	} else if (!strcmp(kind, "ets")) {
		nl_u32(TCA_ETS_QUANTA_BAND, number(valid, 1, 5000));
	} else {
		nl_u32(1, rnd_edge());
	}
	nl_end(nest);
}

/* One action in an attribute of a filter. */
static void opt_action(uint16_t attribute, const uint32_t *devices, int count)
{
	static const int verdicts[] = {
		TC_ACT_OK,     TC_ACT_SHOT, TC_ACT_STOLEN,     TC_ACT_QUEUED,	TC_ACT_PIPE,
		TC_ACT_UNSPEC, TC_ACT_TRAP, TC_ACT_RECLASSIFY, TC_ACT_REDIRECT, 1000};
	int verdict = verdicts[chance(85) ? rnd(7) : rnd(ARRAY_SIZE(verdicts))];
	struct tc_gact gact = {.action = verdict};
	struct tc_skbedit edit = {.action = TC_ACT_PIPE};
	struct tc_mirred mirred = {.action = TC_ACT_PIPE, .eaction = TCA_EGRESS_MIRROR};
	struct rtattr *list = nl_nest(attribute), *action = nl_nest(1), *nest;

	switch (rnd(4)) {
	case 0:
		nl_str(TCA_ACT_KIND, "skbedit");
		nest = nl_nest(TCA_ACT_OPTIONS);
		nl_attr(TCA_SKBEDIT_PARMS, &edit, sizeof(edit));
		nl_u32(TCA_SKBEDIT_PRIORITY, between(1, 12) << 16 | rnd(4));
		break;
	case 1:
		nl_str(TCA_ACT_KIND, "mirred");
		nest = nl_nest(TCA_ACT_OPTIONS);
		mirred.ifindex = devices[rnd(count)];
		if (chance(40)) {
			mirred.eaction = chance(50) ? TCA_EGRESS_REDIR : TCA_INGRESS_REDIR;
			mirred.action = TC_ACT_STOLEN;
		}
		nl_attr(TCA_MIRRED_PARMS, &mirred, sizeof(mirred));
		break;
	default:
		nl_str(TCA_ACT_KIND, "gact");
		nest = nl_nest(TCA_ACT_OPTIONS);
		nl_attr(TCA_GACT_PARMS, &gact, sizeof(gact));
	}
	nl_end(nest);
	nl_end(action);
	nl_end(list);
}

void opt_filter(const char *kind, uint32_t classid, const uint32_t *devices, int count)
{
	static const struct {
		const char *kind;
		uint16_t classid, action;
	} attributes[] = {
		{"matchall", TCA_MATCHALL_CLASSID, TCA_MATCHALL_ACT},
		{"u32", TCA_U32_CLASSID, TCA_U32_ACT},
		{"fw", TCA_FW_CLASSID, TCA_FW_ACT},
		{"basic", TCA_BASIC_CLASSID, TCA_BASIC_ACT},
		{"flower", TCA_FLOWER_CLASSID, TCA_FLOWER_ACT},
	};
	struct {
		struct tc_u32_sel sel;
		struct tc_u32_key key;
	} u32 = {.sel = {.flags = TC_U32_TERMINAL, .nkeys = 1}};
	bool action = chance(40);
	struct rtattr *nest = nl_nest(TCA_OPTIONS);
	int i = 0;

	while (strcmp(kind, attributes[i].kind))
		i++;
	if (!strcmp(kind, "u32")) {
		u32.key.mask = htonl(chance(50) ? 0 : 1U << rnd(32));
		u32.key.off = 4 * rnd(8);
	}
	nl_u32(attributes[i].classid, classid);
	if (!strcmp(kind, "u32"))
		nl_attr(TCA_U32_SEL, &u32, sizeof(u32));
	if (!strcmp(kind, "flower")) {
		nl_u8(TCA_FLOWER_KEY_IP_PROTO, chance(50) ? 17 : 6);
		nl_u16(TCA_FLOWER_KEY_ETH_TYPE, htons(ETH_P_IP));
	}
	if (action)
		opt_action(attributes[i].action, devices, count);
	nl_end(nest);
}
