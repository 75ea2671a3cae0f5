// SPDX-License-Identifier: GPL-2.0
/*
 * The options of sch_paqm, of the table that the module is made of; what stands for several of
 * them; names of DSCPs.
 */
#include "core/paqm_fix.h"
#include "core/paqm_laws.h"
#include "userspace/tc-paqm/option.h"

/* Words of an option, by kind. */
#define TEXT(word, ...) word,
#define WORDS_WORD(attr)                                                                           \
	(const char *const[])                                                                      \
	{                                                                                          \
		PAQM_WORDS_##attr(TEXT, TEXT, TEXT) NULL                                           \
	}
#define WORDS_RATE(attr) NULL
#define WORDS_TIME(attr) NULL
#define WORDS_SIZE(attr) NULL
#define WORDS_TARGET(attr) NULL
#define WORDS_TARGET_BYTES(attr) NULL
#define WORDS_RATIO(attr) NULL
#define WORDS_PERCENT(attr) NULL
#define WORDS_SHARE(attr) NULL
#define WORDS_COUNT(attr) NULL
#define WORDS_SIGNED(attr) NULL
#define WORDS_FLAG(attr) NULL
#define WORDS_ID(attr) NULL
#define WORDS_SEED(attr) NULL
#define WORDS_DSCPS(attr) NULL
#define WORDS_PREFIXES(attr) NULL
#define WORDS_KEY(attr) NULL

#define WIDE_U32 false
#define WIDE_S32 false
#define WIDE_Q24 false
#define WIDE_Q16 false
#define WIDE_U64 true
#define WIDE_OWN false

const struct option options[] = {
#define PAQM_OPTION(kind_, attr_, field_, name_, key_, zero_, least_, most_, first_, shown_,       \
		    group_)                                                                        \
	{.name = name_,                                                                            \
	 .key = key_,                                                                              \
	 .zero = sizeof(zero_) > 1 ? zero_ : NULL,                                                 \
	 .ones = KIND_##kind_ == KIND_RATE ? "auto" : NULL,                                        \
	 .words = WORDS_##kind_(attr_),                                                            \
	 .min = PAQM_END(kind_) least_,                                                            \
	 .max = PAQM_END(kind_) most_,                                                             \
	 .initial = PAQM_INITIAL(kind_) first_,                                                    \
	 .attr = TCA_PAQM_##attr_,                                                                 \
	 .kind = KIND_##kind_,                                                                     \
	 .shown = SHOWN_##shown_,                                                                  \
	 .group = GROUP_##group_,                                                                  \
	 .wide = PAQM_BY_FORM(WIDE_, PAQM_FORM_##kind_)},
#include "kernel/paqm_option_table.h"
	{.name = NULL},
};

/* Every fraction's decimal, which refusals show, is what its numerator and denominator say. */
#define AGREE_Q24(decimal, num, den)                                                               \
	_Static_assert((long long)decimal##e9 == 1000000000LL * (num) / (den), #decimal);
#define AGREE_Q16 AGREE_Q24
#define AGREE_U32(number, unit)
#define AGREE_S32 AGREE_U32
#define AGREE_U64 AGREE_U32
#define AGREE_OWN AGREE_U32
#define PAQM_OPTION(kind, attr, field, name, key, zero, least, most, first, ...)                   \
	PAQM_BY_FORM(AGREE_, PAQM_FORM_##kind)                                                     \
	least PAQM_BY_FORM(AGREE_, PAQM_FORM_##kind) most PAQM_BY_FORM(AGREE_, PAQM_FORM_##kind)   \
		first
#include "kernel/paqm_option_table.h"

/* Every word of an option is a value that the module takes, and the other way round. */
#define COUNT_WORD(attr, most)                                                                     \
	_Static_assert(sizeof(WORDS_WORD(attr)) / sizeof(char *) == (most) + 2, #attr);
#define COUNT_RATE(attr, most)
#define COUNT_TIME(attr, most)
#define COUNT_SIZE(attr, most)
#define COUNT_TARGET(attr, most)
#define COUNT_TARGET_BYTES(attr, most)
#define COUNT_RATIO(attr, most)
#define COUNT_PERCENT(attr, most)
#define COUNT_SHARE(attr, most)
#define COUNT_COUNT(attr, most)
#define COUNT_SIGNED(attr, most)
#define COUNT_FLAG(attr, most)
#define COUNT_ID(attr, most)
#define COUNT_SEED(attr, most)
#define COUNT_DSCPS(attr, most)
#define COUNT_PREFIXES(attr, most)
#define COUNT_KEY(attr, most)
#define PAQM_OPTION(kind, attr, field, name, key, zero, least, most, ...)                          \
	COUNT_##kind(attr, PAQM_END(kind) most)
#include "kernel/paqm_option_table.h"

/*
 * The published system: the gains of Paper F, which are those of profile fast; K of Paper D; dT and
 * the least decrease of App. C; the weight of its source code; d = RTT + 0.5 s and queues as in
 * Paper F. A published router told every source in every period, whatever that cost.
 */
#define THESIS                                                                                     \
	"feedback icmp classify protocol noisolate nopolice noborrow weights flow split flows "    \
	"media-target 40000b media-inner-target auto elastic-target 350000b target-util 95% "      \
	"noadapt-util interval 10ms gain 0.2 gamma 0.5 alpha 0.75 beta 0.35 period 500ms "         \
	"rtt auto gop 500ms transfer 0 credit 0 md-floor 0.1 forced-md noai-hold ai-factor 1 "     \
	"noerf-count noevents notice-part 20 notice-pause 0 "

const struct shorthand shorthands[] = {
	{"profile", "fast", "alpha 0.75 beta 0.35"},
	{"profile", "robust", "alpha 0.484 beta 0.131"},
	{"preset", "thesis-ecf", THESIS "law ecf"},
	{"preset", "thesis-erf", THESIS "law erf"},
	{NULL, NULL, NULL},
};

const struct dscp dscps[] = {
	{"CS0", 0},   {"BE", 0},    {"DF", 0},	  {"LE", 1},	{"CS1", 8},   {"AF11", 10},
	{"AF12", 12}, {"AF13", 14}, {"CS2", 16},  {"AF21", 18}, {"AF22", 20}, {"AF23", 22},
	{"CS3", 24},  {"AF31", 26}, {"AF32", 28}, {"AF33", 30}, {"CS4", 32},  {"AF41", 34},
	{"AF42", 36}, {"AF43", 38}, {"CS5", 40},  {"VA", 44},	{"NQB", 45},  {"EF", 46},
	{"CS6", 48},  {"CS7", 56},  {NULL, 0},
};
