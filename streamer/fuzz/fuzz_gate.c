// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: the gate before rtpbin. The input is how the gate stands, then datagrams as
 * strangers send them, each behind its kind and its length: what gets in is of who may, what RTCP
 * is left is whole, is left again, and has nothing that rtpsession cannot bear.
 */
#include <stdlib.h>
#include <string.h>

#include "core/paqm_msg.h"
#include "streamer/rtp/gate.h"

#define OURS 0x4f555253U /* "OURS" */
#define PEER 0x50454552U /* "PEER" */
#define KEPT 0x4b455054U /* "KEPT" */
#define STEP_NS 700000000ULL

enum kind { RTP, RTCP, CLEAN, PROVE };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static bool knows(const struct gate *g, uint32_t ssrc)
{
	for (unsigned int i = 0; i < GATE_STREAMS; i++)
		if (g->streams[i].used && g->streams[i].ssrc == ssrc)
			return true;
	return false;
}

static unsigned int used(const struct gate *g)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < GATE_STREAMS; i++)
		n += g->streams[i].used;
	return n;
}

/* What is left of RTCP: packets that fill it, none of them as described at enum gate_why. */
static void look(const struct gate *g, const uint8_t *p, size_t len)
{
	size_t at = 0;

	while (at < len) {
		unsigned int type, count;
		size_t bytes;

		must(len - at >= 4 && p[at] >> 6 == 2);
		bytes = 4 * ((size_t)paqm_get16(p + at + 2) + 1);
		must(bytes <= len - at);
		type = p[at + 1];
		count = p[at] & 31;
		must(type != 205 || count != 5);
		if (type >= 200 && type <= 203 && bytes >= 8) {
			must(paqm_get32(p + at + 4) != OURS);
			must(knows(g, paqm_get32(p + at + 4)));
		}
		at += bytes;
	}
}

static void clean(struct gate *g, uint8_t *p, size_t len)
{
	uint64_t refused = gate_refused(g);
	uint8_t *was = malloc(len + 1);
	bool about_us, again;
	size_t left;

	must(was);
	memcpy(was, p, len);
	left = gate_clean(g, p, len, &about_us);
	must(left <= len && (left || !about_us));
	must(left == len ? !memcmp(was, p, len) : gate_refused(g) > refused);
	look(g, p, left);
	refused = gate_refused(g);
	if (left) {
		memcpy(was, p, left);
		must(gate_clean(g, p, left, &again) == left && again == about_us);
		must(!memcmp(was, p, left) && gate_refused(g) == refused);
	}
	free(was);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gate g = {0};
	uint64_t now = 100 * STEP_NS;
	size_t at = 1;

	if (!size)
		return 0;
	gate_own(&g, OURS);
	g.proof = data[0] & 2;
	g.keep = data[0] & 4 ? KEPT : 0;
	if (data[0] & 1)
		gate_agree(&g, PEER);
	while (size - at >= 2) {
		enum kind kind = data[at] & 3;
		size_t len = data[at + 1];
		struct gate_gone gone = {0};
		enum gate_why why = GATE_BROKEN;
		bool kept = knows(&g, KEPT);
		uint32_t ssrc = 0;
		uint8_t *p;

		now += data[at] & 4 ? STEP_NS : 0;
		at += 2;
		len = len < size - at ? len : size - at;
		p = malloc(len ? len : 1); /* of its own: who reads further is seen */
		must(p);
		memcpy(p, data + at, len);
		at += len;
		if (kind == CLEAN) {
			clean(&g, p, len);
		} else if (kind == PROVE) {
			gate_prove(&g, len >= 4 ? paqm_get32(p) : PEER);
		} else {
			why = kind == RTP ? gate_rtp(&g, p, len, now, &gone)
					  : gate_rtcp(&g, p, len, now, &gone);
			if (why == GATE_IN)
				ssrc = paqm_get32(p + (kind == RTP ? 8 : 4));
			must(why != GATE_IN || (knows(&g, ssrc) && ssrc != OURS));
			must(!gone.any || (why == GATE_IN && !knows(&g, gone.ssrc)));
		}
		free(p);
		must(used(&g) <= (g.agreed ? 1 : GATE_STREAMS));
		must(!g.agreed || (knows(&g, PEER) && !gone.any));
		must(!g.keep || !kept || knows(&g, KEPT));
	}
	return 0;
}
