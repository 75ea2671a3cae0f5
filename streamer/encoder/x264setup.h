/* SPDX-License-Identifier: GPL-2.0 */
/* How libx264 is opened and retuned for the modes of h264config.h. */
#ifndef PAQM_X264SETUP_H
#define PAQM_X264SETUP_H

#include <stdint.h>
#include <x264.h>

#include "streamer/encoder/h264config.h"

/* Parameters of a new instance for all but the size of pictures, which may change. */
void x264setup_init(x264_param_t *p, const struct h264_config *cfg);

/**
 * x264setup_vbv() - mode gop+trim: plan one picture
 * @plan_bits: what it should have
 * @limit_bits: what it may have
 */
void x264setup_vbv(x264_param_t *p, double fps, double plan_bits, double limit_bits);

/**
 * x264setup_cbr() - mode cbr: a new rate
 * @rate: bit/s, IP level
 * @buffer: seconds of it that the buffer holds
 * @packet, @headers: see wire.h
 */
void x264setup_cbr(x264_param_t *p, double rate, double buffer, unsigned int packet,
		   unsigned int headers);

#endif /* PAQM_X264SETUP_H */
