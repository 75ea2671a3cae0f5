/* SPDX-License-Identifier: GPL-2.0 */
/* paqm-streamer call: what its parts share. */
#ifndef PAQM_CALL_H
#define PAQM_CALL_H

#include <gst/gst.h>
#include <stdio.h>

#include "streamer/call/offer.h"

/* What a recording of a call consists of; every file may be missing (NULL). */
struct call_record {
	char *dir;
	FILE *frames, *gop, *feedback, *control; /* what was sent */
	FILE *rx;				 /* video packets that came */
	FILE *play[CALL_MEDIA];			 /* what was shown and heard */
	FILE *rtcp;				 /* reports of the peer */
	FILE *events;				 /* mute, loss of the daemon, the end */
};

#define CALL_FRAMES_HEADER                                                                         \
	"frame,t_ns,rtp_ts,src_frame,gop,type,qp_base,qp,bytes,wire_bytes,packets,bound_bytes,"    \
	"allowance_bps"
#define CALL_GOP_HEADER                                                                            \
	"gop,t_ns,frames,qp_base,R_bits,r_eff,b_eff,X,overflow,x,e1,e2,R_open,R_temp,Qstar,r_t"
#define CALL_FEEDBACK_HEADER "t_ns,router,cause,value,rate_bps"
#define CALL_RX_HEADER "t_ns,seq,rtp_ts,marker,wire_bytes"
#define CALL_PLAY_HEADER "index,capture_ns,arrival_ns,play_ns"
#define CALL_RTCP_HEADER "t_ns,media,fraction_lost,packets_lost,jitter_ms,rtt_ms"
#define CALL_EVENTS_HEADER "t_ns,event,detail"

gboolean call_record_open(struct call_record *r, const char *dir, GError **error);
void call_record_event(struct call_record *r, const char *event, const char *detail);
gboolean call_record_close(struct call_record *r);

#endif /* PAQM_CALL_H */
