// SPDX-License-Identifier: GPL-2.0
/**
 * SECTION:element-paqmh264enc
 *
 * H.264 encoder for live media over a network that tells its senders what they
 * may send. The property "rate" is the allowance in bit/s at the IP level; it
 * may change at any time and the next picture obeys it. A quantizer is chosen
 * per group of pictures (RA-SVBR); in mode gop+trim every picture is kept
 * within a size that the allowance can carry in one frame interval plus the
 * delay budget; in mode cbr libx264 rules, with a VBV of the same length. When quantizers
 * are at their end, pictures become fewer and then smaller ("floor-qp"). The signal "picture"
 * reports each picture, "group" each group, as a #GstStructure, from the streaming thread.
 *
 * paqm-picture: pts (running time, ns), frame (number of coded pictures before), gop (its
 * group), type (I: IDR, R: begins a wave, P), qp-base (of the group), qp (mean of the picture),
 * bytes, wire-bytes (with the headers of its packets), packets, bound-bytes (on the wire at
 * most; 0: none), rate (bit/s in force), interval (s until the next coded picture), width, height.
 * paqm-group: pts, gop, frames, qp-base, and RA-SVBR's figures in bits per group: R (sent),
 * r-eff (mean allowance), b-eff, X, overflow, x, e1, e2, R-open, R-temp, Q-star, r-t; gamma.
 *
 * Over the network, and into a file with closed groups of one quantizer each:
 *
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! video/x-raw,format=I420,width=640,height=360 ! \
 *     paqmh264enc rate=1000000 ! rtph264pay mtu=1164 ! paqmpacer ! \
 *     udpsink host=127.0.0.1 port=5004 sync=false
 * gst-launch-1.0 videotestsrc num-buffers=240 ! video/x-raw,format=I420 ! \
 *     paqmh264enc mode=gop refresh=idr gamma=0 ! h264parse ! mp4mux ! filesink location=test.mp4
 * ]|
 */
#include "streamer/gst/gstpaqmh264enc.h"

#include "streamer/encoder/h264enc.h"
#include "streamer/rtp/wire.h"

GST_DEBUG_CATEGORY_STATIC(paqmh264enc_debug);
#define GST_CAT_DEFAULT paqmh264enc_debug

#define DEFAULT_RATE 1000000
#define DEFAULT_RATE_MAX 20000000
#define DEFAULT_GOP 12
#define DEFAULT_REFRESH H264_REFRESH_INTRA
#define DEFAULT_WAVE 96
#define DEFAULT_QP_MIN 4
#define DEFAULT_QP_MAX 51
#define DEFAULT_FLOOR_QP 50
#define DEFAULT_DELAY 12000
#define DEFAULT_BETA 1.5
#define DEFAULT_GAMMA 1
#define DEFAULT_HEADERS wire_headers(false, false)
#define DEFAULT_MODE H264_MODE_TRIM

struct _GstPaqmH264Enc {
	GstVideoEncoder parent;

	/* Properties, under the object lock. */
	guint64 rate;
	guint64 rate_max;
	gint gop;
	gint refresh;
	gint wave;
	gint qp_min;
	gint qp_max;
	gint floor_qp;
	guint delay_us;
	gdouble beta;
	gdouble gamma;
	guint packet, packet_coarse;
	guint headers;
	gint mode;
	gboolean limits_changed;

	struct h264_enc *enc;
	GstVideoCodecState *input;
	int width, height; /* of the pictures that come out, as downstream knows it */
};

G_DEFINE_TYPE(GstPaqmH264Enc, gst_paqm_h264_enc, GST_TYPE_VIDEO_ENCODER)

enum {
	PROP_0,
	PROP_RATE,
	PROP_RATE_MAX,
	PROP_GOP,
	PROP_REFRESH,
	PROP_WAVE,
	PROP_QP_MIN,
	PROP_QP_MAX,
	PROP_FLOOR_QP,
	PROP_DELAY,
	PROP_BETA,
	PROP_GAMMA,
	PROP_PACKET,
	PROP_PACKET_COARSE,
	PROP_HEADERS,
	PROP_MODE,
};

enum { SIGNAL_PICTURE, SIGNAL_GROUP, SIGNALS };

