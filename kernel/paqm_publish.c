// SPDX-License-Identifier: GPL-2.0
/*
 * What a round of the outer loop has found, as messages and packets of media say it. Process
 * context under ctl_lock; the qdisc lock is taken to publish.
 */
#include "core/paqm_laws.h"
#include "core/paqm_msg.h"
#include "paqm_derive.h"
#include "paqm_publish.h"
#include "paqm_split.h"

#define PAQM_TURN_ROUNDS 64 /* the most that a flow which has been told waits for the others */

/* The ECF value of a message: an increase is a rate, too. */
static u32 paqm_ecf_value(const struct paqm_sched_data *q)
{
	const struct paqm_ecf_out *said = &q->law.ecf.said;
	u64 bps_q20;

	if (said->kind != PAQM_ECF_AI || paqm_f32_decode(said->value, 20, &bps_q20))
		return said->value;
	bps_q20 = paqm_ip_rate(q, bps_q20);
	return bps_q20 > 1 << 20 ? paqm_f32_encode(bps_q20, 20) : PAQM_F32_ONE;
}

/* What supplements say of this router; 0 where the law does not ask. */
static u8 paqm_said(const struct paqm_sched_data *q, const struct paqm_law *law,
		    const struct paqm_each *each)
{
	if (!law->asks)
		return 0;
	return PAQM_SAID_SEARCHES | each->grade |
	       (paqm_acp_congested(paqm_media_capacity(q), q->outer_rate) ? PAQM_SAID_CONGESTED :
									    0);
}

/*
 * Publish the advice of a round; notices copy it under the qdisc lock. @whole: a period has ended,
 * and so has what senders said in it.
 */
void paqm_publish(struct paqm_sched_data *q, bool whole)
{
	const struct paqm_law *law = paqm_law_of(q->cfg.law);
	struct Qdisc *root;
	struct paqm_msg msg = {
		.router_id = q->cfg.router_id,
		.boot = q->boot,
		.seq = q->rounds,
		.ecf = law->relative ? paqm_ecf_value(q) : 0,
		.rate = max(paqm_ip_rate(q, q->fair), PAQM_RATE_MIN),
		.period_ms = min_t(u32, q->period_us / USEC_PER_MSEC, U16_MAX),
		.flows = min_t(u32, q->n_media, U16_MAX),
		.flags = paqm_by_demands(q) ? PAQM_F_FINAL : 0,
	};
	u64 backlog = READ_ONCE(q->queue[PAQM_MEDIA].st.backlog);
	u64 cu = max(paqm_media_capacity(q), 1000ULL);
	struct paqm_each each = {};
	u32 part = paqm_ip_rate(q, PAQM_IP_ALL);
	u64 told_new;

	if (law->each)
		each = law->each(&q->law);
	msg.qdelay_100us = min_t(u64, paqm_muldiv(backlog, 80000, cu), U16_MAX);
	msg.util = min_t(u64, paqm_muldiv(q->outer_rate + q->elastic_rate, U16_MAX, q->capacity),
			 U16_MAX);
	told_new = max(paqm_ip_rate(q, q->fair_new), PAQM_RATE_MIN);

	rcu_read_lock();
	root = qdisc_root_sleeping(q->sch);
	spin_lock_bh(qdisc_lock(root));
	q->advice = msg;
	q->each = each;
	q->said = paqm_said(q, law, &each);
	if (whole) {
		q->asked_then = q->asked;
		q->asked = (struct paqm_asked){};
	}
	q->told_new = told_new;
	q->ip_part = part;
	q->field = (struct paqm_field){
		.rate = paqm_f32_encode(msg.rate, 0),
		.router = (u16)msg.router_id ? (u16)msg.router_id : 1,
		.period = paqm_field_period(msg.period_ms),
	};
	if (q->tell) { /* else nobody is owed anything */
		q->round = q->rounds;
		if (q->notice_missed)
			q->notice_turn = min_t(u16, q->notice_turn + 1, PAQM_TURN_ROUNDS);
		else if (q->notice_turn > 1)
			q->notice_turn--;
		q->notice_missed = false;
		if (paqm_in_step(q))
			paqm_fb_release(q->fb, &msg, paqm_flow_clock(ktime_get_ns()));
	}
	spin_unlock_bh(qdisc_lock(root));
	rcu_read_unlock();
}
