// SPDX-License-Identifier: GPL-2.0
/* What share of a stream's packets has been lost lately; see losses.h. */
#include "streamer/rtp/losses.h"

void losses_report(struct losses *l, uint32_t highest, int32_t lost)
{
	unsigned int newest = (l->at + LOSSES_REPORTS - 1) % LOSSES_REPORTS;

	if (l->n && (int32_t)(highest - l->seen[newest].highest) < 0)
		l->n = 0;
	l->seen[l->at].highest = highest;
	l->seen[l->at].lost = lost;
	l->at = (l->at + 1) % LOSSES_REPORTS;
	l->n += l->n < LOSSES_REPORTS;
}

unsigned int losses_percent(const struct losses *l)
{
	unsigned int newest = (l->at + LOSSES_REPORTS - 1) % LOSSES_REPORTS;
	unsigned int oldest = (l->at + LOSSES_REPORTS - l->n) % LOSSES_REPORTS;
	int64_t sent, lost;

	if (l->n < 2)
		return 0;
	sent = l->seen[newest].highest - l->seen[oldest].highest;
	/* duplicates make it fall */
	lost = (int64_t)l->seen[newest].lost - l->seen[oldest].lost;
	if (lost <= 0 || sent <= 0)
		return 0;
	return lost >= sent ? 100 : (unsigned int)((100 * lost + sent - 1) / sent);
}
