// SPDX-License-Identifier: GPL-2.0
/*
 * Encoder core. How libx264 is made to obey (checked with libx264 164):
 *
 * Mode gop. Opened with CRF and without VBV, the quantizer of every picture is
 * forced with i_qpplus1. There is no row control without VBV, so it is exact.
 * (With X264_RC_CQP a forced quantizer would be clipped to a few steps.)
 *
 * Mode cbr. ABR with a VBV of one interval and the delay budget, retuned live.
 *
 * Mode gop+trim. A "single-frame VBV" is set anew for each picture through
 * x264_encoder_reconfig(): vbv_max_bitrate / fps is the size planned for this
 * picture, vbv_buffer_size its hard limit. With a buffer of at most 1.1 frames
 * x264 plans every picture to fill the former and its row control corrects the
 * quantizer after each macroblock row, re-encoding a row if need be. The CRF
 * is a lower limit of the quantizer (qcomp 1, no AQ, no mb-tree: CRF n is QP n).
 */
#include "streamer/encoder/h264enc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x264.h>

#include "streamer/encoder/framebudget.h"
#include "streamer/encoder/pixels.h"
#include "streamer/encoder/steps.h"
#include "streamer/encoder/x264setup.h"
#include "streamer/rtp/wire.h"

/* How much finer than the group's quantizer a trimmed picture may be; more
 * when that leaves pictures small, as after a cut to easy content.
 */
#define TRIM_FINER 6
#define TRIM_FINER_STEP 3
#define TRIM_FINER_LEAP 12
/* Row control fills 0.75 to 1.0 of the planned size, depending on content. */
#define FILL_START 0.88
#define FILL_MIN 0.65
#define FILL_MAX 1.0
#define FILL_GAIN 0.2
/* Row control may miss its hard limit slightly: keep clear of the bound. */
#define BOUND_MARGIN 0.98
#define FIRST_MOST 3 /* shares of the allowance that the first picture may take */
/* Quality floor: groups in a row that must be too coarse before more is given up (one alone that
 * does not fit at all may be a cut of the scene), or fine enough before some of it returns.
 */
#define FALL_AFTER 3
#define FALL_NO_FIT 2
#define RISE_AFTER 6
/* What was given up at a rate returns at once when the rate is this many times as high. */
#define RISE_RATE 1.5
#define QP_REF 31

#define SHRINK_FINER 9
/* What is simplified once stays so while it is coarse: of what was thrown away no next picture can
 * make use, and each would begin afresh.
 */
#define BLOCK_LEAST 4
#define BLOCK_MOST 64
#define QP_FINE 47

struct h264_enc {
	struct h264_config cfg;
	x264_t *x264;
	x264_param_t param;
	struct ra_params ra_params;
	struct ra_state ra;
	struct budget_params budget_params;
	struct budget_state budget;
	double rate;
	double qp_sum;	 /* over the pictures of this group */
	double coded_qp; /* over those that were coded */
	int coded;
	size_t step;	    /* of steps.h */
	double fell[STEPS]; /* rate at which each was entered */
	int rest;   /* pictures still to be left out: the last one coded has their time, too */
	int way;    /* where the last groups ask to go: 1 gives up more, -1 less */
	int groups; /* this many of them in a row */
	int shrink; /* in force; that of the step begins with the next picture */
	int width, height;
	unsigned int packet; /* longest of this picture */
	bool fresh;	     /* this instance of x264 has coded nothing yet */
	double last_qp;
	double finer; /* how far below the group's quantizer pictures may go */
	double fill;  /* what row control makes of a planned size */
	double floor_qp, plan_bits;
	unsigned int frame;
	unsigned int group;
	bool key_due; /* asked for while pictures were left out */
	int block;    /* pictures are simplified to, from the beginning; 0: they are not */
	int64_t pts;
	struct ra_fit fit;
	uint8_t *small;	 /* picture of less size */
	uint8_t *coarse; /* simplified picture */
	uint8_t *out;
	size_t out_size;
};

