// SPDX-License-Identifier: GPL-2.0
/*
 * What the torture test counts and says: its figures, its last operations, the end at the
 * first fault, and what the kernel says of itself: its log, its taints, kmemleak.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "torture_nl.h"
#include "torture_report.h"

#define HISTORY 40

struct figures *fig;
struct arguments args = {.seed = 1, .ops = 20000, .each = UINT32_MAX};
uint32_t epoch, op_number;
void (*fault_state)(void);

const char *test_name = "torture";
static char history[HISTORY][256];

void __attribute__((format(printf, 1, 2))) note(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(history[op_number % HISTORY], sizeof(history[0]), format, list);
	va_end(list);
	if (args.verbose)
		printf("# %u.%u %s\n", epoch, op_number, history[op_number % HISTORY]);
}

/* The test ends at the first fault: lockdep is silent after it, memory may be broken. */
void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	va_list list;

	printf("not ok %s: seed %lu epoch %u operation %u: ", test_name, args.seed, epoch,
	       op_number);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
	if (fault_state)
		fault_state();
	printf("# the last operations, newest at the end:\n");
	for (uint32_t i = op_number >= HISTORY ? op_number - HISTORY + 1 : 0; i <= op_number; i++)
		printf("#  %u %s\n", i, history[i % HISTORY]);
	if (args.each == UINT32_MAX)
		printf("# again, with a look after every operation of this epoch: "
		       "--seed %lu --first %u --ops %lu --each %u\n",
		       args.seed, args.first, args.ops, epoch);
	fflush(stdout);
	_exit(1);
}

void sleep_us(uint64_t us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* ------------------------------------------------------------- the kernel's log */

static int kmsg_fd;

static int taint(void)
{
	FILE *f = fopen("/proc/sys/kernel/tainted", "r");
	int value = 0;

	if (!f || fscanf(f, "%d", &value) != 1)
		die("/proc/sys/kernel/tainted cannot be read");
	fclose(f);
	return value & (1 << 7 | 1 << 9); /* died, warned */
}

void kmsg_open(void)
{
	kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg_fd < 0)
		die("/dev/kmsg: %s", strerror(errno));
	lseek(kmsg_fd, 0, SEEK_END);
	if (taint())
		die("the kernel is tainted by an earlier fault");
}

/* Fails the test if the kernel complained since the last look. */
void kmsg_check(void)
{
	static const char *const bad[] = {
		"BUG: ",
		"BUG at ",
		"WARNING: ",
		"Kernel panic",
		"Oops",
		"kernel mode fault",
		"UBSAN: ",
		"refcount_t: ",
		"ODEBUG: ",
		"possible recursive locking",
		"possible circular locking",
		"possible irq lock inversion",
		"inconsistent lock state",
		"suspicious RCU usage",
		"DEBUG_LOCKS_WARN",
		"blocked for more than",
		"soft lockup",
		"detected stall",
		"Out of memory:",
		"invalid opcode",
		"negative backlog",
		"not work conserving in",
	};
	static char text[8192];
	ssize_t got;

	for (;;) {
		got = read(kmsg_fd, text, sizeof(text) - 1);
		if (got < 0 && errno == EPIPE) /* overwritten before it was read */
			continue;
		if (got < 0)
			break;
		text[got] = 0;
		char *line = strchr(text, ';');

		line = line ? line + 1 : text;
		line[strcspn(line, "\n")] = 0;
		/* hfsc says so of any child that holds packets back: a shaper is one */
		/* data races: the console has them all, and says whose they are */
		if (strstr(line, "BUG: KCSAN: "))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(bad) - 1; i++)
			if (strcasestr(line, bad[i]))
				fail("the kernel complained: %s", line);
	}
	if (taint())
		fail("the kernel complained: it is tainted");
}

void leaks_check(void)
{
	static const char report[] = "/sys/kernel/debug/kmemleak";
	char text[4096] = "";
	int fd;

	if (access(report, R_OK)) {
		printf("# no kmemleak in this kernel\n");
		return;
	}
	for (int i = 0; i < 2; i++) { /* reported when unreachable twice, and some seconds old */
		sleep_us(6000000);
		write_file(report, "scan");
	}
	fd = open(report, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "unreferenced"))
		fail("memory that nothing points to:\n%s", text);
	close(fd);
	printf("ok %s: kmemleak found nothing\n", test_name);
}