static guint signals[SIGNALS];

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE(
	"sink", GST_PAD_SINK, GST_PAD_ALWAYS,
	GST_STATIC_CAPS("video/x-raw, format=(string)I420, width=(int)[16, 4096, 2], "
			"height=(int)[16, 4096, 2], framerate=(fraction)[1/1, 240/1]"));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE(
	"src", GST_PAD_SRC, GST_PAD_ALWAYS,
	GST_STATIC_CAPS("video/x-h264, stream-format=(string)byte-stream, alignment=(string)au, "
			"profile=(string)high, width=(int)[16, 4096], height=(int)[16, 4096], "
			"framerate=(fraction)[1/1, 240/1]"));

#define TYPE_REFRESH refresh_get_type()
static GType refresh_get_type(void)
{
	static gsize type;
	static const GEnumValue values[] = {
		{H264_REFRESH_INTRA, "A column of intra blocks moves through the picture", "intra"},
		{H264_REFRESH_IDR, "Each group begins with an IDR picture, groups are closed",
		 "idr"},
		{0, NULL, NULL},
	};

	if (g_once_init_enter(&type))
		g_once_init_leave(&type, g_enum_register_static("GstPaqmH264EncRefresh", values));
	return type;
}

#define TYPE_MODE mode_get_type()
static GType mode_get_type(void)
{
	static gsize type;
	static const GEnumValue values[] = {
		{H264_MODE_GOP, "One quantizer per group, sizes unbounded", "gop"},
		{H264_MODE_TRIM, "The same, each picture kept within its budget", "gop+trim"},
		{H264_MODE_CBR, "libx264's own control, for comparison", "cbr"},
		{0, NULL, NULL},
	};

	if (g_once_init_enter(&type))
		g_once_init_leave(&type, g_enum_register_static("GstPaqmH264EncMode", values));
	return type;
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
	GstPaqmH264Enc *self = GST_PAQM_H264_ENC(object);

	GST_OBJECT_LOCK(self);
	self->limits_changed = TRUE;
	switch (id) {
	case PROP_RATE:
		self->rate = g_value_get_uint64(value);
		break;
	case PROP_RATE_MAX:
		self->rate_max = g_value_get_uint64(value);
		break;
	case PROP_GOP:
		self->gop = g_value_get_int(value);
		break;
	case PROP_REFRESH:
		self->refresh = g_value_get_enum(value);
		break;
	case PROP_WAVE:
		self->wave = g_value_get_int(value);
		break;
	case PROP_QP_MIN:
		self->qp_min = g_value_get_int(value);
		break;
	case PROP_QP_MAX:
		self->qp_max = g_value_get_int(value);
		break;
	case PROP_FLOOR_QP:
		self->floor_qp = g_value_get_int(value);
		break;
	case PROP_DELAY:
		self->delay_us = g_value_get_uint(value);
		break;
	case PROP_BETA:
		self->beta = g_value_get_double(value);
		break;
	case PROP_GAMMA:
		self->gamma = g_value_get_double(value);
		break;
	case PROP_PACKET:
		self->packet = g_value_get_uint(value);
		break;
	case PROP_PACKET_COARSE:
		self->packet_coarse = g_value_get_uint(value);
		break;
	case PROP_HEADERS:
		self->headers = g_value_get_uint(value);
		break;
	case PROP_MODE:
		self->mode = g_value_get_enum(value);
		break;
	default:
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
	}
	GST_OBJECT_UNLOCK(self);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
	GstPaqmH264Enc *self = GST_PAQM_H264_ENC(object);

	GST_OBJECT_LOCK(self);
	switch (id) {
	case PROP_RATE:
		g_value_set_uint64(value, self->rate);
		break;
	case PROP_RATE_MAX:
		g_value_set_uint64(value, self->rate_max);
		break;
	case PROP_GOP:
		g_value_set_int(value, self->gop);
		break;
	case PROP_REFRESH:
		g_value_set_enum(value, self->refresh);
		break;
	case PROP_WAVE:
		g_value_set_int(value, self->wave);
		break;
	case PROP_QP_MIN:
		g_value_set_int(value, self->qp_min);
		break;
	case PROP_QP_MAX:
		g_value_set_int(value, self->qp_max);
		break;
	case PROP_FLOOR_QP:
		g_value_set_int(value, self->floor_qp);
		break;
	case PROP_DELAY:
		g_value_set_uint(value, self->delay_us);
		break;
	case PROP_BETA:
		g_value_set_double(value, self->beta);
		break;
	case PROP_GAMMA:
		g_value_set_double(value, self->gamma);
		break;
	case PROP_PACKET:
		g_value_set_uint(value, self->packet);
		break;
	case PROP_PACKET_COARSE:
		g_value_set_uint(value, self->packet_coarse);
		break;
	case PROP_HEADERS:
		g_value_set_uint(value, self->headers);
		break;
	case PROP_MODE:
		g_value_set_enum(value, self->mode);
		break;
	default:
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
	}
	GST_OBJECT_UNLOCK(self);
}