static double frame_s(const struct h264_enc *enc)
{
	return (double)enc->cfg.fps_d / enc->cfg.fps_n;
}

static double group_bits(const struct h264_enc *enc, double rate)
{
	return rate * enc->ra_params.frames * frame_s(enc);
}

/* A side of a picture made smaller; even, as 4:2:0 wants it. */
static int shrunk(int side, int shrink)
{
	return shrink == 1 ? side : side / shrink & ~1;
}

/* An instance of x264 codes one size only. */
static bool open_x264(struct h264_enc *enc)
{
	if (enc->x264)
		x264_encoder_close(enc->x264);
	enc->shrink = step_shrink(&enc->cfg, enc->step);
	enc->width = shrunk(enc->cfg.width, enc->shrink);
	enc->height = shrunk(enc->cfg.height, enc->shrink);
	enc->param.i_width = enc->width;
	enc->param.i_height = enc->height;
	enc->fresh = true;
	enc->x264 = x264_encoder_open(&enc->param);
	return enc->x264 != NULL;
}

struct h264_enc *h264_open(const struct h264_config *cfg, char *err, size_t errlen)
{
	struct h264_enc *enc = calloc(1, sizeof(*enc));

	if (!enc) {
		snprintf(err, errlen, "out of memory");
		return NULL;
	}
	enc->cfg = *cfg;
	x264setup_init(&enc->param, cfg);
	if (!open_x264(enc)) {
		snprintf(err, errlen, "libx264 refused %dx%d at %d/%d frames/s", cfg->width,
			 cfg->height, cfg->fps_n, cfg->fps_d);
		free(enc);
		return NULL;
	}
	enc->ra_params = (struct ra_params){
		.domain = RA_QP,
		.frames = cfg->gop,
		.beta = cfg->beta,
		.q_ref = QP_REF,
		.q_min = cfg->qp_min,
		.q_max = cfg->qp_max,
		.rho = 0.5,
		.gamma = cfg->gamma > 0 ? cfg->gamma : 1,
		.r_min = 1,
	};
	enc->ra_params.r_max = group_bits(enc, cfg->rate_max);
	enc->budget_params = (struct budget_params){
		.interval = frame_s(enc),
		.delay = cfg->delay,
		.use = 0.98,
	};
	enc->rate = cfg->rate;
	enc->finer = TRIM_FINER;
	enc->last_qp = cfg->qp_max;
	enc->fill = FILL_START;
	ra_init(&enc->ra, &enc->ra_params, group_bits(enc, cfg->rate));
	return enc;
}

static void begin_group(struct h264_enc *enc)
{
	double scale = (double)enc->cfg.gop / enc->ra_params.frames;

	if (scale != 1) {
		enc->ra_params.frames = enc->cfg.gop;
		enc->ra_params.r_max *= scale;
		enc->ra.x_bits *= scale;
		enc->ra.r_cur *= scale;
		enc->ra.r_last *= scale;
	}
	enc->ra_params.q_min = enc->cfg.qp_min;
	enc->ra_params.q_max = enc->cfg.qp_max;
	enc->ra.q = fmin(fmax(enc->ra.q, enc->cfg.qp_min), enc->cfg.qp_max);
	enc->qp_sum = 0;
	/* A full bucket coarsens the quantizer of content that needs little; pictures
	 * keep what they have, since each is held to its own bound anyway.
	 */
	enc->finer = fmax(TRIM_FINER, enc->ra.q - enc->last_qp + TRIM_FINER_STEP);
}

static void set_step(struct h264_enc *enc, size_t step)
{
	if (step > enc->step)
		enc->fell[step] = enc->rate;
	enc->step = step;
	enc->groups = enc->way = 0;
	enc->budget_params.interval = steps[step].every * frame_s(enc);
}

