/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RTCP extended reports (RFC 3611): the statistics summary of a stream, section 4.6, for whoever
 * watches the session. Pure functions; bytes in and out.
 */
#ifndef PAQM_XR_H
#define PAQM_XR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XR_SUMMARY_LEN 48 /* an XR packet with this block alone */

/* Packets since the last summary; begins zeroed. */
struct xr_window {
	bool begun;
	uint32_t first, highest; /* sequence numbers with their cycles */
	uint32_t received;
	bool timed;
	uint32_t transit; /* of the last packet, in units of the RTP clock */
	uint32_t n, least, most;
	double sum, squares;
};

/**
 * xr_see() - a packet of the stream came
 * @seq: its sequence number
 * @transit: arrival less RTP time stamp, both in units of the RTP clock; wraps
 */
void xr_see(struct xr_window *w, uint16_t seq, uint32_t transit);

/**
 * xr_summary() - write what came, begin anew
 * @p: room for XR_SUMMARY_LEN bytes
 * @ssrc: of the reporter
 * @media: of the stream
 *
 * Losses and jitter; duplicates and times to live are not reported.
 * Return: XR_SUMMARY_LEN; 0 if nothing came.
 */
size_t xr_summary(uint8_t *p, struct xr_window *w, uint32_t ssrc, uint32_t media);

#endif /* PAQM_XR_H */
