// SPDX-License-Identifier: GPL-2.0
/* Logging; see log.h. */
#include "log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define LOG_BURST 20
#define LOG_PER_S 5

bool log_verbose;

static struct {
	time_t t;
	int credit;
	uint64_t suppressed;
} limits[LOG_CLASS_MAX];

static void put(const char *fmt, va_list ap)
{
	char line[512];

	vsnprintf(line, sizeof(line), fmt, ap);
	fprintf(stderr, "paqmd: %s\n", line);
}

void log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(fmt, ap);
	va_end(ap);
}

void log_limited(enum log_class c, const char *fmt, ...)
{
	struct timespec now;
	va_list ap;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!limits[c].t || now.tv_sec - limits[c].t >= LOG_BURST / LOG_PER_S)
		limits[c].credit = LOG_BURST;
	else
		limits[c].credit += (int)(now.tv_sec - limits[c].t) * LOG_PER_S;
	if (limits[c].credit > LOG_BURST)
		limits[c].credit = LOG_BURST;
	limits[c].t = now.tv_sec;
	if (limits[c].credit <= 0) {
		limits[c].suppressed++;
		return;
	}
	limits[c].credit--;
	if (limits[c].suppressed) {
		log_line("%llu similar lines left out", (unsigned long long)limits[c].suppressed);
		limits[c].suppressed = 0;
	}
	va_start(ap, fmt);
	put(fmt, ap);
	va_end(ap);
}
