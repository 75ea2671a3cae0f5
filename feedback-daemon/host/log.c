// SPDX-License-Identifier: GPL-2.0
/* Logging; see log.h. */
#include "feedback-daemon/host/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "feedback-daemon/host/stdio_fill.h"

#define LOG_BURST 20
#define LOG_PER_S 5

bool log_verbose;
const char *log_name = "paqmd";

static bool journal;
static int out = STDERR_FILENO;
static bool torn;     /* the last line was not written to its end */
static uint64_t lost; /* lines, since one was written */

static struct {
	time_t t;
	int credit;
	uint64_t suppressed;
} limits[LOG_CLASS_MAX];

/* A terminal has room as soon as it has one byte, so it is opened anew, to write no more than it
 * takes: who else has the descriptor keeps one that blocks.
 */
static void open_terminal(void)
{
	int fd = -1;

	if (isatty(STDERR_FILENO))
		fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		out = fd;
}

void log_open(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	stdio_fill();
	/* The variable is inherited: it counts only if it is about this stderr. */
	journal = stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		  !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
	open_terminal();
}

/* Can some lines be written at once? Not to a full pipe or a stopped terminal: whoever reads the
 * log must not make the program wait. Others have the descriptor, too, so it stays one that blocks.
 */
static bool can_write(void)
{
	struct pollfd p = {.fd = out, .events = POLLOUT};

	return poll(&p, 1, 0) != 0;
}

/* Return: true if the line has been written, or there is nobody to tell. */
static bool put_line(int priority, const char *line)
{
	const char *end = torn ? "\n" : "";
	char whole[544];
	ssize_t did;
	int n;

	if (journal)
		n = snprintf(whole, sizeof(whole), "%s<%d>%s\n", end, priority, line);
	else
		n = snprintf(whole, sizeof(whole), "%s%s: %s\n", end, log_name, line);
	/* In one piece: two processes may write here. */
	did = write(out, whole, (size_t)n);
	if (did > 0)
		torn = did < n;
	return did < 0 ? errno != EAGAIN : did == n;
}

static void put(int priority, const char *fmt, va_list ap)
{
	char line[512];

	if (!can_write()) {
		lost++;
		return;
	}
	if (lost) {
		snprintf(line, sizeof(line), "%llu lines lost: nobody has read the log",
			 (unsigned long long)lost);
		if (!put_line(LOG_WARNING, line)) {
			lost++;
			return;
		}
		lost = 0;
	}
	vsnprintf(line, sizeof(line), fmt, ap);
	lost += !put_line(priority, line);
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
