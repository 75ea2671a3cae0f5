// SPDX-License-Identifier: GPL-2.0
/*
 * A model of D-CBT's main experiment (J. Chung, WPI 2000): the law itself, from core/, over flows
 *of simple TCP, to see what of its figures hangs on the TCP. `dcbt_model reno|newreno [SEED]`:
 *
 *	reno	ns-2's of that time: fast recovery ends with the first new acknowledgement, clocks
 *		tick in 0.1 s, windows begin with 1
 *	newreno	recovery to its end (RFC 6582), limited transmit (RFC 3042), fine clocks, windows
 *		begin with 10: as Linux without SACK
 *
 * Prints one JSON object: what of TCP and of tagged flows was delivered and dropped in 30 s, and
 * rates by period. Units: packets of 1000 bytes, seconds.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/paqm_chips.h"

#define END 30.0
#define SLOT 0.00032   /* a packet at 25 Mbit/s */
#define BEFORE 0.00532 /* from a sender to the queue, */
#define BEHIND 0.02564 /* from there to its receiver, */
#define BACK 0.03      /* and back */
#define WINDOW 20      /* segments */
#define LIMIT 60       /* packets of the queue */
#define SWEEP 0.3
#define TCP 55
#define MM 10
#define CBR 2
#define FLOWS (TCP + MM + CBR)
#define LEVELS 5
#define EVENTS (1 << 16)

enum kind { ARRIVE, LEAVE, RECEIVE, ACK, TIMEOUT, SEND, CHECK, WISH };

struct event {
	double at;
	unsigned long order;
	enum kind kind;
	int flow;
	long value; /* sequence, acknowledgement, level, or a timer's number */
};

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
};

struct waiting {
	int flow;
	long seq;
};

static const double levels[LEVELS] = {300e3, 500e3, 700e3, 900e3, 1100e3};
static const int begins[] = {0, 20, 0, 10}; /* s: of TCP 0 to 24, 25 to 54, MM, CBR */

static struct event heap[EVENTS];
static int events;
static unsigned long orders;
static double now;
static bool newreno;

static struct tcp tcp[TCP];
static struct mm mm[MM];
static struct waiting queue[LIMIT + 1];
static int waiting, held[PAQM_CBT_CLASSES];
static bool busy;
static double idle_since = -1, seen[FLOWS];
static struct paqm_red_params params;
static struct paqm_red_vars red;
static paqm_u64 average[PAQM_CBT_CLASSES];
static paqm_u32 active[PAQM_CBT_CLASSES];
static long sent[3][PAQM_CBT_CLASSES], dropped[PAQM_CBT_CLASSES];

static enum paqm_cbt_class class_of(int flow)
{
	return flow < TCP ? PAQM_CBT_TCP : flow < TCP + MM ? PAQM_CBT_TAGGED : PAQM_CBT_UNTAGGED;
}

