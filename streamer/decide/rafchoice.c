// SPDX-License-Identifier: GPL-2.0
/* RAF: the choice of a format, and the message that asks for it; see raf.h. */
#include "streamer/decide/raf.h"

#include "core/paqm_bytes.h"

/* Of 0.0847 no row of the tables takes it for loss, of 0.1053 one does: in 1/1000. */
#define LOSS 100
#define LOSS_MILLIBITS 225  /* what all rows with loss have */
#define LEAST_MILLIBITS 100 /* what is given up before the size: lower bound of "medium" */
#define LEAST_FPS 30	    /* which goes with it */
/* A choice of ours: no picture gets smaller, then fewer are sent. */
#define SMALLEST_WIDTH 64
#define SMALLEST_HEIGHT 48
#define SIDE_MAX 4096

const uint32_t raf_ladder[RAF_LAYERS] = {56000, 128000, 256000, 512000, 768000};

static const int paces[] = {10, 15, 20, 25, 30};

#define PACES ((int)(sizeof(paces) / sizeof(*paces)))

static uint64_t millirate(const struct raf_choice *c)
{
	return (uint64_t)c->millibits * (unsigned int)c->fps * (unsigned int)c->width *
	       (unsigned int)c->height;
}

uint32_t raf_rate(const struct raf_choice *c)
{
	return (uint32_t)((millirate(c) + 999) / 1000);
}

uint32_t raf_cap(int layer, int fps)
{
	uint32_t grain = 8 * (uint32_t)fps;

	return raf_ladder[layer] / grain * grain;
}

uint32_t raf_opinion(const struct raf_choice *c)
{
	return (uint32_t)(14 * c->millibits * c->fps);
}

/* The first pace at which so many pictures arrive as are wished, though some are lost. */
static int pace(uint32_t lost, uint32_t received, int wished)
{
	for (int i = 0; i < PACES - 1; i++)
		if ((uint64_t)(unsigned int)paces[i] * received >=
		    (uint64_t)(unsigned int)wished * (lost + (uint64_t)received))
			return paces[i];
	return paces[PACES - 1];
}

struct raf_choice raf_choose(uint32_t avail, uint32_t lost, uint32_t received, int layers,
			     const struct raf_user *user)
{
	struct raf_choice c = {.width = user->width,
			       .height = user->width * user->high / user->wide,
			       .millibits = user->millibits,
			       .fps = user->fps};
	uint64_t cap;

	while (c.layer + 1 < layers && raf_ladder[c.layer + 1] <= avail)
		c.layer++;
	cap = 1000 * (uint64_t)raf_cap(c.layer, user->fps);
	if ((uint64_t)lost * 1000 >= LOSS * ((uint64_t)lost + received) && lost) {
		c.millibits = LOSS_MILLIBITS;
		c.fps = pace(lost, received, user->fps);
	} else if (millirate(&c) > cap) {
		c.millibits = LEAST_MILLIBITS;
		c.fps = LEAST_FPS;
	}
	while (millirate(&c) > cap && c.width - user->wide >= SMALLEST_WIDTH &&
	       c.height - user->high >= SMALLEST_HEIGHT) {
		c.width -= user->wide;
		c.height -= user->high;
	}
	for (int i = PACES - 1; i >= 0 && millirate(&c) > cap; i--)
		if (paces[i] < c.fps)
			c.fps = paces[i];
	return c;
}

void raf_write(const struct raf_request *q, uint8_t data[RAF_LEN])
{
	const struct raf_choice *c = &q->choice;

	paqm_put32(data, q->media);
	data[4] = (uint8_t)c->layer;
	data[5] = (uint8_t)c->fps;
	paqm_put16(data + 6, (uint16_t)c->millibits);
	paqm_put16(data + 8, (uint16_t)c->width);
	paqm_put16(data + 10, (uint16_t)c->height);
	paqm_put32(data + 12, q->avail);
	paqm_put16(data + 16, q->lost);
	paqm_put16(data + 18, q->received);
}

bool raf_read(const uint8_t *data, size_t len, int layers, struct raf_request *q)
{
	struct raf_choice *c = &q->choice;

	if (len != RAF_LEN)
		return false;
	*q = (struct raf_request){.choice = {.layer = data[4],
					     .fps = data[5],
					     .millibits = paqm_get16(data + 6),
					     .width = paqm_get16(data + 8),
					     .height = paqm_get16(data + 10)},
				  .media = paqm_get32(data),
				  .avail = paqm_get32(data + 12),
				  .lost = paqm_get16(data + 16),
				  .received = paqm_get16(data + 18)};
	return c->layer < layers && c->fps && c->fps <= RAF_FPS_MAX && c->millibits &&
	       c->width >= SMALLEST_WIDTH && c->width <= SIDE_MAX && c->height >= SMALLEST_HEIGHT &&
	       c->height <= SIDE_MAX && millirate(c) <= 1000 * (uint64_t)raf_ladder[c->layer];
}
