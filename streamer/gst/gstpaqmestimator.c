// SPDX-License-Identifier: GPL-2.0
/**
 * SECTION:element-paqmestimator
 *
 * Stands where rtpgccbwe stands: RTP packets of one transport pass through it, and
 * #GstPaqmEstimator:estimated-bitrate says what rate fits, with a notify signal for each change. It
 * is the rate that P-AQM routers advise, less the headers below RTP. webrtcbin and rtpbin take it
 * by their signal request-aux-sender; any other pipeline has it before its udpsink.
 *
 * It finds the UDP flow by itself: that of the ICE candidates which the webrtcbin around it has
 * selected, or that of the udpsink which it leads to, and registers it with paqmd. The whole
 * transport counts as one flow, sound, retransmissions and all.
 *
 * Without advice (no paqmd, no P-AQM router on the path, routers that have fallen silent) the
 * estimate is what was last written to #GstPaqmEstimator:estimated-bitrate. That is no congestion
 * control: #GstPaqmEstimator:safety-net names an element that is one, such as rtpgccbwe. It stands
 * inside, behind; the estimate is the lower of the two, and its alone while there is no advice. It
 * is lifted to more advice as long as it has found no lower limit itself.
 *
 * Like rtpgccbwe it paces: packets of a picture are spread over the time until the next, no faster
 * than the rate, so that what an encoder makes too much waits here and not in the network. A safety
 * net behind gets them spread.
 *
 * An encoder keeps to a rate in the mean, not from picture to picture. What it has made too much is
 * taken off the estimate until it has left, what it has left unused is added (balance.h).
 *
 * With #GstPaqmEstimator:encoder it also tells an encoder its rate, whatever its property and unit.
 */
#include "streamer/gst/gstpaqmestimator.h"

#include "streamer/gst/estimate.h"

GST_DEBUG_CATEGORY(paqmestimator_debug);

/* As rtpgccbwe has them. */
#define DEFAULT_MIN 1000
#define DEFAULT_MAX 8192000
#define DEFAULT_ESTIMATE 2048000

#define MEAN_PACKET 1200.0 /* RTP bytes, until they are measured */
#define MEAN_GAIN 0.02
#define INTERVAL (GST_SECOND / 24)
#define INTERVAL_MAX (GST_SECOND / 5) /* a longer one is a gap */
#define INTERVAL_GAIN 0.1
#define BELOW 28 /* as long as the flow is not known */
/* s: who marks no picture for so long, MPEG-TS for instance, has none: each packet counts as one */
#define UNMARKED 2.0
#define WAKE 0.04 /* s between looks at the balance, then */

G_DEFINE_TYPE(GstPaqmEstimator, gst_paqm_estimator, GST_TYPE_BIN)

