// SPDX-License-Identifier: GPL-2.0
/* Trains of packets that measure a path; see probe.h. */
#include "streamer/rtp/probe.h"

#include <math.h>
#include <string.h>

#include "core/paqm_inband.h"

#define RTP_HEAD 12
#define ONE_BYTE 0xBEDE /* RFC 8285 */
#define BAND 50		/* of a gap: a clock skew of some ppm is no rising delay */
#define LATE_TRAINS 3	/* wait as long as so many trains take, */
#define LATE_LEAST_NS 200000000ULL
#define GAP_MOST 3  /* of the sender, in gaps, */
#define GAP_OFF 0.1 /* and its mean */
#define RTT_MOST_US 60000000U
#define RATE_ROUND 2e6 /* bit/s: where the threshold changes */

void probe_write(uint8_t data[PROBE_DATA], const struct probe *p)
{
	paqm_put32(data, (uint32_t)(p->clock_us >> 32));
	paqm_put32(data + 4, (uint32_t)p->clock_us);
	data[8] = p->train;
	data[9] = p->index;
	data[10] = p->packets;
	data[11] = p->flags;
	paqm_put32(data + 12, p->rate);
}

void probe_read(const uint8_t data[PROBE_DATA], struct probe *p)
{
	*p = (struct probe){
		.clock_us = (uint64_t)paqm_get32(data) << 32 | paqm_get32(data + 4),
		.train = data[8],
		.index = data[9],
		.packets = data[10],
		.flags = data[11],
		.rate = paqm_get32(data + 12),
	};
}

/* Among elements with one-byte headers. */
static const uint8_t *element(const uint8_t *p, size_t len)
{
	for (size_t at = 0; at < len;) {
		unsigned int id = p[at] >> 4, size = (p[at] & 15) + 1;

		if (!p[at]) { /* padding */
			at++;
			continue;
		}
		if (id == 15 || size > len - at - 1)
			return NULL;
		if (id == PROBE_ID && size == PROBE_DATA)
			return p + at + 1;
		at += 1 + size;
	}
	return NULL;
}

const uint8_t *probe_find(const uint8_t *packet, size_t len, size_t *head)
{
	size_t at, size;

	*head = 0;
	if (len < RTP_HEAD || packet[0] >> 6 != 2)
		return NULL;
	at = RTP_HEAD + 4U * (packet[0] & 15);
	if (at > len)
		return NULL;
	*head = at;
	if (!(packet[0] & 0x10))
		return NULL;
	if (len - at < 4 || len - at - 4 < (size = 4U * paqm_get16(packet + at + 2)))
		return NULL;
	*head = at + 4 + size;
	if (paqm_get16(packet + at) == PROBE_PROFILE)
		return size == PROBE_DATA ? packet + at + 4 : NULL;
	return paqm_get16(packet + at) == ONE_BYTE ? element(packet + at + 4, size) : NULL;
}

void probe_extension(uint8_t *p, size_t len, const struct probe *probe)
{
	bool alone = len == 4 + PROBE_DATA;

	memset(p, 0, len);
	paqm_put16(p, alone ? PROBE_PROFILE : ONE_BYTE);
	paqm_put16(p + 2, (uint16_t)(len / 4 - 1));
	if (!alone)
		p[4] = PROBE_ID << 4 | (PROBE_DATA - 1);
	probe_write(p + (alone ? 4 : 5), probe);
}

double probe_fs(const int64_t *delay, unsigned int n, int64_t band)
{
	unsigned int more = 0;

	if (n < 2)
		return 0;
	for (unsigned int k = 1; k < n; k++)
		for (unsigned int l = 0; l < k; l++)
			more += (int64_t)((uint64_t)delay[k] - (uint64_t)delay[l]) > band;
	return more / (n * (n - 1) / 2.0);
}

double probe_threshold(double rate)
{
	return rate > RATE_ROUND ? 0.7 : 0.63;
}

/* Between two packets at the train's rate. */
static double gap_ns(const struct probes *r)
{
	return r->came ? 8e9 * (double)r->bytes / r->came / r->rate : 0;
}

