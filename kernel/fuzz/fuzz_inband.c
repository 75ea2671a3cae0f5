// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: rates that travel with the media (core/paqm_inband.h). The first byte says
 * what the datagram's checksum is like and which rate the router has, the rest is a UDP
 * payload; it is also read as what a receiver returns.
 *
 * Whatever comes in: nothing is read or written beyond the bytes given (sanitizers), a
 * field is only found where its magic and a usable rate are, lowering changes these bytes
 * and the checksum only, the checksum agrees with the one computed in full, and the same
 * field is found again. So with what is said in a supplement.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/paqm_inband.h"

#define SUM_NONE 1
#define SUM_PARTIAL 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz_inband: %s\n", what);
	abort();
}

/* Checksum of the whole datagram behind a constant pseudo header, as it ought to be. */
static paqm_u16 full(paqm_u8 *udp, paqm_u32 len)
{
	paqm_u16 was = paqm_get16(udp + 6), check;

	paqm_put16(udp + 6, 0);
	check = (paqm_u16)~paqm_sum(0xA5A5, udp, len);
	paqm_put16(udp + 6, was);
	return check ? check : 0xFFFF;
}

static void lower(paqm_u8 *udp, paqm_u32 len, paqm_u32 at, uint8_t how)
{
	struct paqm_field mine = {.rate = 0x46000000U + ((paqm_u32)how << 17),
				  .router = (paqm_u16)(how << 8 | 1),
				  .period = how};
	paqm_u8 *before = malloc(len);
	paqm_u16 check = how & SUM_NONE ? 0 : full(udp, len);
	struct paqm_field was, is;
	paqm_u32 i;

	if (!before)
		abort();
	if (!paqm_field_above(udp + 8 + at, &mine)) {
		free(before);
		return;
	}
	paqm_put16(udp + 6, check);
	memcpy(before, udp, len);
	paqm_field_decode(udp + 8 + at, &was);
	paqm_field_lower(udp, at, &mine, how & SUM_PARTIAL);
	for (i = 0; i < len; i++)
		if (i != 6 && i != 7 &&
		    (i < 8 + at + PAQM_FIELD_RATE || i >= 8 + at + PAQM_FIELD_NONCE))
			must(udp[i] == before[i], "changed a byte that is not its own");
	paqm_field_decode(udp + 8 + at, &is);
	must(is.rate == mine.rate && is.router == mine.router && is.period == mine.period,
	     "lowered to something else");
	must(is.nonce == was.nonce, "changed the nonce");
	must(!paqm_field_above(udp + 8 + at, &mine), "not lowered");
	must(paqm_field_find(udp + 8, len - 8) == at, "not found again");
	if (how & (SUM_NONE | SUM_PARTIAL))
		must(paqm_get16(udp + 6) == check, "touched a checksum that is none");
	else
		must(paqm_get16(udp + 6) == full(udp, len), "checksum is wrong");
	free(before);
}

/* A router says something in the supplement: that byte changes, and only to what it has to be. */
static void say(paqm_u8 *udp, paqm_u32 len, paqm_u32 at, uint8_t how)
{
	paqm_u8 *before = malloc(len), mine = how & PAQM_SAID_ALL;
	paqm_u16 check = how & SUM_NONE ? 0 : full(udp, len);
	struct paqm_more was, is;
	paqm_u32 i;

	if (!before)
		abort();
	paqm_put16(udp + 6, check);
	memcpy(before, udp, len);
	paqm_more_decode(udp + 8 + at, &was);
	must(paqm_value_ok(was.demand) && paqm_value_ok(was.used), "unusable supplement");
	paqm_more_say(udp, at, mine, how & SUM_PARTIAL);
	paqm_more_decode(udp + 8 + at, &is);
	for (i = 0; i < len; i++)
		if (i != 6 && i != 7 && i != 8 + at + PAQM_MORE_SAID)
			must(udp[i] == before[i], "said where it must not");
	must((is.said & PAQM_SAID_GRADE) >= (mine & PAQM_SAID_GRADE) &&
		     (is.said & PAQM_SAID_GRADE) >= (was.said & PAQM_SAID_GRADE),
	     "took a grade back");
	must((is.said & ~PAQM_SAID_GRADE) == ((was.said | mine) & ~PAQM_SAID_GRADE),
	     "flags are not those of both");
	must(paqm_more_find(udp + 8, len - 8) == at, "supplement is not found again");
	if (how & (SUM_NONE | SUM_PARTIAL))
		must(paqm_get16(udp + 6) == check, "touched a checksum that is none");
	else
		must(paqm_get16(udp + 6) == full(udp, len), "checksum is wrong");
	free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct paqm_return r;
	paqm_u32 len, at;
	paqm_u8 *udp;

	if (!size || size > 2048)
		return 0;
	len = (paqm_u32)size - 1;
	udp = malloc(8 + (size_t)len);
	if (!udp)
		abort();
	memset(udp, 0x5A, 8);
	memcpy(udp + 8, data + 1, len);
	if (!paqm_return_decode(udp + 8, len, &r))
		must(paqm_value_ok(r.field.rate) && r.kind <= PAQM_RETURN_PROBE &&
			     !(r.said & ~PAQM_SAID_ALL),
		     "unusable return");
	at = paqm_field_find(udp + 8, len);
	if (at) {
		must(paqm_field_possible(udp[8]), "found where the first look rules it out");
		must(at + PAQM_FIELD_LEN <= len, "found beyond the payload");
		must(paqm_field_ok(udp + 8 + at), "found what is none");
		lower(udp, 8 + len, at, data[0]);
		at = paqm_more_find(udp + 8, len);
		if (at) {
			must(at + PAQM_FIELD_LEN <= len, "supplement beyond the payload");
			say(udp, 8 + len, at, data[0]);
		}
	}
	free(udp);
	return 0;
}
