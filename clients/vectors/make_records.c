/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Writes the test vectors of the clients: records of paqm_ipc.h as a compiler lays them out.
 *
 *	make_records FILE		write them
 *	make_records --check FILE	fail if the file is not what would be written
 *
 * A line is a vector: `send` or `take` (seen from a client), the kind, fields as KEY=VALUE, and the
 * record in hexadecimal behind the last space. `take refused` are records that a client must pass
 * over, with the reason.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/paqm_msg_format.h"
#include "feedback-daemon/paqm_ipc.h"

static FILE *out;

static void hex(const void *record, size_t len)
{
	const uint8_t *p = record;

	for (size_t i = 0; i < len; i++)
		fprintf(out, "%s%02x", i ? "" : " ", p[i]);
	fputc('\n', out);
}

static struct paqm_ipc_hdr header(uint8_t kind, size_t len)
{
	return (struct paqm_ipc_hdr){.magic = PAQM_IPC_MAGIC,
				     .version = PAQM_IPC_VERSION,
				     .kind = kind,
				     .len = (uint16_t)len};
}

static void address(const char *text, uint8_t to[16])
{
	if (!*text || inet_pton(AF_INET6, text, to) == 1)
		return;
	to[10] = 0xff;
	to[11] = 0xff;
	inet_pton(AF_INET, text, to + 12);
}

static void registers(void)
{
	static const struct {
		const char *from, *to;
		struct paqm_ipc_register r;
	} t[] = {
		{"192.0.2.1",
		 "198.51.100.7",
		 {.sport = 5004,
		  .dport = 40000,
		  .ssrc = 0x11223344,
		  .floor_bps = 100000,
		  .ceil_bps = 3000000,
		  .gop_us = 500000,
		  .answer_us = 41667,
		  .cookie = 1}},
		{"",
		 "203.0.113.1",
		 {.sport = 1, .dport = 65535, .ceil_bps = PAQM_IPC_RATE_MAX, .cookie = UINT64_MAX}},
		{"2001:db8::1",
		 "2001:db8:0:1::ffff",
		 {.sport = 65535,
		  .dport = 1,
		  .ssrc = UINT32_MAX,
		  .floor_bps = PAQM_IPC_RATE_MAX,
		  .ceil_bps = PAQM_IPC_RATE_MAX,
		  .gop_us = UINT32_MAX,
		  .answer_us = UINT32_MAX,
		  .cookie = 0x0102030405060708}},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct paqm_ipc_register r = t[i].r;

		r.hdr = header(PAQM_IPC_REGISTER, sizeof(r));
		address(t[i].from, r.saddr);
		address(t[i].to, r.daddr);
		fprintf(out,
			"send register cookie=%llu source=%s source_port=%u destination=%s "
			"destination_port=%u ssrc=%u floor_bps=%llu ceiling_bps=%llu gop_us=%u "
			"answer_us=%u",
			(unsigned long long)r.cookie, t[i].from, r.sport, t[i].to, r.dport, r.ssrc,
			(unsigned long long)r.floor_bps, (unsigned long long)r.ceil_bps, r.gop_us,
			r.answer_us);
		hex(&r, sizeof(r));
	}
}

static void other_requests(void)
{
	struct paqm_ipc_unregister u = {.hdr = header(PAQM_IPC_UNREGISTER, sizeof(u)),
					.cookie = 0xfedcba9876543210};
	struct paqm_ipc_status s = {.hdr = header(PAQM_IPC_STATUS, sizeof(s)),
				    .cookie = 3,
				    .wire_bps = 777000,
				    .gop = 5,
				    .qp = 30};

	fprintf(out, "send unregister cookie=%llu", (unsigned long long)u.cookie);
	hex(&u, sizeof(u));
	fprintf(out, "send status cookie=%llu wire_bps=%llu gop=%u qp=%u",
		(unsigned long long)s.cookie, (unsigned long long)s.wire_bps, s.gop, s.qp);
	hex(&s, sizeof(s));
}

/* A record as it is, and as a later release may send it: with more behind it. */
static void twice(const char *fields, const void *record, size_t len)
{
	uint8_t longer[PAQM_IPC_RECORD_MAX] = {0};
	struct paqm_ipc_hdr hdr;

	fputs(fields, out);
	hex(record, len);
	memcpy(longer, record, len);
	memcpy(&hdr, record, sizeof(hdr));
	hdr.len = (uint16_t)(len + 24);
	memcpy(longer, &hdr, sizeof(hdr));
	memset(longer + len, 0xa5, 24);
	fputs(fields, out);
	hex(longer, len + 24);
}

static void answers(void)
{
	static const int32_t errors[] = {0, EEXIST, EINVAL, ENOSPC, EAFNOSUPPORT};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct paqm_ipc_registered r = {.hdr = header(PAQM_IPC_REGISTERED, sizeof(r)),
						.cookie = 7 + i,
						.error = errors[i]};
		char text[80];

		snprintf(text, sizeof(text), "take registered cookie=%llu error=%d",
			 (unsigned long long)r.cookie, r.error);
		twice(text, &r, sizeof(r));
	}
}

