/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One option of a qdisc as its plugin knows it. The list is made of the table that the module is
 * made of, too; parsing, ranges in messages, help, text and JSON are derived from it. A plugin is
 * these files with its own list (option_list.c; ../tc-dcbt/option_list.c).
 */
#ifndef PAQM_TC_OPTION_H
#define PAQM_TC_OPTION_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "kernel/uapi/linux/pkt_sched_paqm.h"

/* Longest list: the DSCPs by name, or all prefixes. */
#define LIST_SIZE (PAQM_PREFIXES * (INET6_ADDRSTRLEN + 5) + 64 * 4)
#define CODE_POINTS 64
/* More than the number of any attribute. */
#define OPTION_ATTRS 64

enum kind {
	KIND_RATE,	   /* u64 bytes/s */
	KIND_TIME,	   /* u32 us */
	KIND_SIZE,	   /* u32 bytes */
	KIND_TARGET,	   /* u32 us, or u32 bytes in the next option, which wins unless 0 */
	KIND_TARGET_BYTES, /* that option: no name of its own */
	KIND_RATIO,	   /* u32 Q24 */
	KIND_PERCENT,	   /* the same, and N% is understood */
	KIND_SHARE,	   /* u32 Q16, the same */
	KIND_PACKETS,	   /* u32 Q16 */
	KIND_COUNT,	   /* u32 */
	KIND_SIGNED,	   /* s32 */
	KIND_WORD,	   /* u32, index into words */
	KIND_FLAG,	   /* u32 0/1, words NAME and noNAME */
	KIND_ID,	   /* u64, hexadecimal */
	KIND_SEED,	   /* u64, decimal */
	KIND_DSCPS,	   /* u64, a bit for each DSCP */
	KIND_PREFIXES,	   /* struct tc_paqm_prefix[] */
	KIND_KEY,	   /* struct tc_paqm_key; shown is only its id, in a second attribute */
};

enum shown {
	SHOWN_ALWAYS,
	SHOWN_SET,    /* without -d only if it is not the initial value */
	SHOWN_DETAIL, /* with -d */
};

enum group {
	GROUP_EVERYDAY,
	GROUP_RESEARCH, /* for the published laws and experiments */
};

struct option {
	const char *name;
	const char *key;  /* in JSON */
	const char *zero; /* word for the value 0 where that means something else */
	const char *ones; /* the same for the value with all bits set */
	const char *const *words;
	__u64 min, max; /* as on the wire */
	__u64 initial;	/* of a new queue */
	unsigned short attr;
	unsigned char kind;
	unsigned char shown;
	unsigned char group;
	bool wide; /* 64 bits */
};

/* Name of the qdisc. */
extern const char option_qdisc[];

/* In the order in which they are shown; a name of NULL ends the list. */
extern const struct option options[];

/*
 * A word that stands for several options, as they would be typed: the kernel only knows these.
 * Those of one option are together. An option of NULL ends the list.
 */
struct shorthand {
	const char *option;
	const char *name;
	const char *words;
};
extern const struct shorthand shorthands[];

/* Names of code points; where one has two, the first is shown. A name of NULL ends the list. */
struct dscp {
	const char *name;
	unsigned char value;
};
extern const struct dscp dscps[];

/* What 1 is on the wire, of a fraction. */
double option_scale(const struct option *o);

/* A value as a user would type it, of the kinds that are one number; @buf: TEXT_SIZE. */
const char *option_text(const struct option *o, __u64 value, char *buf);
/* The shortest decimal of a fraction. */
void fraction_text(const struct option *o, __u64 value, char *buf);
/* DSCPs, a bit each; @list: LIST_SIZE. */
void dscps_text(__u64 mask, char *list);
/* @buf: TEXT_SIZE. */
const char *prefix_text(const struct tc_paqm_prefix *p, char *buf);
/* A word more for a list that is separated by commas. */
void list_append(char *list, const char *word);

/* What an option takes, on stderr: the end of an error message. */
void print_expected(const struct option *o);
/* The options of a group, on stderr. */
void print_help(enum group group);

#endif /* PAQM_TC_OPTION_H */