static void close_encoder(GstPaqmH264Enc *self)
{
	h264_close(self->enc);
	self->enc = NULL;
	if (self->input)
		gst_video_codec_state_unref(self->input);
	self->input = NULL;
}

static gboolean enc_stop(GstVideoEncoder *base)
{
	close_encoder(GST_PAQM_H264_ENC(base));
	return TRUE;
}

/* What comes out from now on; a size of its own below the quality floor. */
static void set_output(GstPaqmH264Enc *self, int width, int height)
{
	GstVideoEncoder *base = GST_VIDEO_ENCODER(self);
	GstVideoCodecState *state = gst_video_encoder_set_output_state(
		base,
		gst_caps_new_simple("video/x-h264", "stream-format", G_TYPE_STRING, "byte-stream",
				    "alignment", G_TYPE_STRING, "au", "profile", G_TYPE_STRING,
				    "high", NULL),
		self->input);

	state->info.width = width;
	state->info.height = height;
	gst_video_codec_state_unref(state);
	self->width = width;
	self->height = height;
}

static struct h264_colour colour_of(const GstVideoInfo *info)
{
	const GstVideoColorimetry *c = &GST_VIDEO_INFO_COLORIMETRY(info);

	return (struct h264_colour){
		.full_range = c->range == GST_VIDEO_COLOR_RANGE_0_255,
		.primaries = (int)gst_video_color_primaries_to_iso(c->primaries),
		.transfer = (int)gst_video_transfer_function_to_iso(c->transfer),
		.matrix = (int)gst_video_color_matrix_to_iso(c->matrix),
		.sar_n = GST_VIDEO_INFO_PAR_N(info),
		.sar_d = GST_VIDEO_INFO_PAR_D(info),
	};
}

static gboolean enc_set_format(GstVideoEncoder *base, GstVideoCodecState *state)
{
	GstPaqmH264Enc *self = GST_PAQM_H264_ENC(base);
	GstVideoInfo *info = &state->info;
	struct h264_config cfg;
	char err[200];

	close_encoder(self);
	GST_OBJECT_LOCK(self);
	cfg = (struct h264_config){
		.width = GST_VIDEO_INFO_WIDTH(info),
		.height = GST_VIDEO_INFO_HEIGHT(info),
		.colour = colour_of(info),
		.fps_n = GST_VIDEO_INFO_FPS_N(info),
		.fps_d = GST_VIDEO_INFO_FPS_D(info),
		.mode = self->mode,
		.gop = self->gop,
		.refresh = self->refresh,
		.wave = self->wave,
		.qp_min = self->qp_min,
		.qp_max = MAX(self->qp_min, self->qp_max),
		.floor_qp = self->floor_qp,
		.beta = self->beta,
		.gamma = self->gamma,
		.delay = self->delay_us / 1e6,
		.rate = MIN(self->rate, self->rate_max),
		.rate_max = self->rate_max,
		.packet = self->packet,
		.packet_coarse = self->packet_coarse,
		.headers = self->headers,
	};
	self->limits_changed = FALSE;
	GST_OBJECT_UNLOCK(self);
	self->enc = h264_open(&cfg, err, sizeof(err));
	if (!self->enc) {
		GST_ELEMENT_ERROR(self, LIBRARY, INIT, ("%s", err), (NULL));
		return FALSE;
	}
	self->input = gst_video_codec_state_ref(state);
	set_output(self, cfg.width, cfg.height);
	gst_video_encoder_set_latency(base, 0, 0);
	return TRUE;
}