static bool before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void at(double when, enum kind kind, int flow, long value)
{
	struct event e = {when, orders++, kind, flow, value};
	int i = events++;

	if (events == EVENTS)
		abort();
	for (; i && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static struct event pop(void)
{
	struct event first = heap[0], last = heap[--events];
	int i = 0, child;

	while ((child = 2 * i + 1) < events) {
		if (child + 1 < events && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* ------------------------------------------------------------------ TCP */

static double rto(const struct tcp *t)
{
	if (newreno)
		return (t->srtt + fmax(0.2, 4 * t->var)) * t->backoff;
	return fmax(0.2, ceil(10 * (t->srtt + 4 * t->var)) / 10) * t->backoff;
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

static void seen_frame(struct mm *m, long seq)
{
	if (seq > m->expected)
		m->lost += seq - m->expected;
	if (seq >= m->expected)
		m->expected = seq + 1;
	m->got++;
}

static void check(int flow)
{
	struct mm *m = &mm[flow - TCP];

	if (m->lost || !m->got)
		m->wish /= 2;
	else if (m->wish < LEVELS - 1)
		m->wish++;
	m->lost = m->got = 0;
	at(now + BACK, WISH, flow, m->wish);
	at(now + BEFORE + BEHIND + BACK + waiting * SLOT, CHECK, flow, 0);
}

/* ------------------------------------------------------------------ the queue */

static void count_flow(int flow)
{
	memset(active, 0, sizeof(active));
	seen[flow] = now;
	/* exact where sch_dcbt sweeps: a flow counts for 0.3 s behind its last packet */
	for (int i = 0; i < FLOWS; i++)
		active[class_of(i)] += seen[i] >= 0 && now - seen[i] <= SWEEP;
}

static bool struck(enum paqm_cbt_class class)
{
	paqm_u32 of[PAQM_CBT_CLASSES];

	for (int i = 0; i < PAQM_CBT_CLASSES; i++)
		of[i] = (paqm_u32)held[i];
	paqm_dcbt_average(&red.avg, average, (paqm_u32)waiting, of, params.weight_q24);
	return paqm_dcbt_gate(&params, red.avg) && class != PAQM_CBT_TCP &&
	       paqm_cbt_over(average[class], paqm_dcbt_threshold(&params, PAQM_Q24(1, 10), 0, class,
								 red.avg, active));
}

static void decay(void)
{
	paqm_u64 packets;

	if (waiting || busy || idle_since < 0)
		return;
	packets = (paqm_u64)((now - idle_since) / SLOT);
	if (packets)
		idle_since = now;
	red.avg = paqm_red_decay(red.avg, params.weight_q24, packets);
	for (int i = 0; i < PAQM_CBT_CLASSES; i++)
		average[i] = paqm_red_decay(average[i], params.weight_q24, packets);
}

static void leave(void)
{
	struct waiting w = queue[0];

	if (!waiting) {
		busy = false;
		idle_since = now;
		return;
	}
	memmove(queue, queue + 1, (size_t)--waiting * sizeof(*queue));
	held[class_of(w.flow)]--;
	sent[(int)(now / 10) % 3][class_of(w.flow)]++;
	busy = true;
	at(now + SLOT, LEAVE, 0, 0);
	at(now + BEHIND, RECEIVE, w.flow, w.seq);
}

static void arrive(int flow, long seq)
{
	enum paqm_cbt_class class = class_of(flow);
	enum paqm_red_verdict verdict;

	count_flow(flow);
	decay();
	if (struck(class)) {
		dropped[class]++;
		return;
	}
	verdict = paqm_red_test(&red, &params, (paqm_u32)waiting, (paqm_u32)mrand48());
	if (verdict == PAQM_RED_EARLY) {
		dropped[class]++;
		return;
	}
	queue[waiting++] = (struct waiting){flow, seq};
	held[class]++;
	if (verdict == PAQM_RED_FORCED || waiting > LIMIT) {
		int victim = (int)(drand48() * waiting);

		class = class_of(queue[victim].flow);
		dropped[class]++;
		held[class]--;
		memmove(queue + victim, queue + victim + 1,
			(size_t)(--waiting - victim) * sizeof(*queue));
		red.count = 0;
	}
	if (!busy)
		leave();
}

static void act(const struct event *e)
{
	struct tcp *t = &tcp[e->flow % TCP];

	switch (e->kind) {
	case ARRIVE:
		arrive(e->flow, e->value);
		break;
	case LEAVE:
		leave();
		break;
	case RECEIVE:
		if (e->flow < TCP)
			received(e->flow, e->value);
		else if (e->flow < TCP + MM)
			seen_frame(&mm[e->flow - TCP], e->value);
		break;
	case ACK:
		acknowledged(t, e->value);
		break;
	case TIMEOUT:
		if (e->value == t->timer)
			timed_out(t);
		break;
	case SEND:
		if (e->flow < TCP) {
			send_more(t);
			arm(t);
		} else if (e->flow < TCP + MM) {
			frame(e->flow);
		} else {
			at(now + BEFORE, ARRIVE, e->flow, 0);
			at(now + 8000 / 5e6, SEND, e->flow, 0);
		}
		break;
	case CHECK:
		check(e->flow);
		break;
	case WISH:
		mm[e->flow - TCP].level = (int)e->value;
	}
}

static void begin(void)
{
	params = (struct paqm_red_params){.min = 5 * PAQM_RED_PACKET,
					  .max = 15 * PAQM_RED_PACKET,
					  .weight_q24 = PAQM_Q24(2, 1000),
					  .max_p_q24 = PAQM_Q24(1, 10)};
	paqm_red_start(&red, &params, 0);
	for (int i = 0; i < FLOWS; i++) {
		int group = i < 25 ? 0 : i < TCP ? 1 : i < TCP + MM ? 2 : 3;
		double start = begins[group] + 0.5 * drand48();

		seen[i] = -1;
		at(start, SEND, i, 0);
		if (group == 2)
			at(start + BEFORE + BEHIND + 0.062, CHECK, i, 0);
		if (i < TCP)
			tcp[i] = (struct tcp){.cwnd = newreno ? 10 : 1,
					      .ssthresh = WINDOW,
					      .timed = -1,
					      .backoff = 1,
					      .var = 0.7,
					      .srtt = 0.2};
	}
}

static double percent(enum paqm_cbt_class class)
{
	double of = sent[0][class] + sent[1][class] + sent[2][class];

	return 100 * dropped[class] / (of + dropped[class]);
}

static long all(enum paqm_cbt_class class)
{
	return sent[0][class] + sent[1][class] + sent[2][class];
}

int main(int argc, char **argv)
{
	if (argc < 2 || (strcmp(argv[1], "reno") != 0 && strcmp(argv[1], "newreno") != 0)) {
		fputs("usage: dcbt_model reno|newreno [SEED]\n", stderr);
		return 2;
	}
	newreno = argv[1][0] == 'n';
	srand48(argc > 2 ? atol(argv[2]) : 1);
	begin();
	while (events && heap[0].at < END) {
		struct event e = pop();

		now = e.at;
		act(&e);
	}
	printf("{\"tcp_packets\": %ld, \"tcp_drop0\": %.4f, \"tagged_packets\": %ld, "
	       "\"tagged_drop0\": %.4f",
	       all(PAQM_CBT_TCP), percent(PAQM_CBT_TCP), all(PAQM_CBT_TAGGED),
	       percent(PAQM_CBT_TAGGED));
	for (int n = 0; n < 3; n++)
		printf(", \"tcp%d\": %.1f, \"tagged%d\": %.1f, \"untagged%d\": %.1f", n + 1,
		       sent[n][PAQM_CBT_TCP] * 0.8 / (n == 2 ? TCP : 25), n + 1,
		       sent[n][PAQM_CBT_TAGGED] * 0.8 / MM, n + 1,
		       sent[n][PAQM_CBT_UNTAGGED] * 0.8 / CBR);
	printf("}\n");
	return 0;
}
