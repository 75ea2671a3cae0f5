/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a qdisc plugin shares with tc: the descriptor tc looks up after dlopen(),
 * and the few of tc's own functions that q_paqm.c calls.
 *
 * iproute2 installs no header for this. Only symbols that tc exports in every
 * release from 6.1 on may be named here; tests/test_symbols.sh holds the plugin to it.
 */
#ifndef PAQM_TC_PLUGIN_H
#define PAQM_TC_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>

/* Layout fixed since iproute2 5.8; the first argument became const in 6.9. */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt, __u32 block_idx,
			 bool *p_has);
};

/* Kind of output a print function is for; the colour is ignored in JSON. */
enum output_type { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
enum color_attr { COLOR_IFNAME };

extern int show_details;

bool is_json_context(void);
void print_nl(void);
void open_json_object(const char *key);
void close_json_object(void);
void open_json_array(enum output_type type, const char *key);
void close_json_array(enum output_type type, const char *key);
int print_color_bool(enum output_type t, enum color_attr c, const char *key, const char *fmt,
		     bool value);
int print_color_string(enum output_type t, enum color_attr c, const char *key, const char *fmt,
		       const char *value);
int print_color_null(enum output_type t, enum color_attr c, const char *key, const char *fmt,
		     const char *value);
int print_color_s64(enum output_type t, enum color_attr c, const char *key, const char *fmt,
		    int64_t value);
int print_color_u64(enum output_type t, enum color_attr c, const char *key, const char *fmt,
		    uint64_t value);
int print_color_float(enum output_type t, enum color_attr c, const char *key, const char *fmt,
		      double value);

/* 0 if the text is a value; sizes and rates in bytes, times in ns. */
int get_rate64(__u64 *rate, const char *str);
int get_size(unsigned int *size, const char *str);
int get_time64(__s64 *time, const char *str);

int addattr32(struct nlmsghdr *n, int maxlen, int type, __u32 data);
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
int addattr64(struct nlmsghdr *n, int maxlen, int type, __u64 data);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr(struct rtattr *tb[], int max, struct rtattr *rta, int len);

#endif /* PAQM_TC_PLUGIN_H */