static void report(GstPaqmH264Enc *self, const struct h264_output *out, GstClockTime pts)
{
	const struct h264_picture *pic = &out->pic;
	GstStructure *s;

	if (out->size) {
		char type[2] = {pic->type, 0};

		s = gst_structure_new(
			"paqm-picture", "pts", G_TYPE_UINT64, pts, "frame", G_TYPE_UINT, pic->frame,
			"gop", G_TYPE_UINT, pic->gop, "type", G_TYPE_STRING, type, "qp-base",
			G_TYPE_INT, pic->qp_base, "qp", G_TYPE_DOUBLE, pic->qp, "bytes",
			G_TYPE_UINT, (guint)pic->bytes, "wire-bytes", G_TYPE_UINT, (guint)pic->wire,
			"packets", G_TYPE_UINT, pic->packets, "packet", G_TYPE_UINT, pic->packet,
			"bound-bytes", G_TYPE_DOUBLE, pic->bound, "rate", G_TYPE_DOUBLE, pic->rate,
			"interval", G_TYPE_DOUBLE, pic->interval, "width", G_TYPE_INT, pic->width,
			"height", G_TYPE_INT, pic->height, NULL);
		g_signal_emit(self, signals[SIGNAL_PICTURE], 0, s);
		gst_structure_free(s);
	}
	if (!out->group_end)
		return;
	s = gst_structure_new("paqm-group", "pts", G_TYPE_UINT64, pts, "gop", G_TYPE_UINT,
			      out->group, "frames", G_TYPE_INT, out->group_frames, "qp-base",
			      G_TYPE_INT, out->group_qp, "R", G_TYPE_DOUBLE, out->ra.R, "r-eff",
			      G_TYPE_DOUBLE, out->ra.r_eff, "b-eff", G_TYPE_DOUBLE, out->ra.b_eff,
			      "X", G_TYPE_DOUBLE, out->ra.X, "overflow", G_TYPE_DOUBLE,
			      out->ra.overflow, "x", G_TYPE_DOUBLE, out->ra.x, "e1", G_TYPE_DOUBLE,
			      out->ra.e1, "e2", G_TYPE_DOUBLE, out->ra.e2, "R-open", G_TYPE_DOUBLE,
			      out->ra.R_open, "R-temp", G_TYPE_DOUBLE, out->ra.R_temp, "Q-star",
			      G_TYPE_DOUBLE, out->ra.q_star, "r-t", G_TYPE_DOUBLE, out->ra.r_t,
			      "gamma", G_TYPE_DOUBLE, out->ra.gamma, NULL);
	g_signal_emit(self, signals[SIGNAL_GROUP], 0, s);
	gst_structure_free(s);
}

static GstFlowReturn enc_handle_frame(GstVideoEncoder *base, GstVideoCodecFrame *frame)
{
	GstPaqmH264Enc *self = GST_PAQM_H264_ENC(base);
	struct h264_output out;
	const uint8_t *plane[3];
	int stride[3];
	GstVideoFrame vf;
	gboolean ok;

	GST_OBJECT_LOCK(self);
	h264_set_rate(self->enc, self->rate);
	h264_set_packet(self->enc, self->packet, self->packet_coarse);
	if (self->limits_changed)
		h264_set_limits(self->enc, self->gop, self->qp_min, MAX(self->qp_min, self->qp_max),
				self->floor_qp, self->delay_us / 1e6);
	self->limits_changed = FALSE;
	GST_OBJECT_UNLOCK(self);

	if (!gst_video_frame_map(&vf, &self->input->info, frame->input_buffer, GST_MAP_READ)) {
		GST_ELEMENT_ERROR(self, STREAM, ENCODE, ("cannot read a picture"), (NULL));
		gst_video_codec_frame_unref(frame);
		return GST_FLOW_ERROR;
	}
	for (int i = 0; i < 3; i++) {
		plane[i] = GST_VIDEO_FRAME_PLANE_DATA(&vf, i);
		stride[i] = GST_VIDEO_FRAME_PLANE_STRIDE(&vf, i);
	}
	ok = h264_encode(self->enc, plane, stride, GST_VIDEO_CODEC_FRAME_IS_FORCE_KEYFRAME(frame),
			 &out);
	gst_video_frame_unmap(&vf);
	if (!ok) {
		GST_ELEMENT_ERROR(self, STREAM, ENCODE, ("libx264 failed"), (NULL));
		gst_video_codec_frame_unref(frame);
		return GST_FLOW_ERROR;
	}
	if (out.size && (out.pic.width != self->width || out.pic.height != self->height))
		set_output(self, out.pic.width, out.pic.height);
	report(self, &out, frame->pts);
	if (!out.size) /* Without output buffer the base class counts it as dropped. */
		return gst_video_encoder_finish_frame(base, frame);
	frame->output_buffer = gst_video_encoder_allocate_output_buffer(base, out.size);
	gst_buffer_fill(frame->output_buffer, 0, out.data, out.size);
	frame->dts = frame->pts;
	if (out.pic.type == 'I')
		GST_VIDEO_CODEC_FRAME_SET_SYNC_POINT(frame);
	return gst_video_encoder_finish_frame(base, frame);
}

