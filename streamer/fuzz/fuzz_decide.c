// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: what the receiving side of a controller tells. The input is an RTCP packet. Every
 * controller that understands such messages gets it, and must have a rate within its limits and a
 * format that pictures can have; what RAF reads is what it would write. What is no RTCP APP packet
 * is taken for media: whatever a receiving side tells after it must be one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/paqm_bytes.h"
#include "streamer/decide/decide.h"
#include "streamer/decide/raf.h"

#define RTP_HEAD 12
#define CTL_KIND(name, file) +1
enum {
	KINDS = 0
#include "streamer/control/kinds.h"
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_raf(const struct ctl_message *m)
{
	struct raf_request q, again;
	uint8_t back[RAF_LEN];

	if (!raf_read(m->data, m->len, RAF_LAYERS, &q))
		return;
	raf_write(&q, back);
	if (memcmp(back, m->data, RAF_LEN) != 0 || !raf_read(back, RAF_LEN, RAF_LAYERS, &again))
		abort();
	if (raf_rate(&q.choice) > raf_ladder[q.choice.layer])
		abort();
}

/* Each is made once: 200 kB from the system and back would be most of an execution. */
static void hear(size_t number, const struct ctl_message *m)
{
	static struct ctl *kept[KINDS];
	const struct ctl_kind *kind = ctl_kinds[number];
	double option[CTL_OPTIONS] = {0}, rate;
	struct ctl_params p = {.rate_min = 10e3, .rate_max = 10e6, .packet = 1000};
	struct ctl_format f;
	char why[100];
	struct ctl *c;

	ctl_choose(kind->name, option, why, sizeof(why));
	p.option = option;
	if (!kept[number])
		kept[number] = ctl_new(kind, &p, 1);
	c = kept[number];
	if (!c)
		abort();
	ctl_again(c, &p, 1);
	ctl_message(c, 2, m);
	ctl_message(c, 3, m);
	rate = ctl_rate(c, 4);
	ctl_format(c, &f);
	if (!(rate >= p.rate_min && rate <= p.rate_max) || f.width < 0 || f.width > 4096 ||
	    f.height < 0 || f.height > 4096 || f.width % 2 || f.height % 2 || !isfinite(f.fps))
		abort();
}

static void see(const struct dec_kind *kind, const uint8_t *data, size_t size)
{
	struct dec_packet p = {
		.at = 1,
		.bytes = size,
		.ts = paqm_get32(data + 4),
		.seq = paqm_get16(data + 2),
		.marker = data[1] >> 7,
		.rtp = data,
		.len = size,
		.readable = size,
	};
	double option[CTL_OPTIONS] = {0};
	struct ctl_message m;
	uint8_t app[DEC_APP];
	struct dec *d;
	char why[100];

	ctl_choose(kind->name, option, why, sizeof(why));
	d = dec_new(kind, option, 0);
	if (!d)
		abort();
	for (int i = 0; i < 4; i++) {
		size_t len;

		dec_see(d, 7, &p);
		p.at += 0.1;
		p.seq += 2;
		p.ts += 3000;
		len = dec_tell(d, p.at, 1, app);
		if (len && !dec_read(app, len, &m))
			abort();
		if (isnan(dec_next(d)))
			abort();
	}
	dec_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ctl_message m;

	if (!dec_read(data, size, &m)) {
		for (size_t i = 0; size >= RTP_HEAD && dec_kinds[i]; i++)
			see(dec_kinds[i], data, size);
		return 0;
	}
	if (m.len > DEC_DATA)
		m.len = DEC_DATA; /* what is longer says nothing more */
	check_raf(&m);
	for (size_t i = 0; ctl_kinds[i]; i++)
		if (ctl_kinds[i]->message)
			hear(i, &m);
	return 0;
}
