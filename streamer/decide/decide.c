// SPDX-License-Identifier: GPL-2.0
/* The table of receiving sides, and how what they tell is framed; see decide.h. */
#include "streamer/decide/decide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/paqm_bytes.h"

#define HEAD 12 /* of an APP packet: flags, subtype, type, length, SSRC, name */
#define APP 204

const struct dec_kind *const dec_kinds[] = {
#define DEC_KIND(name, file) &dec_##name,
#include "streamer/decide/kinds.h"
	NULL,
};

struct dec {
	const struct dec_kind *kind;
	double option[CTL_OPTIONS];
	bool any;
	uint32_t media;
	uint64_t told;
	_Alignas(max_align_t) unsigned char state[];
};

const struct dec_kind *dec_find(const char *name)
{
	for (size_t i = 0; dec_kinds[i]; i++)
		if (!strcmp(dec_kinds[i]->name, name))
			return dec_kinds[i];
	return NULL;
}

struct dec *dec_new(const struct dec_kind *kind, const double option[CTL_OPTIONS], double now)
{
	struct dec *d = calloc(1, sizeof(*d) + kind->size);

	if (!d)
		return NULL;
	d->kind = kind;
	memcpy(d->option, option, sizeof(d->option));
	kind->init(d->state, d->option, now);
	return d;
}

void dec_free(struct dec *d)
{
	free(d);
}

void dec_see(struct dec *d, uint32_t media, const struct dec_packet *p)
{
	if (d->any && d->media != media) {
		memset(d->state, 0, d->kind->size);
		d->kind->init(d->state, d->option, p->at);
	}
	d->any = true;
	d->media = media;
	d->kind->packet(d->state, p);
}

size_t dec_tell(struct dec *d, double now, uint32_t ssrc, uint8_t app[DEC_APP])
{
	size_t len = d->any ? d->kind->tell(d->state, now, d->media, app + HEAD) : 0;

	if (!len)
		return 0;
	len += HEAD;
	paqm_put32(app, 0x80000000U | d->kind->subtype << 24 | APP << 16 | (uint32_t)(len / 4 - 1));
	paqm_put32(app + 4, ssrc);
	paqm_put32(app + 8, d->kind->app);
	d->told++;
	return len;
}

bool dec_prompt(const struct dec *d)
{
	return d->kind->next;
}

double dec_next(const struct dec *d)
{
	return d->any && d->kind->next ? d->kind->next(d->state) : INFINITY;
}

bool dec_read(const uint8_t *p, size_t len, struct ctl_message *m)
{
	/* version 2, no padding: nobody pads what ends with words */
	if (len < HEAD || p[0] >> 5 != 4 || p[1] != APP ||
	    4 * ((size_t)paqm_get16(p + 2) + 1) != len)
		return false;
	*m = (struct ctl_message){.from = paqm_get32(p + 4),
				  .name = paqm_get32(p + 8),
				  .subtype = p[0] & 31,
				  .data = p + HEAD,
				  .len = len - HEAD};
	return true;
}

void dec_state(const struct dec *d, ctl_log_fn log, void *data)
{
	log(d->kind->name, "told", (double)d->told, data);
	if (d->kind->state)
		d->kind->state(d->state, d->kind->name, log, data);
}
