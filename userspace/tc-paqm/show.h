/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Values as text and as JSON, for the options and for the statistics.
 */
#ifndef PAQM_TC_SHOW_H
#define PAQM_TC_SHOW_H

#include <stddef.h>
#include <stdlib.h>
#include <linux/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define Q24_ONE (1U << 24)
#define Q16_ONE (1U << 16)
/* Longest text of a number, a time or a rate. */
#define TEXT_SIZE 64

/* @digits: significant ones; options want all, measured values few. */
const char *show_rate(__u64 bps, int digits, char *buf);
const char *show_time(__u64 ns, int digits, char *buf);
const char *measured_rate(__u64 bps, char *buf);
const char *measured_time(__u64 ns, char *buf);
/* An address of family 4 or 6, in 16 bytes. */
const char *show_address(__u8 family, const __u8 *addr, char *buf);

/* One value each; without a key inside of an array. */
void json_u64(const char *key, __u64 value);
void json_s64(const char *key, __s64 value);
void json_string(const char *key, const char *value);
void json_bool(const char *key, bool value);
void json_float(const char *key, double value);

#endif /* PAQM_TC_SHOW_H */
