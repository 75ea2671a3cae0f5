// SPDX-License-Identifier: GPL-2.0
/* Statistics summary of RFC 3611; see xr.h. */
#include "streamer/rtp/xr.h"

#include <math.h>
#include <string.h>

#include "core/paqm_inband.h"

#define XR 207
#define SUMMARY 6
#define LOSS_FLAG 0x80
#define JITTER_FLAG 0x20

void xr_see(struct xr_window *w, uint16_t seq, uint32_t transit)
{
	uint32_t jitter;

	if (!w->begun) {
		/* room below, for what comes late */
		w->first = w->highest = 0x10000 + seq;
		w->begun = true;
	} else {
		int16_t ahead = (int16_t)(seq - (uint16_t)w->highest);

		if ((int32_t)(w->highest + (uint32_t)ahead - w->first) < 0)
			return; /* belongs to the window before */
		if (ahead > 0)
			w->highest += (uint32_t)ahead;
	}
	w->received++;
	if (w->timed) {
		jitter = transit - w->transit;
		jitter = jitter > INT32_MAX ? -jitter : jitter;
		w->least = w->n && w->least < jitter ? w->least : jitter;
		w->most = w->n && w->most > jitter ? w->most : jitter;
		w->sum += jitter;
		w->squares += (double)jitter * jitter;
		w->n++;
	}
	w->timed = true;
	w->transit = transit;
}

size_t xr_summary(uint8_t *p, struct xr_window *w, uint32_t ssrc, uint32_t media)
{
	uint32_t expected = w->highest - w->first + 1;
	double mean = w->n ? w->sum / w->n : 0;
	double deviation = w->n ? sqrt(fmax(w->squares / w->n - mean * mean, 0)) : 0;

	if (!w->received)
		return 0;
	memset(p, 0, XR_SUMMARY_LEN);
	p[0] = 0x80;
	p[1] = XR;
	p[3] = XR_SUMMARY_LEN / 4 - 1;
	paqm_put32(p + 4, ssrc);
	p[8] = SUMMARY;
	p[9] = LOSS_FLAG | JITTER_FLAG;
	p[11] = 9;
	paqm_put32(p + 12, media);
	paqm_put32(p + 16, (w->first & 0xffff) << 16 | ((w->highest + 1) & 0xffff));
	paqm_put32(p + 20, expected > w->received ? expected - w->received : 0);
	paqm_put32(p + 28, w->least);
	paqm_put32(p + 32, w->most);
	paqm_put32(p + 36, (uint32_t)mean);
	paqm_put32(p + 40, (uint32_t)deviation);
	*w = (struct xr_window){.begun = true,
				.first = w->highest + 1,
				.highest = w->highest,
				.timed = w->timed,
				.transit = w->transit};
	return XR_SUMMARY_LEN;
}
