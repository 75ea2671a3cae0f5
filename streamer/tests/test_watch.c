// SPDX-License-Identifier: GPL-2.0
/*
 * What a call makes of the rates that it is told, by paqmd or by what its peer returns: the picture
 * pauses, and who sits before it is told whose rate it is. All else is left out.
 */
#include <string.h>

#include "core/tests/check.h"
#include "streamer/call/state.h"
#include "streamer/encoder/encoded.h"
#include "streamer/options.h"
#include "streamer/outgoing/format.h"

static struct ctl_advice controlled;

/* Stands in for what writes the line over the picture. */
struct overlay {
	GstElement parent;
	char *text;
};

typedef GstElementClass OverlayClass;
typedef struct overlay Overlay;
GType overlay_get_type(void);
G_DEFINE_TYPE(Overlay, overlay, GST_TYPE_ELEMENT)

static void set_text(GObject *o, guint id, const GValue *value, GParamSpec *spec)
{
	(void)id;
	(void)spec;
	g_free(((Overlay *)o)->text);
	((Overlay *)o)->text = g_value_dup_string(value);
}

static void overlay_class_init(OverlayClass *klass)
{
	G_OBJECT_CLASS(klass)->set_property = set_text;
	g_object_class_install_property(
		G_OBJECT_CLASS(klass), 1,
		g_param_spec_string("text", "", "", NULL, G_PARAM_WRITABLE));
}

static void overlay_init(Overlay *o)
{
	o->text = NULL;
}

void rate_advise(struct rate *r, const struct ctl_advice *a)
{
	(void)r;
	controlled = *a;
}

gint64 guard_now(struct guard *g)
{
	(void)g;
	return GUARD_BEGIN;
}

static gint64 report_at;

gint64 guard_reported(struct guard *g)
{
	(void)g;
	return report_at;
}

gint64 guard_heard(struct guard *g)
{
	(void)g;
	return GUARD_BEGIN;
}

void call_record_event(struct call_record *r, const char *event, const char *detail)
{
	(void)r;
	(void)event;
	(void)detail;
}

/* Not reached, or of no consequence here. */
#define UNUSED(type, name, args, result)                                                           \
	type name args                                                                             \
	{                                                                                          \
		return result;                                                                     \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"
UNUSED(void, adaptor_rate, (struct adaptor * a, guint64 rate), )
UNUSED(struct advice *, advice_new, (const char *path), NULL)
UNUSED(int, advice_add,
       (struct advice * a, const struct advice_flow *flow, advice_fn fn, gpointer data), -1)
UNUSED(struct ctl_advice, advice_control, (const struct paqm_client_advice *a),
       (struct ctl_advice){0})
UNUSED(void, advice_log, (FILE * log, const struct paqm_client_advice *a), )
UNUSED(void, format_use, (GstBin * pipeline, const struct ctl_format *f, double fps), )
UNUSED(void, rate_format, (const struct rate *r, struct ctl_format *f), )
UNUSED(bool, rate_train, (struct rate * r, struct ctl_train *t), false)
UNUSED(gboolean, repair_tick, (struct repair * r, guint64 rate, FILE *log, guint64 *left), FALSE)
UNUSED(void, train_told, (struct train * t), )
UNUSED(guint, trains_room, (const struct ctl_kind *kind), 0)
UNUSED(void, trains_want, (struct trains * t, const struct ctl_train *want, double interval), )
UNUSED(void, call_end, (struct call * c, const char *why), )
UNUSED(void, call_watch_pipes, (struct call * c), )
UNUSED(void, call_watch_quiet, (struct call * c), )
UNUSED(GstElement *, device_elements, (const struct device *d), (gpointer) "there")
UNUSED(gint64, capture_of, (GstBuffer * buf), 0)
UNUSED(void, encoded_group_log, (FILE * log, const GstStructure *g, gint64 wall_ns), )
UNUSED(void, inbound_packet, (struct inbound * in, guint32 rtp_ts), )
UNUSED(void, reports_poll, (struct reports * r, report_fn fn, gpointer data), )

/* The line for people after @seconds. */
static const char *line_after(struct call *c, Overlay *overlay, int seconds)
{
	for (int i = 0; i < seconds; i++)
		call_on_second(c);
	return overlay->text;
}

/* Rates that came back with the stream count as those of paqmd do. */
TEST(test_returned)
{
	static struct call c;
	struct outgoing *o = &c.out;
	Overlay *overlay;

	gst_init(NULL, NULL);
	c.pipeline = gst_pipeline_new(NULL);
	overlay = g_object_new(overlay_get_type(), "name", "overlay", NULL);
	gst_bin_add(GST_BIN(c.pipeline), GST_ELEMENT(overlay));
	c.mine.stream[CALL_VIDEO].sends = TRUE;
	o->rate_min = 200000;
	o->rate_max = 2000000;
	o->interval = 0.04;
	o->returned.have = true;
	o->returned.until_ns = (uint64_t)monotonic_ns() + 3600000000000ULL;
	o->returned.rate = 100000;
	follow_advise(o);
	CHECK_EQ(controlled.rate, 100000);
	CHECK(strstr(line_after(&c, overlay, SCARCE_AFTER),
		     "sound only, routers grant the picture 100 kbit/s"));
	CHECK(c.scarce.paused);
	CHECK_EQ(o->sparse, 8);

	/* the lowest of both counts */
	o->daemon.rate = 150000;
	o->returned.rate = 1000000;
	follow_advise(o);
	CHECK(strstr(line_after(&c, overlay, 1), "150 kbit/s"));
	o->daemon.rate = 0;
	follow_advise(o);
	CHECK(strstr(line_after(&c, overlay, SCARCE_ENDS), "a router's advice"));
	CHECK(!c.scarce.paused);
	CHECK_EQ(o->sparse, 0);
	o->returned.until_ns = 0;
	follow_advise(o);
	CHECK(strstr(line_after(&c, overlay, 1), "own judgement"));
	g_free(overlay->text);
	gst_object_unref(c.pipeline);
}

/* Pictures that nobody reports on become few, whatever routers grant; the line says so. */
TEST(test_unheard)
{
	static struct call c;
	Overlay *overlay;
	const char *line = "";

	gst_init(NULL, NULL);
	c.pipeline = gst_pipeline_new(NULL);
	overlay = g_object_new(overlay_get_type(), "name", "overlay", NULL);
	gst_bin_add(GST_BIN(c.pipeline), GST_ELEMENT(overlay));
	c.mine.stream[CALL_VIDEO].sends = TRUE;
	c.theirs.stream[CALL_VIDEO].sends = TRUE;
	c.out.rate_min = 200000;
	c.out.told.rate = 1e6;
	c.out.interval = 0.04;
	for (int i = 0; i < BREAKER_S; i++) {
		CHECK_EQ(c.out.sparse, 0);
		c.out.frames += 25;
		c.played[CALL_VIDEO] += i < 3;
		line = line_after(&c, overlay, 1);
	}
	CHECK_EQ(c.out.sparse, 125);
	CHECK(strstr(line, "none of our pictures arrives"));
	CHECK(strstr(line, "no picture of the peer arrives"));
	report_at = GUARD_BEGIN;
	c.played[CALL_VIDEO]++;
	line = line_after(&c, overlay, 1);
	CHECK_EQ(c.out.sparse, 0);
	CHECK(strstr(line, "a router's advice"));
	CHECK(!strstr(line, "no picture"));
	g_free(overlay->text);
	gst_object_unref(c.pipeline);
}

int main(void)
{
	return check_run();
}
