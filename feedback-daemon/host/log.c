// SPDX-License-Identifier: GPL-2.0
/* Logging; see log.h. */
#include "feedback-daemon/host/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define LOG_BURST 20
#define LOG_PER_S 5

bool log_verbose;
const char *log_name = "paqmd";

static bool journal;

static struct {
	time_t t;
	int credit;
	uint64_t suppressed;
} limits[LOG_CLASS_MAX];

void log_open(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	/* The variable is inherited: it counts only if it is about this stderr. */
	journal = stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		  !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

static void put(int priority, const char *fmt, va_list ap)
{
	char line[512], whole[544];
	int n;

	vsnprintf(line, sizeof(line), fmt, ap);
	if (journal)
		n = snprintf(whole, sizeof(whole), "<%d>%s\n", priority, line);
	else
		n = snprintf(whole, sizeof(whole), "%s: %s\n", log_name, line);
	/* In one piece: two processes may write here. */
	if (write(STDERR_FILENO, whole, (size_t)n) < 0)
		return; /* and there is nobody to tell */
}

void log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(LOG_ERR, fmt, ap);
	va_end(ap);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(LOG_INFO, fmt, ap);
	va_end(ap);
}

void log_warning(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(LOG_WARNING, fmt, ap);
	va_end(ap);
}

/* May a line of this class be written now? If not it is counted. */
static bool room(enum log_class c)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (!limits[c].t || now.tv_sec - limits[c].t >= LOG_BURST / LOG_PER_S)
		limits[c].credit = LOG_BURST;
	else
		limits[c].credit += (int)(now.tv_sec - limits[c].t) * LOG_PER_S;
	if (limits[c].credit > LOG_BURST)
		limits[c].credit = LOG_BURST;
	limits[c].t = now.tv_sec;
	limits[c].suppressed += limits[c].credit <= 0;
	return limits[c].credit > 0;
}

void log_limited(enum log_class c, const char *fmt, ...)
{
	va_list ap;

	if (!room(c))
		return;
	limits[c].credit--;
	if (limits[c].suppressed) {
		log_info("%llu similar lines left out", (unsigned long long)limits[c].suppressed);
		limits[c].suppressed = 0;
	}
	va_start(ap, fmt);
	put(c == LOG_CLASS_RATE ? LOG_INFO : LOG_WARNING, fmt, ap);
	va_end(ap);
}