/* A new allowance; the next picture obeys it. */
void h264_set_rate(struct h264_enc *enc, double rate)
{
	if (rate > enc->cfg.rate_max)
		rate = enc->cfg.rate_max;
	if (rate == enc->rate)
		return;
	/* The group's quantizer is of the old rate: let pictures go as far as the new one. */
	if (rate > enc->rate)
		enc->finer += 6 * log2(rate / enc->rate);
	/* What is on its way at the old rate waits at the new one. */
	enc->budget.backlog += fmax(0, enc->rate - rate) * enc->rest * frame_s(enc) / 8;
	enc->rate = rate;
	while (enc->step && rate >= RISE_RATE * enc->fell[enc->step])
		set_step(enc, step_above(&enc->cfg, enc->step));
	ra_feedback(&enc->ra, &enc->ra_params, group_bits(enc, rate));
}

void h264_set_packet(struct h264_enc *enc, unsigned int packet, unsigned int coarse)
{
	enc->cfg.packet = packet;
	enc->cfg.packet_coarse = coarse;
}

/* Limits for the groups to come; the delay budget counts from the next picture. */
void h264_set_limits(struct h264_enc *enc, int gop, int qp_min, int qp_max, int floor_qp,
		     double delay)
{
	enc->cfg.floor_qp = floor_qp;
	enc->cfg.gop = gop;
	enc->cfg.qp_min = qp_min;
	enc->cfg.qp_max = qp_max;
	enc->budget_params.delay = delay;
	if (enc->ra.i == 0)
		begin_group(enc);
}

static bool grow(struct h264_enc *enc, size_t size)
{
	uint8_t *p;

	if (size <= enc->out_size)
		return true;
	p = realloc(enc->out, size);
	if (!p)
		return false;
	enc->out = p;
	enc->out_size = size;
	return true;
}

/* Copy the access unit without x264's banner and add up its cost on the wire. */
static bool collect(struct h264_enc *enc, const x264_nal_t *nal, int nals, struct h264_output *out)
{
	size_t total = 0;

	for (int i = 0; i < nals; i++)
		total += nal[i].i_payload;
	if (!grow(enc, total))
		return false;
	out->size = 0;
	for (int i = 0; i < nals; i++) {
		const uint8_t *p = nal[i].p_payload;
		int code = nal[i].b_long_startcode ? 4 : 3;
		int nal_bytes = nal[i].i_payload - code;

		/* SEI type 5: the encoder's version string, 600 bytes of nothing. */
		if (nal[i].i_type == NAL_SEI && p[code + 1] == 5)
			continue;
		memcpy(enc->out + out->size, p, nal[i].i_payload);
		out->size += nal[i].i_payload;
		out->pic.packets += wire_packets(nal_bytes, enc->packet, enc->cfg.headers);
		out->pic.wire += wire_bytes(nal_bytes, enc->packet, enc->cfg.headers);
		if (nal[i].i_type == NAL_SLICE_IDR)
			out->pic.type = 'I';
		else if (nal[i].i_type == NAL_SPS)
			out->pic.type = 'R';
	}
	out->data = enc->out;
	out->pic.bytes = out->size;
	out->pic.packet = enc->packet;
	return true;
}

static void plan_picture(struct h264_enc *enc, const struct budget *b)
{
	double fps = (double)enc->cfg.fps_n / enc->cfg.fps_d;
	double target = 8.0 * wire_largest_nal((size_t)b->target, enc->packet, enc->cfg.headers);
	double bound = 8.0 * wire_largest_nal((size_t)b->bound, enc->packet, enc->cfg.headers);

	enc->floor_qp = fmax(enc->ra.q - enc->finer, enc->cfg.qp_min);
	enc->param.rc.f_rf_constant = (float)enc->floor_qp;
	x264setup_vbv(&enc->param, fps, target / enc->fill, bound * BOUND_MARGIN);
	enc->plan_bits = enc->param.rc.i_vbv_max_bitrate * 1000.0 / fps;
	x264_encoder_reconfig(enc->x264, &enc->param);
}

static void plan_cbr(struct h264_enc *enc)
{
	x264setup_cbr(&enc->param, enc->rate,
		      enc->budget_params.interval + enc->budget_params.delay, enc->packet,
		      enc->cfg.headers);
	x264_encoder_reconfig(enc->x264, &enc->param);
}

