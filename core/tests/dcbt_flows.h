/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flows of dcbt_model.c, which see: events, TCP and multimedia of five levels, and the times of
 * the main experiment (J. Chung, WPI 2000). Who includes this has the queue, `waiting` packets.
 */
#ifndef DCBT_FLOWS_H
#define DCBT_FLOWS_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/tests/events.h"

#define END 30.0
#define SLOT 0.00032   /* a packet at 25 Mbit/s */
#define BEFORE 0.00532 /* from a sender to the queue, */
#define BEHIND 0.02564 /* from there to its receiver, */
#define BACK 0.03      /* and back */
#define WINDOW 20      /* segments */
#define TCP 55
#define MM 10
#define CBR 2
#define FLOWS (TCP + MM + CBR)
#define LEVELS 5
enum kind { ARRIVE, LEAVE, RECEIVE, ACK, TIMEOUT, SEND, CHECK, WISH };

struct tcp {
	double cwnd, ssthresh, access; /* access: when its own link is free again */
	long una, next, most, recover;
	int dup;
	bool recovering;
	double srtt, var, backoff;
	long timer; /* only the newest counts */
	long timed; /* segment whose round trip is measured; -1: none */
	double timed_at;
	long expected; /* the receiver's */
	bool here[4 * WINDOW];
};

struct mm {
	int level, wish; /* the sender's, the receiver's */
	long sent, expected, lost, got;
	double rest; /* immediate: no other step down before */
};

static const double levels[LEVELS] = {300e3, 500e3, 700e3, 900e3, 1100e3};
static const int begins[] = {0, 20, 0, 10}; /* s: of TCP 0 to 24, 25 to 54, MM, CBR */

static struct events todo;
static double now;
static int waiting;    /* packets in the queue */
static bool newreno;   /* else reno */
static bool slow;      /* the least time-out is 1 s */
static bool immediate; /* MM_APP goes down at a loss, then rests for a round trip */
static struct tcp tcp[TCP];
static struct mm mm[MM];
/* @value: sequence, acknowledgement, level, or a timer's number */
static void at(double when, enum kind kind, int flow, long value)
{
	events_add(&todo,
		   (struct event){.t = when, .kind = (int)kind, .flow = flow, .value = value});
}

/* ------------------------------------------------------------------ TCP */

static double rto(const struct tcp *t)
{
	double least = slow ? 1 : 0.2;

	if (newreno)
		return (t->srtt + fmax(least, 4 * t->var)) * t->backoff;
	return fmax(least, ceil(10 * (t->srtt + 4 * t->var)) / 10) * t->backoff;
}

static void arm(struct tcp *t)
{
	at(now + rto(t), TIMEOUT, (int)(t - tcp), ++t->timer);
}

static void transmit(struct tcp *t, long seq)
{
	t->access = fmax(now, t->access + SLOT);
	at(t->access + BEFORE, ARRIVE, (int)(t - tcp), seq);
	if (t->timed < 0 && seq == t->most) {
		t->timed = seq;
		t->timed_at = now;
	} else if (seq == t->timed) {
		t->timed = -1; /* sent twice: it says nothing (Karn) */
	}
	if (seq >= t->most)
		t->most = seq + 1;
}

/* What windows and, in recovery, duplicate acknowledgements allow. */
static void send_more(struct tcp *t)
{
	double allowed = t->cwnd;

	if (t->recovering)
		allowed += t->dup;
	else if (newreno && t->dup < 3)
		allowed += t->dup; /* limited transmit */
	while (t->next < t->una + (long)fmin(allowed, WINDOW))
		transmit(t, t->next++);
}

static void measure(struct tcp *t, long ack)
{
	double sample = now - t->timed_at;

	if (t->timed < 0 || ack <= t->timed)
		return;
	t->timed = -1;
	if (!newreno)
		sample = 0.1 * (floor(10 * sample) + 1);
	if (t->srtt <= 0) {
		t->srtt = sample;
		t->var = sample / 2;
	} else {
		t->var += (fabs(sample - t->srtt) - t->var) / 4;
		t->srtt += (sample - t->srtt) / 8;
	}
	t->backoff = 1;
}

static void acknowledged(struct tcp *t, long ack)
{
	if (ack > t->una) {
		bool partial = t->recovering && newreno && ack < t->recover;

		measure(t, ack);
		if (t->recovering) {
			/* what has left the network is no more to be made up for */
			t->dup = partial ? (int)fmax(0, t->dup - (double)(ack - t->una) + 1) : 0;
			t->recovering = partial;
			t->cwnd = t->ssthresh;
		} else {
			t->dup = 0;
			t->cwnd += t->cwnd < t->ssthresh ? 1 : 1 / t->cwnd;
			t->cwnd = fmin(t->cwnd, WINDOW);
		}
		t->una = ack;
		t->next = t->next > ack ? t->next : ack;
		if (partial)
			transmit(t, t->una);
		arm(t);
	} else if (++t->dup == 3 && !t->recovering && ack >= t->recover) {
		t->ssthresh = fmax(2, fmin(t->cwnd, (double)(t->next - t->una)) / 2);
		t->cwnd = t->ssthresh;
		t->recovering = true;
		t->recover = t->most;
		transmit(t, t->una);
		arm(t);
	}
	send_more(t);
}

static void timed_out(struct tcp *t)
{
	t->ssthresh = fmax(2, fmin(t->cwnd, (double)(t->next - t->una)) / 2);
	t->cwnd = 1;
	t->next = t->una;
	t->dup = 0;
	t->recovering = false;
	t->recover = t->most;
	t->timed = -1;
	t->backoff = fmin(64, 2 * t->backoff);
	arm(t);
	send_more(t);
}

static void received(int flow, long seq)
{
	struct tcp *t = &tcp[flow];

	if (seq >= t->expected)
		t->here[seq % (4 * WINDOW)] = true;
	while (t->here[t->expected % (4 * WINDOW)])
		t->here[t->expected++ % (4 * WINDOW)] = false;
	at(now + BACK, ACK, flow, t->expected);
}

/* ------------------------------------------------------------------ multimedia */

static void frame(int flow)
{
	struct mm *m = &mm[flow - TCP];

	at(now + BEFORE, ARRIVE, flow, m->sent++);
	at(now + 8000 / levels[m->level], SEND, flow, 0);
}

static double round_trip(void)
{
	return BEFORE + BEHIND + BACK + waiting * SLOT;
}

static void seen_frame(int flow, long seq)
{
	struct mm *m = &mm[flow - TCP];

	if (seq > m->expected)
		m->lost += seq - m->expected;
	if (seq > m->expected && immediate && now >= m->rest) {
		m->wish /= 2;
		m->rest = now + round_trip();
		at(now + BACK, WISH, flow, m->wish);
	}
	if (seq >= m->expected)
		m->expected = seq + 1;
	m->got++;
}

static void check(int flow)
{
	struct mm *m = &mm[flow - TCP];

	if (m->lost || !m->got)
		m->wish /= immediate && m->lost ? 1 : 2; /* a loss has had its answer */
	else if (now >= m->rest && m->wish < LEVELS - 1)
		m->wish++;
	m->lost = m->got = 0;
	at(now + BACK, WISH, flow, m->wish);
	at(now + round_trip(), CHECK, flow, 0);
}

#endif /* DCBT_FLOWS_H */
