/* SPDX-License-Identifier: GPL-2.0 */
/* What waits in a pacer, in the order of its times, and how soon that is. */
#ifndef PAQM_DUE_H
#define PAQM_DUE_H

#include <gst/gst.h>

struct item {
	GstMiniObject *object; /* buffer or serialized event */
	gint64 due;	       /* time of the clock, us; 0: at once */
};

static inline struct item *due_new(GstMiniObject *object, gint64 due)
{
	return g_memdup2(&(struct item){object, due}, sizeof(struct item));
}

static inline void due_push(GQueue *queue, GstMiniObject *object, gint64 due)
{
	g_queue_push_tail(queue, due_new(object, due));
}

/* Before whatever is due later. */
static inline void due_insert(GQueue *queue, GstMiniObject *object, gint64 due)
{
	GList *l = queue->head;

	while (l && ((struct item *)l->data)->due <= due)
		l = l->next;
	if (l)
		g_queue_insert_before(queue, l, due_new(object, due));
	else
		due_push(queue, object, due);
}

/* A time from @now on, when what is sent until then leaves at @rate instead of @before. */
static inline gint64 due_at_rate(gint64 due, gint64 now, guint64 before, guint64 rate)
{
	if (due <= now)
		return due;
	return now + (gint64)gst_util_uint64_scale((guint64)(due - now), before, rate);
}

#define PACE_LEFT_MIN 0.5 /* of a rate, for what is beside frames: retransmissions are urgent */

/**
 * pace_beside() - what frames leave of a rate, us per byte
 * @rate: bit/s
 * @pace: of the frame that is being sent, us per byte; 0: there is none
 */
static inline double pace_beside(guint64 rate, double pace)
{
	double all = (double)rate / 8 / G_USEC_PER_SEC, left = pace > 0 ? all - 1 / pace : all;

	return 1 / MAX(left, PACE_LEFT_MIN * all);
}

#endif /* PAQM_DUE_H */
