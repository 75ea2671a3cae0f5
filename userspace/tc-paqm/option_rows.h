/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The options of a qdisc, of the table that its module is made of. The one file that includes this
 * is of that qdisc, and defines before
 *
 * OPTION_TABLE		the table
 * OPTION_QDISC		name of the qdisc, a string
 * OPTION_ATTR(a)	attribute of an option
 * OPTION_LAST		the last attribute
 */
#include "core/paqm_fix.h"
#include "userspace/tc-paqm/option.h"

const char option_qdisc[] = OPTION_QDISC;
_Static_assert(OPTION_LAST < OPTION_ATTRS, "more attributes than there is room for");

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
#define WORDS_PACKETS(attr) NULL
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
	 .attr = OPTION_ATTR(attr_),                                                               \
	 .kind = KIND_##kind_,                                                                     \
	 .shown = SHOWN_##shown_,                                                                  \
	 .group = GROUP_##group_,                                                                  \
	 .wide = PAQM_BY_FORM(WIDE_, PAQM_FORM_##kind_)},
#include OPTION_TABLE
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
#include OPTION_TABLE

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
#define COUNT_PACKETS(attr, most)
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
#include OPTION_TABLE
