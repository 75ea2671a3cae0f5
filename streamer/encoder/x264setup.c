// SPDX-License-Identifier: GPL-2.0
/* Parameters of libx264; see x264setup.h, and h264enc.c for why they are these. */
#include "streamer/encoder/x264setup.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "streamer/rtp/wire.h"

#define VBV_FRAMES 1.09

/*
 * Plan one picture. x264 counts the buffer in units of 1000 bits and the rate in
 * 1000 bit/s, and must find the buffer smaller than 1.1 pictures.
 */
void x264setup_vbv(x264_param_t *param, double fps, double plan_bits, double limit_bits)
{
	double size = fmin(floor(limit_bits / 1000), ceil(VBV_FRAMES * plan_bits / 1000));

	size = fmax(size, 1);
	plan_bits = fmax(fmin(plan_bits, size * 1000), size * 1000 / VBV_FRAMES);
	param->rc.i_vbv_buffer_size = (int)size;
	param->rc.i_vbv_max_bitrate = (int)fmax(1, floor(plan_bits * fps / 1000));
}

/* Rate of the stream itself, kbit/s, and a buffer of this many seconds of it. */
void x264setup_cbr(x264_param_t *param, double rate, double buffer, unsigned int packet,
		   unsigned int headers)
{
	param->rc.i_bitrate = (int)fmax(1, rate * wire_share(packet, headers) / 1000);
	param->rc.i_vbv_max_bitrate = param->rc.i_bitrate;
	param->rc.i_vbv_buffer_size = (int)fmax(1, param->rc.i_bitrate * buffer);
}

/* Statistics need x264's log level INFO; say only what went wrong. */
static void log_errors(void *unused, int level, const char *fmt, va_list args)
{
	(void)unused;
	if (level > X264_LOG_ERROR)
		return;
	fputs("libx264: ", stderr);
	vfprintf(stderr, fmt, args);
}

void x264setup_init(x264_param_t *p, const struct h264_config *cfg)
{
	double fps = (double)cfg->fps_n / cfg->fps_d;

	x264_param_default_preset(p, "faster", "zerolatency,psnr");
	p->i_log_level = X264_LOG_INFO;
	p->pf_log = log_errors;
	p->i_threads = 1;
	p->b_sliced_threads = 0;
	p->i_width = cfg->width;
	p->i_height = cfg->height;
	p->i_csp = X264_CSP_I420;
	p->i_fps_num = cfg->fps_n;
	p->i_fps_den = cfg->fps_d;
	p->i_timebase_num = cfg->fps_d;
	p->i_timebase_den = cfg->fps_n;
	p->b_vfr_input = 0;
	/* Left out, a decoder guesses by the height, which may fall below the quality floor. */
	p->vui.b_fullrange = cfg->colour.full_range;
	p->vui.i_colorprim = cfg->colour.primaries;
	p->vui.i_transfer = cfg->colour.transfer;
	p->vui.i_colmatrix = cfg->colour.matrix;
	p->vui.i_sar_width = cfg->colour.sar_n;
	p->vui.i_sar_height = cfg->colour.sar_d;
	p->i_bframe = 0;
	p->i_frame_reference = 1;
	p->i_scenecut_threshold = 0;
	/* IDR pictures of groups are asked for one by one: groups may change their length. */
	p->i_keyint_max = cfg->refresh == H264_REFRESH_IDR ? X264_KEYINT_MAX_INFINITE : cfg->wave;
	p->i_keyint_min = p->i_keyint_max;
	p->b_intra_refresh = cfg->refresh == H264_REFRESH_INTRA;
	p->b_repeat_headers = 1;
	p->b_annexb = 1;
	p->b_aud = 0;
	p->analyse.i_weighted_pred = X264_WEIGHTP_NONE;
	p->analyse.b_psnr = cfg->psnr;
	p->rc.i_rc_method = X264_RC_CRF;
	p->rc.f_rf_constant = cfg->qp_max;
	p->rc.f_qcompress = 1.0f;
	p->rc.f_ip_factor = 1.0f;
	p->rc.i_aq_mode = X264_AQ_NONE;
	p->rc.b_mb_tree = 0;
	p->rc.i_lookahead = 0;
	/* The configured limits may change and are kept elsewhere; besides, the
	 * bound comes before the upper one.
	 */
	p->rc.i_qp_min = 0;
	p->rc.i_qp_max = 51;
	p->rc.i_qp_step = 16;
	p->rc.f_rate_tolerance = 0.01f;
	if (cfg->mode == H264_MODE_CBR) {
		p->rc.i_rc_method = X264_RC_ABR;
		p->rc.f_rate_tolerance = 1;
		p->rc.f_qcompress = 0.6f;
		p->rc.i_qp_min = cfg->qp_min;
		x264setup_cbr(p, cfg->rate, 1 / fps + cfg->delay, cfg->packet, cfg->headers);
	}
	if (cfg->mode == H264_MODE_TRIM) {
		double frame = cfg->rate_max / fps;

		x264setup_vbv(p, fps, frame, frame * VBV_FRAMES);
	}
	x264_param_apply_profile(p, "high");
}
