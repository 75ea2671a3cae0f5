/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers and rtnetlink requests of the torture test; see torture_nl.c.
 */
#ifndef TORTURE_NL_H
#define TORTURE_NL_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NL_UNANSWERED (-1)
#define ARRAY_SIZE(x) (sizeof(x) / sizeof((x)[0]))

struct request {
	union {
		struct nlmsghdr head;
		char bytes[16384];
	};
};

extern struct request req;

void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...);
void rng_seed(uint64_t seed, uint64_t part);
uint64_t rnd64(void);
uint32_t rnd(uint32_t below);
uint32_t between(uint32_t low, uint32_t high);
bool chance(uint32_t percent);
uint64_t rnd_magnitude(void);
uint64_t rnd_edge(void);
uint32_t number(bool valid, uint32_t low, uint32_t high);
void nl_open(void);
void namespace_new(void);
void *nl_begin(uint16_t type, uint16_t flags, size_t len);
void *nl_attr(uint16_t type, const void *data, size_t len);
#define nl_u8(type, value) nl_attr(type, &(uint8_t){value}, 1)
#define nl_u16(type, value) nl_attr(type, &(uint16_t){value}, 2)
#define nl_u32(type, value) nl_attr(type, &(uint32_t){value}, 4)
#define nl_u64(type, value) nl_attr(type, &(uint64_t){value}, 8)
void nl_str(uint16_t type, const char *text);
struct rtattr *nl_nest(uint16_t type);
void nl_end(struct rtattr *nest);
int nl_talk(void);
int nl_dump(void (*take)(const struct nlmsghdr *object));
void nl_parse(const struct rtattr *attr, int left, const struct rtattr **table, int max);
void fault_arm(int nth);
bool fault_disarm(void);
void write_file(const char *path, const char *text);

#endif /* TORTURE_NL_H */