enum {
	PROP_0,
	PROP_ESTIMATED_BITRATE,
	PROP_MIN_BITRATE,
	PROP_MAX_BITRATE,
	PROP_SAFETY_NET,
	PROP_ENCODER,
	PROP_SOCKET,
	PROP_STATS,
};

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE(
	"sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS("application/x-rtp"));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE(
	"src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS("application/x-rtp"));

static void on_net(GObject *net, GParamSpec *pspec, gpointer data)
{
	(void)net;
	(void)pspec;
	estimate_update(data);
	estimate_wake(data);
}

static void count(GstPaqmEstimator *self, GstBuffer *buf)
{
	gsize size = gst_buffer_get_size(buf);
	GstClockTime pts = GST_BUFFER_PTS(buf);
	double now = (double)g_get_monotonic_time() / G_USEC_PER_SEC, rate;
	gboolean marked, picture, wake;
	guint8 marker = 0;

	gst_buffer_extract(buf, 1, &marker, 1);
	marked = marker & 0x80;
	g_mutex_lock(&self->lock);
	if (marked && GST_CLOCK_TIME_IS_VALID(pts)) {
		if (pts > self->picture && pts - self->picture < INTERVAL_MAX)
			self->interval =
				(GstClockTime)((1 - INTERVAL_GAIN) * (double)self->interval +
					       INTERVAL_GAIN * (double)(pts - self->picture));
		self->picture = pts;
	}
	self->mean_packet += MEAN_GAIN * ((double)size - self->mean_packet);
	self->wire_bytes += size + self->below;
	rate = estimate_pace(self);
	balance_came(&self->balance, 8.0 * (double)(size + self->below), rate, now);
	if (marked)
		self->marked = now;
	picture = marked || now - self->marked > UNMARKED;
	if (picture)
		balance_picture(&self->balance, rate);
	wake = marked || (picture && now - self->woken > WAKE);
	if (wake)
		self->woken = now;
	g_mutex_unlock(&self->lock);
	if (wake)
		estimate_wake(self);
}

/* Streaming thread. The tap takes lists apart, and each of their packets comes by here. */
static GstPadProbeReturn on_packets(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	count(data, GST_PAD_PROBE_INFO_BUFFER(info));
	return GST_PAD_PROBE_OK;
}

static GstStateChangeReturn change_state(GstElement *element, GstStateChange change)
{
	GstPaqmEstimator *self = GST_PAQM_ESTIMATOR(element);
	GstStateChangeReturn done;

	if (change == GST_STATE_CHANGE_READY_TO_PAUSED && !estimate_start(self)) {
		estimate_stop(self);
		return GST_STATE_CHANGE_FAILURE;
	}
	if (change == GST_STATE_CHANGE_PAUSED_TO_READY)
		estimate_stop(self);
	done = GST_ELEMENT_CLASS(gst_paqm_estimator_parent_class)->change_state(element, change);
	if (change == GST_STATE_CHANGE_READY_TO_PAUSED && done == GST_STATE_CHANGE_FAILURE)
		estimate_stop(self);
	return done;
}

/* Put the safety net of this name behind the pacer, in place of the one that was there. */
static void set_net(GstPaqmEstimator *self, const char *name)
{
	GstElement *last = self->pacer;
	GstPad *end;

	gst_ghost_pad_set_target(GST_GHOST_PAD(self->src), NULL);
	if (self->net)
		gst_bin_remove(GST_BIN(self), self->net);
	self->net = NULL;
	if (name && *name) {
		GstElement *net = gst_element_factory_make(name, NULL);

		if (!net ||
		    !g_object_class_find_property(G_OBJECT_GET_CLASS(net), "estimated-bitrate")) {
			g_warning("paqmestimator: safety-net=%s: must be the name of an installed "
				  "element with a property estimated-bitrate, such as rtpgccbwe",
				  name);
			gst_clear_object(&net);
		}
		self->net = net;
	}
	g_free(self->net_name);
	self->net_name = self->net ? g_strdup(name) : NULL;
	g_mutex_lock(&self->lock);
	self->lifted = 0; /* the new one has found nothing yet */
	g_mutex_unlock(&self->lock);
	if (self->net) {
		g_object_set(self->net, "min-bitrate", self->least, "max-bitrate", self->most,
			     "estimated-bitrate", self->start, NULL);
		gst_bin_add(GST_BIN(self), self->net);
		gst_element_link_pads(self->pacer, "src", self->net, "sink");
		g_signal_connect(self->net, "notify::estimated-bitrate", G_CALLBACK(on_net), self);
		last = self->net;
	}
	end = gst_element_get_static_pad(last, "src");
	gst_ghost_pad_set_target(GST_GHOST_PAD(self->src), end);
	gst_object_unref(end);
}

static void set_text(GstPaqmEstimator *self, char **text, const GValue *value)
{
	g_mutex_lock(&self->lock);
	g_free(*text);
	*text = g_value_dup_string(value);
	g_mutex_unlock(&self->lock);
}

static void set_rate(GstPaqmEstimator *self, guint id, guint rate)
{
	const char *name = id == PROP_MIN_BITRATE   ? "min-bitrate"
			   : id == PROP_MAX_BITRATE ? "max-bitrate"
						    : "estimated-bitrate";

	g_mutex_lock(&self->lock);
	if (id == PROP_MIN_BITRATE)
		self->least = rate;
	else if (id == PROP_MAX_BITRATE)
		self->most = rate;
	else
		self->start = rate;
	g_mutex_unlock(&self->lock);
	if (self->net)
		g_object_set(self->net, name, rate, NULL);
	estimate_update(self);
	estimate_wake(self);
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
	GstPaqmEstimator *self = GST_PAQM_ESTIMATOR(object);

	switch (id) {
	case PROP_ESTIMATED_BITRATE:
	case PROP_MIN_BITRATE:
	case PROP_MAX_BITRATE:
		set_rate(self, id, g_value_get_uint(value));
		break;
	case PROP_SAFETY_NET:
		set_net(self, g_value_get_string(value));
		break;
	case PROP_ENCODER:
		set_text(self, &self->encoder, value);
		break;
	case PROP_SOCKET:
		set_text(self, &self->socket, value);
		break;
	default:
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
	}
}

/* Called with the lock held. */
static GstStructure *stats(const GstPaqmEstimator *self)
{
	static const char *const causes[] = {"none", "erf", "ecf", "expired", "lost", "refused"};
	const struct paqm_client_advice *a = &self->advice;

	return gst_structure_new(
		"paqm-estimator", "cause", G_TYPE_STRING,
		(guint)a->cause < G_N_ELEMENTS(causes) ? causes[a->cause] : "?", "advised-bitrate",
		G_TYPE_UINT64, (guint64)self->advised, "router", G_TYPE_STRING, a->router,
		"queue-delay-ms", G_TYPE_DOUBLE, (double)a->qdelay_ms, "routers", G_TYPE_UINT,
		a->routers, "error", G_TYPE_INT, a->error, "wire-bytes", G_TYPE_UINT64,
		self->wire_bytes, "bytes-below-rtp", G_TYPE_UINT, self->below, NULL);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
	GstPaqmEstimator *self = GST_PAQM_ESTIMATOR(object);

	g_mutex_lock(&self->lock);
	switch (id) {
	case PROP_ESTIMATED_BITRATE:
		g_value_set_uint(value, self->estimate);
		break;
	case PROP_MIN_BITRATE:
		g_value_set_uint(value, self->least);
		break;
	case PROP_MAX_BITRATE:
		g_value_set_uint(value, self->most);
		break;
	case PROP_SAFETY_NET:
		g_value_set_string(value, self->net_name);
		break;
	case PROP_ENCODER:
		g_value_set_string(value, self->encoder);
		break;
	case PROP_SOCKET:
		g_value_set_string(value, self->socket);
		break;
	case PROP_STATS:
		g_value_take_boxed(value, stats(self));
		break;
	default:
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
	}
	g_mutex_unlock(&self->lock);
}

static void finalize(GObject *object)
{
	GstPaqmEstimator *self = GST_PAQM_ESTIMATOR(object);

	route_clear(&self->found);
	g_free(self->socket);
	g_free(self->net_name);
	g_free(self->encoder);
	g_mutex_clear(&self->lock);
	G_OBJECT_CLASS(gst_paqm_estimator_parent_class)->finalize(object);
}

static void add_rate(GObjectClass *object, guint id, const char *name, const char *nick,
		     const char *blurb, guint value)
{
	g_object_class_install_property(object, id,
					g_param_spec_uint(name, nick, blurb, 1, G_MAXUINT, value,
							  G_PARAM_READWRITE |
								  G_PARAM_STATIC_STRINGS |
								  GST_PARAM_MUTABLE_PLAYING));
}

static void add_text(GObjectClass *object, guint id, const char *name, const char *nick,
		     const char *blurb)
{
	g_object_class_install_property(object, id,
					g_param_spec_string(name, nick, blurb, NULL,
							    G_PARAM_READWRITE |
								    G_PARAM_STATIC_STRINGS |
								    GST_PARAM_MUTABLE_READY));
}

static void gst_paqm_estimator_class_init(GstPaqmEstimatorClass *klass)
{
	GObjectClass *object = G_OBJECT_CLASS(klass);
	GstElementClass *element = GST_ELEMENT_CLASS(klass);

	GST_DEBUG_CATEGORY_INIT(paqmestimator_debug, "paqmestimator", 0, "P-AQM estimator");
	object->set_property = set_property;
	object->get_property = get_property;
	object->finalize = finalize;
	element->change_state = change_state;
	gst_element_class_add_static_pad_template(element, &sink_template);
	gst_element_class_add_static_pad_template(element, &src_template);
	gst_element_class_set_static_metadata(element, "P-AQM estimator", "Network/RTP/Estimator",
					      "Estimates the rate as P-AQM routers advise it",
					      "P-AQM");
	gst_element_class_add_static_metadata(
		element, "Example-live",
		"gst-launch-1.0 videotestsrc is-live=true ! video/x-raw,framerate=25/1 ! "
		"x264enc name=enc tune=zerolatency ! rtph264pay mtu=1200 ! paqmestimator "
		"encoder=enc "
		"estimated-bitrate=400000 ! udpsink host=127.0.0.1 port=5004 sync=false");
	add_rate(object, PROP_ESTIMATED_BITRATE, "estimated-bitrate", "Estimated bit rate",
		 "What encoders should produce now, bit/s of RTP packets; if set: the "
		 "estimate without advice",
		 DEFAULT_ESTIMATE);
	add_rate(object, PROP_MIN_BITRATE, "min-bitrate", "Minimum bit rate",
		 "Lower bound of the estimate, bit/s of RTP packets", DEFAULT_MIN);
	add_rate(object, PROP_MAX_BITRATE, "max-bitrate", "Maximum bit rate",
		 "Upper bound of the estimate, bit/s of RTP packets; routers are not asked for "
		 "more",
		 DEFAULT_MAX);
	add_text(object, PROP_SAFETY_NET, "safety-net", "Safety net",
		 "Name of an element with congestion control, such as rtpgccbwe, as a safety "
		 "net; "
		 "the lower estimate counts");
	add_text(object, PROP_ENCODER, "encoder", "Encoder",
		 "Name of an encoder in the pipeline: it is told its rate");
	add_text(object, PROP_SOCKET, "socket", "Socket of paqmd",
		 "Path; if not given $PAQM_SOCKET, or else /run/paqmd/client.sock");
	g_object_class_install_property(
		object, PROP_STATS,
		g_param_spec_boxed("stats", "Statistics",
				   "The newest advice, where it comes from, and what was sent",
				   GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

static void gst_paqm_estimator_init(GstPaqmEstimator *self)
{
	GstPad *pad;

	g_mutex_init(&self->lock);
	self->wake = -1;
	self->flow = -1;
	self->least = DEFAULT_MIN;
	self->most = DEFAULT_MAX;
	self->start = self->fits = self->estimate = DEFAULT_ESTIMATE;
	self->balance = balance_new();
	self->mean_packet = MEAN_PACKET - BELOW;
	self->below = BELOW;
	self->interval = INTERVAL;
	self->tap = gst_element_factory_make("identity", "tap");
	g_object_set(self->tap, "silent", TRUE, NULL);
	gst_bin_add(GST_BIN(self), self->tap);
	pad = gst_element_get_static_pad(self->tap, "sink");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_packets, self, NULL);
	gst_element_add_pad(GST_ELEMENT(self),
			    gst_ghost_pad_new_from_template(
				    "sink", pad, gst_static_pad_template_get(&sink_template)));
	gst_object_unref(pad);
	self->pacer = gst_element_factory_make("paqmpacer", NULL);
	gst_bin_add(GST_BIN(self), self->pacer);
	gst_element_link_pads(self->tap, "src", self->pacer, "sink");
	self->src = gst_ghost_pad_new_no_target_from_template(
		"src", gst_static_pad_template_get(&src_template));
	gst_element_add_pad(GST_ELEMENT(self), self->src);
	set_net(self, NULL);
}

gboolean gst_paqm_estimator_register(GstPlugin *plugin)
{
	return gst_element_register(plugin, "paqmestimator", GST_RANK_NONE,
				    GST_TYPE_PAQM_ESTIMATOR);
}