/* Learn from a picture how far it may go and how full it gets. */
static void learn(struct h264_enc *enc, const struct budget *b, const struct h264_picture *pic)
{
	bool at_floor = pic->qp <= enc->floor_qp + 1;
	bool small = pic->wire < 0.97 * b->target;

	budget_sent(&enc->budget, &enc->budget_params, b, pic->wire, at_floor);
	if (enc->cfg.mode != H264_MODE_TRIM)
		return;
	if (at_floor && small)
		enc->finer += fmin(fmax(6 * log2(b->target / (double)pic->wire), TRIM_FINER_STEP),
				   TRIM_FINER_LEAP);
	else if (!at_floor)
		enc->fill += FILL_GAIN *
			     (fmin(fmax(8.0 * pic->bytes / enc->plan_bits, FILL_MIN), FILL_MAX) -
			      enc->fill);
}

/* Mean quantizer of a picture. x264 reports it as an offset from the CRF, which
 * later IDR pictures do not start from: there its rounded figure.
 */
static double out_qp(const struct h264_enc *enc, const x264_picture_t *rec)
{
	if (rec->i_type == X264_TYPE_IDR && !enc->fresh)
		return rec->i_qpplus1 - 1;
	return rec->prop.f_crf_avg;
}

/* The picture in the size that is coded now. */
static bool shrink(struct h264_enc *enc, const uint8_t *plane[3], int stride[3])
{
	int w = enc->width, h = enc->height;
	uint8_t *p;

	if (!enc->small)
		enc->small = malloc(pixels_size(enc->cfg.width, enc->cfg.height));
	p = enc->small;
	if (!p)
		return false;
	for (int i = 0; i < 3; i++) {
		int sw = i ? (enc->cfg.width + 1) / 2 : enc->cfg.width;
		int sh = i ? (enc->cfg.height + 1) / 2 : enc->cfg.height;

		pixels_shrink(p, w, h, plane[i], stride[i], sw, sh);
		plane[i] = p;
		stride[i] = w;
		p += (size_t)w * h;
		if (!i) {
			w /= 2;
			h /= 2;
		}
	}
	return true;
}

/* A coarser copy of a picture, in luma blocks @block pixels wide. */
static bool simplify(struct h264_enc *enc, x264_image_t *img, const uint8_t *const plane[3],
		     const int stride[3], int block)
{
	int w = enc->width, h = enc->height, cw = (w + 1) / 2, ch = (h + 1) / 2;
	uint8_t *p;

	if (!enc->coarse)
		enc->coarse = malloc(pixels_size(enc->cfg.width, enc->cfg.height));
	p = enc->coarse;
	if (!p)
		return false;
	for (int i = 0; i < 3; i++) {
		pixels_flatten(p, plane[i], stride[i], i ? cw : w, i ? ch : h,
			       i ? block / 2 : block);
		img->plane[i] = p;
		img->i_stride[i] = i ? cw : w;
		p += i ? (size_t)cw * ch : (size_t)w * h;
	}
	return true;
}

static bool encode_once(struct h264_enc *enc, x264_picture_t *in, const struct budget *b,
			struct h264_output *out)
{
	x264_picture_t rec;
	x264_nal_t *nal;
	int nals = 0;

	memset(&out->pic, 0, sizeof(out->pic));
	in->i_pts = enc->pts++;
	if (enc->cfg.mode == H264_MODE_TRIM)
		plan_picture(enc, b);
	else if (enc->cfg.mode == H264_MODE_CBR)
		plan_cbr(enc);
	else
		in->i_qpplus1 = (int)enc->ra.q + 1;
	if (x264_encoder_encode(enc->x264, &nal, &nals, in, &rec) <= 0)
		return false;
	out->pic.frame = enc->frame;
	out->pic.gop = enc->group;
	out->pic.type = 'P';
	out->pic.qp_base = (int)enc->ra.q;
	out->pic.qp = out_qp(enc, &rec);
	enc->fresh = false;
	out->pic.rate = enc->rate;
	out->pic.interval = enc->budget_params.interval;
	out->pic.psnr = rec.prop.f_psnr[0];
	out->pic.width = enc->width;
	out->pic.height = enc->height;
	if (enc->cfg.mode == H264_MODE_TRIM) {
		out->pic.bound = b->bound;
		out->pic.target = b->target;
	}
	return collect(enc, nal, nals, out);
}

