/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the traffic programs of the lab have in common (testbed/guest/load.c,
 * kernel/lab-tests/spec_traffic.c): errors, the guest's virtual clock, numbers from options.
 * PROGRAM, the name before each error, is defined before this file is included.
 */
#ifndef PAQM_TRAFFIC_H
#define PAQM_TRAFFIC_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS 1000000000LL
#define HEADERS 28 /* IPv4 and UDP */
#define MOST 1500  /* bytes of an IP packet */
#define BATCH 64   /* packets received at once */

/* Ends the program with status 2. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs(PROGRAM ": ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

static inline int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* The value of option --@name, within limits. */
static inline double number(const char *name, const char *text, double least, double most)
{
	char *end;
	double v = strtod(text, &end);

	if (*end || end == text || !(v >= least && v <= most))
		die("--%s %s: want a number from %g to %g", name, text, least, most);
	return v;
}

#endif /* PAQM_TRAFFIC_H */