bool probes_see(struct probes *r, const uint8_t *packet, size_t len, size_t wire, uint64_t now_ns)
{
	size_t head;
	const uint8_t *data = probe_find(packet, len, &head);
	struct probe p;

	if (!data)
		return false;
	probe_read(data, &p);
	if (p.packets < 2 || p.packets > PROBE_TRAIN || p.index >= p.packets || !p.rate ||
	    (!r->open && r->any && p.train == r->done))
		return false;
	if (!r->open || p.train != r->train) { /* one that went on too long is forgotten */
		uint8_t done = r->done;
		bool any = r->any;

		*r = (struct probes){.open = true,
				     .any = any,
				     .done = done,
				     .train = p.train,
				     .packets = p.packets,
				     .rate = p.rate,
				     .first_ns = now_ns,
				     .first_bytes = wire};
	}
	if (p.packets != r->packets || p.rate != r->rate || r->p[p.index].here)
		return false;
	r->p[p.index].here = true;
	r->p[p.index].clock_us = p.clock_us;
	r->p[p.index].at_ns = now_ns;
	r->last_ns = now_ns;
	r->clock_us = (uint32_t)p.clock_us;
	r->bytes += wire;
	r->came++;
	return p.index + 1 == r->packets;
}

bool probes_late(const struct probes *r, uint64_t now_ns)
{
	double wait = fmax(LATE_TRAINS * gap_ns(r) * r->packets, (double)LATE_LEAST_NS);

	return r->open && now_ns > r->first_ns && (double)(now_ns - r->first_ns) > wait;
}

/* Did the sender keep the rate? */
static bool kept_rate(const struct probes *r, double gap)
{
	unsigned int first = PROBE_TRAIN, last = 0;

	for (unsigned int k = 0; k < r->packets; k++) {
		if (!r->p[k].here)
			continue;
		if (first == PROBE_TRAIN) {
			first = k;
		} else if (1e3 * (double)(int64_t)(r->p[k].clock_us - r->p[last].clock_us) >
			   GAP_MOST * gap * (k - last)) {
			return false;
		}
		last = k;
	}
	if (first >= last)
		return false;
	return fabs(1e3 * (double)(int64_t)(r->p[last].clock_us - r->p[first].clock_us) /
			    (last - first) -
		    gap) <= GAP_OFF * gap;
}

size_t probes_report(struct probes *r, uint8_t data[PROBE_REPORT], uint64_t now_ns)
{
	int64_t delay[PROBE_TRAIN];
	double gap = gap_ns(r), rate, held, fs;
	enum probe_verdict verdict;
	unsigned int n = 0;

	if (!r->open)
		return 0;
	for (unsigned int k = 0; k < r->packets; k++)
		if (r->p[k].here) /* ns; the clocks have different zeroes, so unsigned first */
			delay[n++] = (int64_t)(r->p[k].at_ns - r->p[k].clock_us * 1000);
	fs = probe_fs(delay, n, (int64_t)(gap / BAND));
	verdict = !kept_rate(r, gap)	      ? PROBE_INVALID
		  : r->p[r->packets - 1].here ? PROBE_WHOLE
					      : PROBE_LATE;
	rate = r->last_ns > r->first_ns ? 8e9 * (double)(r->bytes - r->first_bytes) /
						  (double)(r->last_ns - r->first_ns)
					: r->rate;
	held = now_ns > r->last_ns ? (double)(now_ns - r->last_ns) * 65536 / 1e9 : 0;
	paqm_put32(data, (uint32_t)fmin(rate, UINT32_MAX));
	data[4] = r->train;
	data[5] = (uint8_t)n;
	data[6] = r->packets;
	data[7] = (uint8_t)((unsigned int)verdict << 1 | (fs > probe_threshold(r->rate)));
	paqm_put16(data + 8, (uint16_t)fmin(fs * 65536, 65535));
	paqm_put16(data + 10, (uint16_t)fmin(held, 65535));
	paqm_put32(data + 12, r->clock_us);
	r->open = false;
	r->any = true;
	r->done = r->train;
	return PROBE_REPORT;
}

/* Round trip that a report shows, s; NAN if it cannot be. */
static double round_trip(const uint8_t *data, uint64_t now_us)
{
	uint32_t ago = (uint32_t)now_us - paqm_get32(data + 12);
	double rtt = ago / 1e6 - paqm_get16(data + 10) / 65536.0;

	return ago < RTT_MOST_US && rtt > 0 ? rtt : NAN;
}

bool probe_heard(const uint8_t *data, size_t len, uint64_t now_us, struct probe_result *r)
{
	if (len != PROBE_REPORT || data[6] < 2 || data[6] > PROBE_TRAIN || data[5] > data[6] ||
	    data[7] >> 1 > PROBE_INVALID)
		return false;
	*r = (struct probe_result){
		.verdict = (enum probe_verdict)(data[7] >> 1),
		.rate = paqm_get32(data),
		.train = data[4],
		.came = data[5],
		.of = data[6],
		.trend = data[7] & 1,
		.fs = paqm_get16(data + 8) / 65536.0,
		.rtt = round_trip(data, now_us),
	};
	return true;
}
