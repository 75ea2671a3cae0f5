// SPDX-License-Identifier: GPL-2.0
/*
 * paqmtop: what the paqm queueing disciplines of this machine decide, live: the law's last round,
 * messages to senders, drops by cause. BPF programs on the tracepoints paqm:law, paqm:notice and
 * paqm:drop count; this prints.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/types.h>
#include <math.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <jansson.h>

#include "feedback-daemon/host/utf8.h"
#include "paqmtop.h"
#include "paqmtop.skel.h"

#define SILENT_NS 60000000000ULL			  /* after which a device may have gone */
#define ROWS_KEPT (PAQMTOP_DEVICES - PAQMTOP_DEVICES / 4) /* the rest is for new devices */

static const char *const event_names[PAQMTOP_EVENTS] = {"flow", "split", "capacity", "queue"};
static const char *const class_names[PAQMTOP_CLASSES] = {"media", "elastic"};
static const char *const reason_names[PAQMTOP_REASONS] = {"tail", "inner", "strike", "mark"};

static volatile sig_atomic_t stopped;

struct field {
	const char *name;
	size_t offset, size;
};

#define FIELD(type, name)                                                                          \
	{                                                                                          \
#name, offsetof(struct type, name), sizeof(((struct type *)0)->name)               \
	}

static const struct field law_fields[] = {FIELD(paqmtop_law, dev),
					  FIELD(paqmtop_law, router_id),
					  FIELD(paqmtop_law, capacity),
					  FIELD(paqmtop_law, fair),
					  FIELD(paqmtop_law, rate),
					  FIELD(paqmtop_law, elastic_rate),
					  FIELD(paqmtop_law, seq),
					  FIELD(paqmtop_law, events),
					  FIELD(paqmtop_law, backlog),
					  FIELD(paqmtop_law, n_media),
					  FIELD(paqmtop_law, n_elastic),
					  FIELD(paqmtop_law, share_q16),
					  {NULL, 0, 0}};
static const struct field notice_fields[] = {FIELD(paqmtop_notice, dev),
					     FIELD(paqmtop_notice, erf),
					     FIELD(paqmtop_notice, ecf),
					     FIELD(paqmtop_notice, queued),
					     {NULL, 0, 0}};
static const struct field drop_fields[] = {FIELD(paqmtop_drop, dev),
					   FIELD(paqmtop_drop, class),
					   FIELD(paqmtop_drop, reason),
					   FIELD(paqmtop_drop, len),
					   {NULL, 0, 0}};

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list ap;

	fputs("paqmtop: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* True if the kernel's description of the event has the field just there. */
static bool described(const char *text, const struct field *want)
{
	char pattern[96];
	const char *at;

	/* "\tfield:char dev[16];\toffset:8;\tsize:16;\tsigned:0;" */
	snprintf(pattern, sizeof(pattern), "offset:%zu;\tsize:%zu;", want->offset, want->size);
	for (at = strstr(text, "\tfield:"); at; at = strstr(at + 1, "\tfield:")) {
		const char *end = strchr(at, ';');
		const char *name = end;

		if (!end)
			return false;
		if (end[-1] == ']') /* an array: its length is behind the name */
			while (name > at && *name != '[')
				name--;
		if ((size_t)(name - at) > strlen(want->name) &&
		    name[-(ptrdiff_t)strlen(want->name) - 1] == ' ' &&
		    !strncmp(name - strlen(want->name), want->name, strlen(want->name)))
			return !strncmp(end + 2, pattern, strlen(pattern));
	}
	return false;
}

static void check_event(const char *event, const struct field *fields)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char path[128], text[8192];
	bool denied = false;
	FILE *file = NULL;
	size_t n;

	for (size_t i = 0; !file && i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(path, sizeof(path), "%s/events/paqm/%s/format", roots[i], event);
		file = fopen(path, "r");
		denied = denied || (!file && errno == EACCES);
	}
	if (!file && denied)
		die("may not read the tracepoints; run it as root");
	if (!file)
		die("no tracepoint paqm:%s: load the module (modprobe sch_paqm) and mount tracefs "
		    "(mount -t tracefs tracefs /sys/kernel/tracing)",
		    event);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	for (; fields->name; fields++)
		if (!described(text, fields))
			die("the loaded sch_paqm lays out \"%s\" of paqm:%s differently; use "
			    "the paqmtop of the same version",
			    fields->name, event);
}