/*
 * Below the floor of quality fewer pictures are better than worse ones, and smaller
 * ones better than unrecognizable ones. Of two pictures the coded one has both
 * intervals to be sent in.
 */
static void judge_quality(struct h264_enc *enc)
{
	double qp = enc->coded ? enc->coded_qp / enc->coded : QP_NO_FIT;
	int way = 0;

	enc->coded_qp = enc->coded = 0;
	if (enc->cfg.mode != H264_MODE_TRIM || enc->cfg.floor_qp >= QP_NO_FIT)
		return;
	if (qp > enc->cfg.floor_qp && step_below(&enc->cfg, enc->step, qp) > enc->step)
		way = 1;
	else if (enc->step > 0 && qp <= enc->cfg.floor_qp - steps[enc->step].finer)
		way = -1;
	enc->groups = way == enc->way ? enc->groups + 1 : 1;
	enc->way = way;
	if (!way || enc->groups < (way < 0	      ? RISE_AFTER
				   : qp > QP_COARSEST ? FALL_NO_FIT
						      : FALL_AFTER))
		return;
	set_step(enc,
		 way > 0 ? step_below(&enc->cfg, enc->step, qp) : step_above(&enc->cfg, enc->step));
}

/* Estimate the exponent of the rate model, where quantizers are what RA-SVBR said. */
static void judge_model(struct h264_enc *enc, double qp)
{
	if (enc->cfg.mode != H264_MODE_GOP || enc->cfg.gamma > 0)
		return;
	ra_fit_add(&enc->fit, qp, enc->ra.sent);
	enc->ra_params.gamma = ra_fit_gamma(&enc->fit, enc->ra_params.gamma);
}

/* Enter a picture, or one left out, into the group; close the group if complete. */
static void end_picture(struct h264_enc *enc, double wire, double qp, struct h264_output *out)
{
	ra_frame(&enc->ra, 8 * wire);
	enc->qp_sum += qp;
	enc->last_qp = qp;
	if (!ra_group_complete(&enc->ra, &enc->ra_params))
		return;
	judge_quality(enc);
	qp = enc->qp_sum / enc->ra.i;
	judge_model(enc, qp);
	out->group_end = true;
	out->group = enc->group++;
	out->group_qp = (int)enc->ra.q;
	out->group_frames = enc->ra.i;
	out->ra = ra_group_end(&enc->ra, &enc->ra_params,
			       ra_open_bits(&enc->ra_params, enc->ra.sent, qp));
	begin_group(enc);
}

/* Send nothing for this picture; a key frame that was due stays due. */
static void leave_out(struct h264_enc *enc, const struct budget *b, bool key,
		      struct h264_output *out)
{
	memset(out, 0, sizeof(*out));
	out->pic.gop = enc->group;
	out->pic.rate = enc->rate;
	out->pic.qp_base = (int)enc->ra.q;
	enc->key_due |= key;
	budget_sent(&enc->budget, &enc->budget_params, b, 0, true);
	end_picture(enc, 0, enc->ra.q, out);
}

static bool over(const struct h264_output *out, const struct budget *b)
{
	return out->pic.bound > 0 && out->pic.wire > b->bound;
}

/* Where no quantizer may be finer, what does not fill its bound could be. */
static bool could_be_finer(const struct h264_enc *enc, const struct h264_output *out)
{
	return out->pic.qp < QP_FINE ||
	       (out->pic.qp < enc->cfg.qp_min + 1 && 2 * out->pic.wire < out->pic.bound);
}

