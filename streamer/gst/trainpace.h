/* SPDX-License-Identifier: GPL-2.0 */
/* Buffers that belong to a train which measures the path, and when each of them leaves. */
#ifndef PAQM_TRAINPACE_H
#define PAQM_TRAINPACE_H

#include <gst/gst.h>

#include "streamer/rtp/probe.h"

/**
 * train_probe() - what a packet of a train carries
 * @clock_us: not 0: write this into it; @buf is writable, then
 *
 * Return: FALSE if it is of none. The first block of memory has to have all of the head.
 */
static inline gboolean train_probe(GstBuffer *buf, struct probe *p, guint64 clock_us)
{
	const guint8 *data;
	GstMapInfo map;
	gsize head;

	if (!gst_buffer_map_range(buf, 0, 1, &map, clock_us ? GST_MAP_READWRITE : GST_MAP_READ))
		return FALSE;
	data = probe_find(map.data, map.size, &head);
	if (data)
		probe_read(data, p);
	if (data && clock_us) {
		p->clock_us = clock_us;
		probe_write(map.data + (data - map.data), p);
	}
	gst_buffer_unmap(buf, &map);
	return data && p->rate;
}

struct train_pace {
	gboolean any;
	guint8 train;
	gint64 begin; /* us */
};

/**
 * train_due() - when a packet of a train leaves, us
 * @size: of the packet, bytes on the wire
 * @start: when the train can begin
 * @gap: to the next one
 *
 * Return: -1 if it is of none.
 */
static inline gint64 train_due(struct train_pace *t, GstBuffer *buf, guint64 size, gint64 start,
			       gint64 *gap)
{
	struct probe p = {0};

	if (!train_probe(buf, &p, 0))
		return -1;
	if (!t->any || p.train != t->train)
		*t = (struct train_pace){TRUE, p.train, start};
	*gap = (gint64)gst_util_uint64_scale(size, 8 * G_USEC_PER_SEC, p.rate);
	return t->begin + (gint64)gst_util_uint64_scale(size * p.index, 8 * G_USEC_PER_SEC, p.rate);
}

#endif /* PAQM_TRAINPACE_H */