/* Value of an IEEE binary32, as the messages carry it. */
static double from_binary32(__u32 bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *device_json(const struct paqmtop_device *dev)
{
	json_t *events = json_object(), *out;
	char router[17];

	snprintf(router, sizeof(router), "%016llx", (unsigned long long)dev->router_id);
	for (int i = 0; i < PAQMTOP_EVENTS; i++)
		json_object_set_new(events, event_names[i], json_integer(dev->event_rounds[i]));
	out = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:o, s:I, s:I}",
			"router", router, "seq", (json_int_t)dev->seq, "capacity_bps",
			(json_int_t)dev->capacity, "fair_rate_bps", (json_int_t)dev->fair,
			"outer_rate_bps", (json_int_t)dev->rate, "elastic_rate_bps",
			(json_int_t)dev->elastic_rate, "backlog_bytes", (json_int_t)dev->backlog,
			"media_flows", (json_int_t)dev->n_media, "elastic_flows",
			(json_int_t)dev->n_elastic, "media_weight", dev->share_q16 / 65536.0,
			"rounds", (json_int_t)dev->rounds, "event_rounds", events, "notices_queued",
			(json_int_t)dev->notices_queued, "notices_ring",
			(json_int_t)dev->notices_ring_full);
	if (!out)
		die("out of memory");
	json_object_set_new(out, "erf_bps", number(from_binary32(dev->erf)));
	json_object_set_new(out, "ecf", number(from_binary32(dev->ecf)));
	for (int c = 0; c < PAQMTOP_CLASSES; c++) {
		json_t *class = json_object();

		for (int r = 0; r < PAQMTOP_REASONS; r++) {
			char key[32];

			snprintf(key, sizeof(key), "%s_packets", reason_names[r]);
			json_object_set_new(class, key, json_integer(dev->packets[c][r]));
			snprintf(key, sizeof(key), "%s_bytes", reason_names[r]);
			json_object_set_new(class, key, json_integer(dev->bytes[c][r]));
		}
		json_object_set_new(out, class_names[c], class);
	}
	return out;
}

static void print_rate(const char *label, double rate)
{
	static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"};
	size_t unit = 0;

	while (rate >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		rate /= 1000;
		unit++;
	}
	printf("%s %.4g %s", label, rate, units[unit]);
}

static void print_device(const char *name, const struct paqmtop_device *dev,
			 const struct paqmtop_device *before)
{
	printf("%s  router %016llx", name, (unsigned long long)dev->router_id);
	if (dev->rounds) {
		print_rate("\n  capacity", dev->capacity);
		print_rate("  fair", dev->fair);
		print_rate("  media", dev->rate);
		print_rate("  elastic", dev->elastic_rate);
		printf("\n  flows %u media %u elastic  media weight %.1f%%  media backlog %u b",
		       dev->n_media, dev->n_elastic, dev->share_q16 / 655.36, dev->backlog);
	}
	printf("\n  rounds %llu (+%llu) by event:", (unsigned long long)dev->rounds,
	       (unsigned long long)(dev->rounds - before->rounds));
	for (int i = 0; i < PAQMTOP_EVENTS; i++)
		printf(" %s %llu", event_names[i], (unsigned long long)dev->event_rounds[i]);
	printf("\n  notices %llu (+%llu) ring full %llu", (unsigned long long)dev->notices_queued,
	       (unsigned long long)(dev->notices_queued - before->notices_queued),
	       (unsigned long long)dev->notices_ring_full);
	if (dev->notices_queued)
		print_rate("  last advice", from_binary32(dev->erf));
	printf("\n  %-8s", "");
	for (int r = 0; r < PAQMTOP_REASONS; r++)
		printf(" %18s", reason_names[r]);
	for (int c = 0; c < PAQMTOP_CLASSES; c++) {
		printf("\n  %-8s", class_names[c]);
		for (int r = 0; r < PAQMTOP_REASONS; r++) {
			char cell[48];

			snprintf(cell, sizeof(cell), "%llu (+%llu)",
				 (unsigned long long)dev->packets[c][r],
				 (unsigned long long)(dev->packets[c][r] - before->packets[c][r]));
			printf(" %18s", cell);
		}
	}
	printf("\n\n");
}