/**
 * h264_encode() - encode one picture
 * @key: start afresh with an IDR picture
 *
 * At very low rates a detailed picture may not fit even at the coarsest
 * quantizer. Then what was coded is thrown away and a coarser copy of the
 * picture starts the stream afresh, as do coarser copies of the next ones until they could be
 * finer; the very first one may take longer, since there is nothing to be seen before it. When
 * earlier pictures have used up the delay budget, after a steep fall of the allowance, the picture
 * is left out: out->size is 0.
 *
 * Return: false when libx264 failed or memory ran out; the encoder is then dead.
 */
bool h264_encode(struct h264_enc *enc, const uint8_t *const source[3], const int source_stride[3],
		 bool key, struct h264_output *out)
{
	const uint8_t *plane[3] = {source[0], source[1], source[2]};
	int stride[3] = {source_stride[0], source_stride[1], source_stride[2]};
	x264_picture_t in;
	struct budget b;

	memset(out, 0, sizeof(*out));
	/* A group that is closed begins with a key picture, the first that is coded. */
	if (enc->cfg.refresh == H264_REFRESH_IDR && enc->ra.i == 0)
		key = true;
	if (enc->rest) {
		enc->rest--;
		out->pic.gop = enc->group;
		out->pic.rate = enc->rate;
		out->pic.qp_base = (int)enc->ra.q;
		enc->key_due |= key;
		end_picture(enc, 0, enc->last_qp, out);
		return true;
	}
	enc->packet = wire_packet_of(enc->cfg.packet, enc->cfg.packet_coarse, enc->last_qp);
	b = budget_next(&enc->budget, &enc->budget_params, enc->rate);
	if (!enc->frame)
		b.bound = fmax(b.bound, FIRST_MOST * b.share);
	enc->rest = steps[enc->step].every - 1;
	if (enc->cfg.mode == H264_MODE_TRIM && b.skip) {
		leave_out(enc, &b, key, out);
		return true;
	}
	if (enc->shrink != step_shrink(&enc->cfg, enc->step)) {
		/* The group's quantizer is of the larger size. */
		if (enc->shrink < step_shrink(&enc->cfg, enc->step))
			enc->finer += SHRINK_FINER;
		if (!open_x264(enc))
			return false;
	}
	if (enc->shrink > 1 && !shrink(enc, plane, stride))
		return false;
	x264_picture_init(&in);
	in.img.i_csp = X264_CSP_I420;
	in.img.i_plane = 3;
	for (int i = 0; i < 3; i++) {
		in.img.plane[i] = (uint8_t *)(uintptr_t)plane[i];
		in.img.i_stride[i] = stride[i];
	}
	key |= enc->key_due;
	enc->key_due = false;
	in.i_type = key || enc->fresh ? X264_TYPE_IDR : X264_TYPE_AUTO;
	if ((enc->block && !simplify(enc, &in.img, plane, stride, enc->block)) ||
	    !encode_once(enc, &in, &b, out))
		return false;
	enc->coded++;
	enc->coded_qp += enc->block || over(out, &b) ? QP_NO_FIT : out->pic.qp;
	if (enc->block && !over(out, &b) && could_be_finer(enc, out))
		enc->block = enc->block > BLOCK_LEAST ? enc->block / 2 : 0;
	while (enc->block < BLOCK_MOST && over(out, &b)) {
		enc->block = enc->block ? 2 * enc->block : BLOCK_LEAST;
		in.i_type = X264_TYPE_IDR;
		if (!simplify(enc, &in.img, plane, stride, enc->block) ||
		    !encode_once(enc, &in, &b, out))
			return false;
	}
	if (over(out, &b)) {
		leave_out(enc, &b, true, out);
		return true;
	}
	learn(enc, &b, &out->pic);
	end_picture(enc, out->pic.wire, out->pic.qp, out);
	enc->frame++;
	return true;
}

void h264_close(struct h264_enc *enc)
{
	if (!enc)
		return;
	if (enc->x264)
		x264_encoder_close(enc->x264);
	free(enc->small);
	free(enc->coarse);
	free(enc->out);
	free(enc);
}
