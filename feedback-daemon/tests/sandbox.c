// SPDX-License-Identifier: GPL-2.0
/*
 * The filters of system calls, as they would be on other machines: what the C library may make of
 * what a process does is let through there, too, and nothing is by which it could open a door.
 * The filters are run here, by a machine of BPF; that they hold is tested with injected calls
 * (process.py).
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feedback-daemon/host/sandbox.h"

#define FD 3 /* the only one that opener and capturer may use */
#define INSNS 4096
#define SOCKETCALL "socketcall"

/* The linker puts these in the place of libseccomp's (meson.build). */
scmp_filter_ctx __real_seccomp_init(uint32_t otherwise);
scmp_filter_ctx __wrap_seccomp_init(uint32_t otherwise);
int __wrap_seccomp_load(const scmp_filter_ctx ctx);

static uint32_t arch;
static struct sock_filter prog[INSNS];
static size_t insns;

void log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

scmp_filter_ctx __wrap_seccomp_init(uint32_t otherwise)
{
	scmp_filter_ctx ctx = __real_seccomp_init(otherwise);

	if (arch != seccomp_arch_native() &&
	    (seccomp_arch_add(ctx, arch) || seccomp_arch_remove(ctx, seccomp_arch_native())))
		abort();
	return ctx;
}

int __wrap_seccomp_load(const scmp_filter_ctx ctx)
{
	FILE *f = tmpfile();

	if (!f || seccomp_export_bpf(ctx, fileno(f)))
		abort();
	rewind(f);
	insns = fread(prog, sizeof(*prog), INSNS, f);
	fclose(f);
	return 0;
}

/* Is this call, with these first two arguments, let through? */
static bool allowed(int call, uint64_t first, uint64_t second)
{
	const struct seccomp_data d = {.nr = call, .arch = arch, .args = {first, second}};
	uint32_t a = 0;
	size_t at;

	for (at = 0; at < insns; at++) {
		const struct sock_filter *i = &prog[at];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const uint8_t *)&d + i->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			at += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			at += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			at += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			at += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k == SECCOMP_RET_ALLOW;
		default:
			abort();
		}
	}
	return false;
}

/* The same by name; those that a machine does not have are nobody's. */
static bool is(const char *call, bool wanted, uint64_t first)
{
	int number = seccomp_syscall_resolve_name_arch(arch, call);

	return number < 0 || allowed(number, first, 0) == wanted;
}

/* Calls of sockets that go through one call with their number there (net.h). */
static const struct {
	const char *call;
	uint64_t number;
} by_number[] = {{"send", 9}, {"recv", 10}, {"sendto", 11}, {"recvfrom", 12}};

static unsigned int check(const char *machine, const char *shape, const char *const *calls)
{
	unsigned int wrong = 0;
	size_t i;

	for (; *calls; calls++) {
		bool good = is(*calls, true, FD);

		for (i = 0; i < sizeof(by_number) / sizeof(by_number[0]); i++)
			if (arch == SCMP_ARCH_X86 && !strcmp(*calls, by_number[i].call))
				good = good && is(SOCKETCALL, true, by_number[i].number);
		if (good)
			continue;
		fprintf(stderr, "%s: %s may not %s\n", machine, shape, *calls);
		wrong++;
	}
	return wrong;
}

int main(void)
{
	static const struct {
		uint32_t arch;
		const char *name;
	} machines[] = {
		{SCMP_ARCH_X86_64, "x86-64"},
		{SCMP_ARCH_AARCH64, "arm64"},
		{SCMP_ARCH_ARM, "arm"},
		{SCMP_ARCH_X86, "i386"},
	};
	static const char *const time[] = {"clock_gettime", "clock_gettime64", NULL},
				 *const ask[] = {"recv", "recvfrom", "send", "sendto", NULL},
				 *const sleep[] = {"clock_nanosleep",
						   "clock_nanosleep_time64",
						   "poll",
						   "ppoll",
						   "ppoll_time64",
						   NULL},
				 *const wait[] = {"poll", "ppoll", "ppoll_time64", NULL},
				 *const rest[] = {"fcntl",   "fcntl64",		"fstat",
						  "fstat64", "statx",		"lseek",
						  "_llseek", "timerfd_settime", "timerfd_settime64",
						  NULL},
				 *const doors[] = {"execve", "socket", "connect", "ptrace", NULL};
	static const struct {
		enum sandbox_shape shape;
		const char *name;
		const char *const *calls[3];
	} shapes[] = {
		{SANDBOX_OPENER, "opener", {ask}},
		{SANDBOX_CAPTURER, "capturer", {sleep}},
		{SANDBOX_WORKER, "worker", {ask, wait, rest}},
		{SANDBOX_NEIGHBOUR, "neighbour", {ask, wait}},
		{SANDBOX_MEET, "meet", {ask, wait}},
	};
	unsigned int wrong = 0;
	size_t m, s, i;

	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) {
		puts("skipped: libseccomp builds filters for machines of the same byte order only");
		return 77;
	}

	for (m = 0; m < sizeof(machines) / sizeof(machines[0]); m++) {
		const char *name = machines[m].name;

		arch = machines[m].arch;
		for (s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
			if (sandbox_filter(shapes[s].shape, FD))
				return 1;
			wrong += check(name, shapes[s].name, time);
			for (i = 0; i < 3 && shapes[s].calls[i]; i++)
				wrong += check(name, shapes[s].name, shapes[s].calls[i]);
			for (i = 0; doors[i]; i++) {
				if (is(doors[i], false, FD))
					continue;
				fprintf(stderr, "%s: %s may %s\n", name, shapes[s].name, doors[i]);
				wrong++;
			}
			/* no other descriptor where the number of the call shows it */
			if (shapes[s].shape == SANDBOX_OPENER &&
			    !(is("send", false, FD + 1) && is("sendto", false, FD + 1))) {
				fprintf(stderr, "%s: the opener may send packets\n", name);
				wrong++;
			}
		}
	}
	if (!wrong)
		puts("all passed");
	return wrong != 0;
}