struct row {
	char name[PAQMTOP_NAME];
	struct paqmtop_device dev;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

static bool wanted(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

static int by_silence(const void *a, const void *b)
{
	__u64 one = ((const struct row *)a)->dev.heard_ns;
	__u64 other = ((const struct row *)b)->dev.heard_ns;

	return (one < other) - (one > other);
}

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000ULL + (__u64)t.tv_nsec;
}

/*
 * Whether a device has gone: long silent, and not here. One of another network namespace cannot be
 * looked up.
 */
static bool gone(const struct row *row, __u64 now)
{
	return row->dev.heard_ns + SILENT_NS < now && !if_nametoindex(row->name);
}

/*
 * All devices, or those asked for, by name. Of those that were silent since the last report, rows
 * go if the device has gone, and if there are many the longest silent: new devices need rows.
 */
static size_t collect(int map, struct row *rows, char **names, __u64 since)
{
	char key[PAQMTOP_NAME], *last = NULL;
	size_t all = 0, kept = 0, n = 0;
	__u64 now = now_ns();

	while (all < PAQMTOP_DEVICES && !bpf_map_get_next_key(map, last, key)) {
		last = key;
		memcpy(rows[all].name, key, sizeof(key));
		if (!bpf_map_lookup_elem(map, key, &rows[all].dev))
			all++;
	}
	qsort(rows, all, sizeof(*rows), by_silence);
	for (size_t i = 0; i < all; i++) {
		if (rows[i].dev.heard_ns < since && (kept >= ROWS_KEPT || gone(&rows[i], now))) {
			bpf_map_delete_elem(map, rows[i].name);
			continue;
		}
		kept++;
		if (wanted(rows[i].name, names))
			rows[n++] = rows[i];
	}
	qsort(rows, n, sizeof(*rows), by_name);
	return n;
}

static void show(const struct row *rows, size_t n, const struct row *old, size_t n_old, bool json,
		 __u64 lost)
{
	static const struct paqmtop_device zero;
	struct timespec now;

	if (json) {
		json_t *top, *all = json_object();

		clock_gettime(CLOCK_REALTIME, &now);
		for (size_t i = 0; i < n; i++) {
			char name[PAQMTOP_NAME];

			memcpy(name, rows[i].name, sizeof(name));
			utf8_mend(name);
			json_object_set_new(all, name, device_json(&rows[i].dev));
		}
		top = json_pack("{s:f, s:o, s:I}", "time", now.tv_sec + now.tv_nsec / 1e9,
				"devices", all, "lost_records", (json_int_t)lost);
		if (!top)
			die("out of memory");
		json_dumpf(top, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
		putchar('\n');
		json_decref(top);
	} else {
		if (isatty(STDOUT_FILENO))
			printf("\033[H\033[2J");
		if (!n)
			printf("nothing passes a paqm qdisc\n");
		for (size_t i = 0; i < n; i++) {
			const struct row *before =
				bsearch(&rows[i], old, n_old, sizeof(*old), by_name);

			print_device(rows[i].name, &rows[i].dev, before ? &before->dev : &zero);
		}
		if (lost)
			printf("%llu records of more than %d devices at a time were lost\n",
			       (unsigned long long)lost, PAQMTOP_DEVICES);
	}
	if (fflush(stdout))
		exit(1); /* the reader has gone */
}

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list ap)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, ap) : 0;
}

static void usage(FILE *out)
{
	fputs("Usage: paqmtop [-j] [-n COUNT] [-i SECONDS] [DEVICE...]\n"
	      "What the paqm queueing disciplines decide: law, messages, drops by cause.\n"
	      "  -j, --json              one JSON object per line\n"
	      "  -n, --count COUNT       stop after COUNT reports (default: when interrupted)\n"
	      "  -i, --interval SECONDS  between reports, 0.1 to 3600 (default: 1)\n"
	      "  -h, --help              print this help and exit\n"
	      "  -V, --version           print the version and exit\n",
	      out);
}

static double parse(const char *text, const char *what, double low, double high)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && !*end && value >= low && value <= high)
		return value;
	fprintf(stderr, "paqmtop: %s must be a number from %g to %g, not \"%s\"\n", what, low, high,
		text);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},	    {"count", required_argument, NULL, 'n'},
		{"interval", required_argument, NULL, 'i'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	    {NULL, 0, NULL, 0}};
	struct sigaction action = {.sa_handler = on_signal};
	struct row *rows, *old;
	struct itimerspec every;
	struct paqmtop_bpf *skel;
	unsigned long count = 0;
	double interval = 1;
	bool json = false;
	size_t n_old = 0;
	uint64_t ticks;
	__u64 since = 0;
	int c, timer;

	while ((c = getopt_long(argc, argv, "jn:i:hV", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'n':
			count = (unsigned long)parse(optarg, "the count", 1, 1e9);
			break;
		case 'i':
			interval = parse(optarg, "the interval", 0.1, 3600);
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			puts("paqmtop " PAQM_VERSION);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	check_event("law", law_fields);
	check_event("notice", notice_fields);
	check_event("drop", drop_fields);
	libbpf_set_print(quiet);
	skel = paqmtop_bpf__open_and_load();
	if (!skel)
		die("the kernel refuses the BPF programs (%s); they need root, or "
		    "CAP_BPF and CAP_PERFMON",
		    strerror(errno));
	if (paqmtop_bpf__attach(skel))
		die("cannot attach to the tracepoints: %s", strerror(errno));
	rows = calloc(PAQMTOP_DEVICES, sizeof(*rows));
	old = calloc(PAQMTOP_DEVICES, sizeof(*old));
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	if (!rows || !old || timer < 0)
		die("cannot start: %s", strerror(errno));
	every.it_interval.tv_sec = (time_t)interval;
	every.it_interval.tv_nsec = (long)((interval - (double)(time_t)interval) * 1e9);
	every.it_value = every.it_interval;
	timerfd_settime(timer, 0, &every, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);

	for (unsigned long done = 0; !stopped && (!count || done < count); done++) {
		struct row *swap = old;
		__u64 now;
		size_t n;

		/* a signal ends the wait; the last report then holds what was counted so far */
		if (read(timer, &ticks, sizeof(ticks)) < 0 && errno != EINTR)
			die("cannot wait: %s", strerror(errno));
		now = now_ns(); /* before the rows are read: what comes meanwhile is of the next */
		n = collect(bpf_map__fd(skel->maps.devices), rows, argv + optind, since);
		since = now;
		show(rows, n, old, n_old, json, skel->bss->lost);
		old = rows;
		rows = swap;
		n_old = n;
	}
	free(rows);
	free(old);
	close(timer);
	paqmtop_bpf__destroy(skel);
	return 0;
}