static void gst_paqm_h264_enc_class_init(GstPaqmH264EncClass *klass)
{
	GObjectClass *object = G_OBJECT_CLASS(klass);
	GstElementClass *element = GST_ELEMENT_CLASS(klass);
	GstVideoEncoderClass *encoder = GST_VIDEO_ENCODER_CLASS(klass);
	const GParamFlags fixed =
		G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;
	const GParamFlags live =
		G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

	GST_DEBUG_CATEGORY_INIT(paqmh264enc_debug, "paqmh264enc", 0, "P-AQM H.264 encoder");
	object->set_property = set_property;
	object->get_property = get_property;
	encoder->stop = enc_stop;
	encoder->set_format = enc_set_format;
	encoder->handle_frame = enc_handle_frame;
	gst_element_class_add_static_pad_template(element, &sink_template);
	gst_element_class_add_static_pad_template(element, &src_template);
	gst_element_class_set_static_metadata(
		element, "P-AQM H.264 encoder", "Codec/Encoder/Video",
		"H.264 with bounded pictures that obeys a live allowance", "P-AQM");
	gst_element_class_add_static_metadata(
		element, "Example-live",
		"gst-launch-1.0 videotestsrc is-live=true ! "
		"video/x-raw,format=I420,width=640,height=360 ! paqmh264enc rate=1000000 ! "
		"rtph264pay mtu=1164 ! paqmpacer ! udpsink host=127.0.0.1 port=5004 sync=false");
	gst_element_class_add_static_metadata(
		element, "Example-file",
		"gst-launch-1.0 videotestsrc num-buffers=240 ! video/x-raw,format=I420 ! "
		"paqmh264enc mode=gop refresh=idr gamma=0 ! h264parse ! mp4mux ! "
		"filesink location=test.mp4");

	g_object_class_install_property(object, PROP_RATE,
					g_param_spec_uint64("rate", "Rate",
							    "Allowance at the IP level, bit/s",
							    1000, G_MAXUINT32, DEFAULT_RATE, live));
	g_object_class_install_property(object, PROP_RATE_MAX,
					g_param_spec_uint64("rate-max", "Highest rate",
							    "Allowance never exceeded, bit/s", 1000,
							    G_MAXUINT32, DEFAULT_RATE_MAX, fixed));
	g_object_class_install_property(object, PROP_GOP,
					g_param_spec_int("gop", "Group",
							 "Pictures that share a base quantizer", 1,
							 600, DEFAULT_GOP, live));
	g_object_class_install_property(
		object, PROP_REFRESH,
		g_param_spec_enum("refresh", "Refresh",
				  "How what was lost returns; a key frame asked for is an IDR "
				  "picture with either",
				  TYPE_REFRESH, DEFAULT_REFRESH, fixed));
	g_object_class_install_property(
		object, PROP_WAVE,
		g_param_spec_int("wave", "Wave",
				 "Pictures per wave of intra blocks (refresh=intra)", 2, 10000,
				 DEFAULT_WAVE, fixed));
	g_object_class_install_property(object, PROP_QP_MIN,
					g_param_spec_int("qp-min", "Finest quantizer",
							 "Finest quantizer", 0, 51, DEFAULT_QP_MIN,
							 live));
	g_object_class_install_property(
		object, PROP_QP_MAX,
		g_param_spec_int("qp-max", "Coarsest quantizer",
				 "Coarsest base quantizer; trimmed pictures may go to 51", 0, 51,
				 DEFAULT_QP_MAX, live));
	g_object_class_install_property(
		object, PROP_FLOOR_QP,
		g_param_spec_int(
			"floor-qp", "Quality floor",
			"When pictures are coarser than this for three groups, or most do not fit "
			"at all for two, every other one is left out; if that is not enough, their "
			"sides are halved, twice at most. "
			"What was given up returns when they are 10 (size: 14) finer for six "
			"groups, or the rate has risen by half. 52: never",
			10, 52, DEFAULT_FLOOR_QP, live));
	g_object_class_install_property(
		object, PROP_DELAY,
		g_param_spec_uint("delay-budget", "Delay budget",
				  "Longest queue a picture may cause at the allowance, us", 1000,
				  1000000, DEFAULT_DELAY, live));
	g_object_class_install_property(object, PROP_BETA,
					g_param_spec_double("beta", "Beta",
							    "RA-SVBR bucket over the allowance", 1,
							    20, DEFAULT_BETA, fixed));
	g_object_class_install_property(
		object, PROP_GAMMA,
		g_param_spec_double("gamma", "Gamma",
				    "Exponent g of the model bits ~ 2^(-g QP/6); 0: estimated from "
				    "the last 20 groups (only mode=gop, else 1)",
				    0, 2, DEFAULT_GAMMA, fixed));
	g_object_class_install_property(
		object, PROP_PACKET,
		g_param_spec_uint("packet", "Packet",
				  "Bytes of the longest IP packet, from the next picture on. The "
				  "payloader's mtu is to go with it, which counts neither IP nor "
				  "extensions: mtu = packet - headers + 12. The signal \"picture\" "
				  "tells it of each picture before that leaves",
				  400, 65535, WIRE_PACKET, live));
	g_object_class_install_property(
		object, PROP_PACKET_COARSE,
		g_param_spec_uint("packet-coarse", "Packet of coarse pictures",
				  "The same for a picture after one whose quantizer was coarser "
				  "than 28, if it is more than \"packet\"",
				  0, 65535, 0, live));
	g_object_class_install_property(
		object, PROP_HEADERS,
		g_param_spec_uint("headers", "Headers",
				  "Bytes around the payload of each packet, from IP to RTP and "
				  "its extensions. 48: IPv4 and "
				  "transport-wide sequence numbers; IPv6: 20 more, SRTP: 10 more",
				  40, 300, DEFAULT_HEADERS, fixed));
	g_object_class_install_property(object, PROP_MODE,
					g_param_spec_enum("mode", "Mode",
							  "How the quantizer is controlled",
							  TYPE_MODE, DEFAULT_MODE, fixed));

	signals[SIGNAL_PICTURE] =
		g_signal_new("picture", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
			     NULL, G_TYPE_NONE, 1, GST_TYPE_STRUCTURE | G_SIGNAL_TYPE_STATIC_SCOPE);
	signals[SIGNAL_GROUP] =
		g_signal_new("group", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
			     NULL, G_TYPE_NONE, 1, GST_TYPE_STRUCTURE | G_SIGNAL_TYPE_STATIC_SCOPE);
}

static void gst_paqm_h264_enc_init(GstPaqmH264Enc *self)
{
	self->rate = DEFAULT_RATE;
	self->rate_max = DEFAULT_RATE_MAX;
	self->gop = DEFAULT_GOP;
	self->refresh = DEFAULT_REFRESH;
	self->wave = DEFAULT_WAVE;
	self->qp_min = DEFAULT_QP_MIN;
	self->qp_max = DEFAULT_QP_MAX;
	self->floor_qp = DEFAULT_FLOOR_QP;
	self->delay_us = DEFAULT_DELAY;
	self->beta = DEFAULT_BETA;
	self->gamma = DEFAULT_GAMMA;
	self->packet = WIRE_PACKET;
	self->headers = DEFAULT_HEADERS;
	self->mode = DEFAULT_MODE;
}

gboolean gst_paqm_h264_enc_register(GstPlugin *plugin)
{
	return gst_element_register(plugin, "paqmh264enc", GST_RANK_NONE, GST_TYPE_PAQM_H264_ENC);
}