static void rates(void)
{
	static const char *const causes[] = {"none", "erf", "ecf", "expired"};
	static const struct {
		const char *router;
		float value;
		struct paqm_ipc_rate r;
	} t[] = {
		{"", 0, {.cookie = 1, .cause = PAQM_CAUSE_NONE}},
		{"192.0.2.254",
		 0.75f,
		 {.cookie = 2,
		  .rate_bps = 850000,
		  .router_id = 0xa1,
		  .mono_ns = 123456789012345,
		  .seq = 17,
		  .period_ms = 500,
		  .qdelay_100us = 35,
		  .cause = PAQM_CAUSE_ERF,
		  .flags = PAQM_F_FINAL | PAQM_F_AUTH,
		  .routers = 2}},
		{"2001:db8::fe",
		 -0.5f,
		 {.cookie = UINT64_MAX,
		  .rate_bps = PAQM_IPC_RATE_MAX,
		  .router_id = UINT64_MAX,
		  .mono_ns = UINT64_MAX,
		  .seq = UINT32_MAX,
		  .period_ms = UINT16_MAX,
		  .qdelay_100us = UINT16_MAX,
		  .cause = PAQM_CAUSE_ECF,
		  .flags = PAQM_F_OVERLOAD | PAQM_F_POLICED,
		  .routers = UINT16_MAX}},
		{"192.0.2.254",
		 0,
		 {.cookie = 2, .router_id = 0xa1, .seq = 18, .cause = PAQM_CAUSE_EXPIRED}},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct paqm_ipc_rate r = t[i].r;
		char text[512];

		r.hdr = header(PAQM_IPC_RATE, sizeof(r));
		address(t[i].router, r.router);
		memcpy(&r.value, &t[i].value, sizeof(r.value));
		snprintf(text, sizeof(text),
			 "take rate cookie=%llu cause=%s rate_bps=%llu router_id=%llu router=%s "
			 "value=%g seq=%u period_ms=%u qdelay_ms=%.1f overload=%d policed=%d "
			 "final=%d auth=%d routers=%u captured_ns=%llu",
			 (unsigned long long)r.cookie, causes[r.cause],
			 (unsigned long long)r.rate_bps, (unsigned long long)r.router_id,
			 t[i].router, (double)t[i].value, r.seq, r.period_ms, r.qdelay_100us / 10.0,
			 !!(r.flags & PAQM_F_OVERLOAD), !!(r.flags & PAQM_F_POLICED),
			 !!(r.flags & PAQM_F_FINAL), !!(r.flags & PAQM_F_AUTH), r.routers,
			 (unsigned long long)r.mono_ns);
		twice(text, &r, sizeof(r));
	}
}

static void refused(void)
{
	struct paqm_ipc_rate r = {.hdr = header(PAQM_IPC_RATE, sizeof(r)), .cookie = 1};

	fputs("take refused reason=short", out);
	hex(&r, sizeof(r.hdr) - 1);
	r.hdr.len = sizeof(r) - 1;
	fputs("take refused reason=shorter-than-its-kind", out);
	hex(&r, sizeof(r) - 1);
	fputs("take refused reason=length", out);
	hex(&r, sizeof(r));
	r.hdr.len = sizeof(r);
	r.hdr.magic ^= 1;
	fputs("take refused reason=magic", out);
	hex(&r, sizeof(r));
	r.hdr.magic ^= 1;
	r.hdr.version++;
	fputs("take refused reason=version", out);
	hex(&r, sizeof(r));
	r.hdr.version--;
	r.hdr.kind = 99;
	fputs("take refused reason=kind", out);
	hex(&r, sizeof(r));
}

/* Return: the file's content, or NULL. */
static char *content(const char *path)
{
	char *text = calloc(1, 1 << 16);
	FILE *in = fopen(path, "r");

	if (!in || !text || !fread(text, 1, (1 << 16) - 1, in)) {
		free(text);
		text = NULL;
	}
	if (in)
		fclose(in);
	return text;
}

int main(int argc, char **argv)
{
	int check = argc == 3 && !strcmp(argv[1], "--check"), bad;
	char *made = NULL, *have;
	size_t len;

	if (argc != 2 && !check) {
		fputs("Usage: make_records [--check] FILE\n", stderr);
		return 2;
	}
	out = check ? open_memstream(&made, &len) : fopen(argv[1], "w");
	if (!out) {
		perror(argv[argc - 1]);
		return 1;
	}
	fprintf(out,
		"# Records of paqm_ipc.h, made by make_records.c; do not edit them. Byte order: "
		"%s.\n",
		htonl(1) == 1 ? "big" : "little");
	registers();
	other_requests();
	answers();
	rates();
	refused();
	if (fclose(out)) {
		perror(argv[argc - 1]);
		return 1;
	}
	if (!check)
		return 0;
	have = content(argv[2]);
	bad = !have || strcmp(have, made);
	if (bad)
		fprintf(stderr, "%s is not what make_records writes: run it again\n", argv[2]);
	free(have);
	free(made);
	return bad;
}
