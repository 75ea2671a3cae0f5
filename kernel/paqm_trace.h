/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: paqm:law, a round of the outer loop; paqm:notice, a message that was
 * owed to a sender; paqm:drop, a packet that this qdisc dropped or marked.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM paqm

#if !defined(PAQM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define PAQM_TRACE_H

#include <linux/if.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include "paqm_classify.h"
#include "paqm_state.h"

TRACE_EVENT(law,

	TP_PROTO(const struct paqm_sched_data *q, const char *dev, u32 backlog,
		 unsigned long events),

	TP_ARGS(q, dev, backlog, events),

	TP_STRUCT__entry(
		__array(char, dev, IFNAMSIZ)
		__field(u64, router_id)
		__field(u64, capacity)
		__field(u64, fair)
		__field(u64, rate)
		__field(u64, elastic_rate)
		__field(u32, seq)
		__field(u32, events)
		__field(u32, backlog)
		__field(u32, n_media)
		__field(u32, n_elastic)
		__field(u32, share_q16)
	),

	TP_fast_assign(
		strscpy(__entry->dev, dev, IFNAMSIZ);
		__entry->router_id = q->cfg.router_id;
		__entry->capacity = q->capacity;
		__entry->fair = q->fair;
		__entry->rate = q->outer_rate;
		__entry->elastic_rate = q->elastic_rate;
		__entry->seq = q->rounds;
		__entry->events = events;
		__entry->backlog = backlog;
		__entry->n_media = q->n_media;
		__entry->n_elastic = q->n_elastic;
		__entry->share_q16 = q->share_next;
	),

	TP_printk("dev=%s router=%016llx seq=%u events=%#x capacity=%llu fair=%llu rate=%llu elastic_rate=%llu backlog=%u media=%u elastic=%u share=%u/65536",
		  __entry->dev, __entry->router_id, __entry->seq, __entry->events,
		  __entry->capacity, __entry->fair, __entry->rate, __entry->elastic_rate,
		  __entry->backlog, __entry->n_media, __entry->n_elastic, __entry->share_q16)
);

TRACE_EVENT(notice,

	TP_PROTO(const char *dev, const struct paqm_packet *p, const struct paqm_msg *msg,
		 bool queued),

	TP_ARGS(dev, p, msg, queued),

	TP_STRUCT__entry(
		__array(char, dev, IFNAMSIZ)
		__field(u64, router_id)
		__field(u64, flow)
		__field(u32, seq)
		__field(u32, erf)
		__field(u32, ecf)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, family)
		__field(u8, queued)
		__array(u8, saddr, 16)
		__array(u8, daddr, 16)
	),

	TP_fast_assign(
		struct paqm_tuple tuple;

		strscpy(__entry->dev, dev, IFNAMSIZ);
		__entry->router_id = msg->router_id;
		__entry->flow = p->hash;
		__entry->seq = msg->seq;
		__entry->erf = paqm_f32_encode(msg->rate, 0);
		__entry->ecf = msg->ecf;
		__entry->sport = ntohl(p->ports) >> 16;
		__entry->dport = ntohl(p->ports) & 0xFFFF;
		__entry->family = p->family;
		__entry->queued = queued;
		paqm_tuple_set(&tuple, p);
		memcpy(__entry->saddr, tuple.saddr, 16);
		memcpy(__entry->daddr, tuple.daddr, 16);
	),

	/* rates are binary32; ecf is 0 if the message has no relative value */
	TP_printk("dev=%s router=%016llx seq=%u flow=%016llx family=%u sport=%u dport=%u erf=0x%08x ecf=0x%08x %s",
		  __entry->dev, __entry->router_id, __entry->seq, __entry->flow, __entry->family,
		  __entry->sport, __entry->dport, __entry->erf, __entry->ecf,
		  __entry->queued ? "queued" : "ring full")
);

TRACE_EVENT(drop,

	TP_PROTO(const char *dev, u32 class, u32 reason, u32 len, u32 backlog, u32 prob),

	TP_ARGS(dev, class, reason, len, backlog, prob),

	TP_STRUCT__entry(
		__array(char, dev, IFNAMSIZ)
		__field(u32, class)
		__field(u32, reason)
		__field(u32, len)
		__field(u32, backlog)
		__field(u32, prob)
	),

	TP_fast_assign(
		strscpy(__entry->dev, dev, IFNAMSIZ);
		__entry->class = class;
		__entry->reason = reason;
		__entry->len = len;
		__entry->backlog = backlog;
		__entry->prob = prob;
	),

	TP_printk("dev=%s class=%s reason=%s len=%u backlog=%u prob=%u/2^32", __entry->dev,
		  __entry->class == PAQM_MEDIA ? "media" : "elastic",
		  __print_symbolic(__entry->reason, { PAQM_DROP_TAIL, "tail" },
				   { PAQM_DROP_INNER, "inner" }, { PAQM_DROP_STRIKE, "strike" },
				   { PAQM_DROP_OVER, "over" }, { PAQM_DROP_FULL, "over full" },
				   { PAQM_DROP_MARK, "mark" }),
		  __entry->len, __entry->backlog, __entry->prob)
);

#endif /* PAQM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE paqm_trace
#include <trace/define_trace.h>
