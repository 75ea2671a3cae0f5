/* SPDX-License-Identifier: GPL-2.0 */
/* What paqmh264enc tells (signals "picture", "group"), and the rows of frames.csv and gop.csv. */
#ifndef PAQM_STREAMER_ENCODED_H
#define PAQM_STREAMER_ENCODED_H

#include <gst/gst.h>
#include <stdio.h>

/* Key frames that the peer asks for are so far apart at least. */
#define KEY_INTERVAL_NS 500000000

/**
 * struct encoded - a coded picture
 * @pts: ns
 * @type: I or P, belongs to the structure
 * @bytes: of the picture; @wire: with all headers; @packets: in how many
 * @packet: bytes of the longest of them, with all headers; 0: as the payloader is set
 * @bound: most that it was allowed to have, bytes
 * @rate: bit/s in force
 * @interval: s that it may take to be sent
 */
struct encoded {
	guint64 pts;
	guint frame, gop, bytes, wire, packets, packet;
	int qp_base, width, height;
	double qp, bound, rate, interval;
	const char *type;
};

/* Read the signal's structure; what it lacks is 0. */
struct encoded encoded_read(const GstStructure *p);

/**
 * encoded_cut() - let the payloader cut a picture as it was planned
 * @e: picture, which the encoder has not let go yet
 * @pay: where it goes next
 * @headers: see wire_headers()
 */
void encoded_cut(const struct encoded *e, GstElement *pay, guint headers);

#define ENCODED_HEADER                                                                             \
	"frame,t_ns,rtp_ts,src_frame,gop,type,qp_base,qp,bytes,wire_bytes,packets,bound_bytes,"    \
	"allowance_bps,width,height"

/**
 * encoded_log() - a row below ENCODED_HEADER
 * @log: NULL: nothing is written
 * @e: picture
 * @wall_ns: when it was taken, ns of the wall clock
 * @rtp_ts: its RTP time stamp
 * @index: its number in the source's file
 */
void encoded_log(FILE *log, const struct encoded *e, gint64 wall_ns, guint32 rtp_ts, guint index);

#define ENCODED_GROUP_HEADER                                                                       \
	"gop,t_ns,frames,qp_base,R_bits,r_eff,b_eff,X,overflow,x,e1,e2,R_open,R_temp,Qstar,r_t"

/**
 * encoded_group_log() - a row below ENCODED_GROUP_HEADER
 * @log: NULL: nothing is written
 * @g: what the signal "group" tells
 * @wall_ns: when it ended
 */
void encoded_group_log(FILE *log, const GstStructure *g, gint64 wall_ns);

#endif /* PAQM_STREAMER_ENCODED_H */
