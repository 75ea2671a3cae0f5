// SPDX-License-Identifier: GPL-2.0
/*
 * A model of D-CBT's main experiment (J. Chung, WPI 2000): the law itself, from core/, over flows
 * of simple TCP, to see what of its figures hangs on the TCP, on a queue that swings, and on what
 * the thesis leaves open. `dcbt_model TCP [SEED [CHOICE...]]`:
 *
 *	reno	ns-2's of that time: fast recovery ends with the first new acknowledgement, clocks
 *		tick in 0.1 s, windows begin with 1
 *	newreno	recovery to its end (RFC 6582), limited transmit (RFC 3042), fine clocks, windows
 *		begin with 10: as Linux without SACK
 *	held	no TCP: whenever a packet leaves, packets of TCP's class fill the queue up to 10,
 *		or to what `swing=N` makes of it, and RED lets them pass. UDP is as ever.
 *
 * Choices are in `choices` below. Prints one JSON object: what of TCP and of tagged flows was
 * delivered and dropped in 30 s, and by period rates, what a packet waits for, the queue's mean
 * and deviation. Units: packets of 1000 bytes, seconds; waits in packets' time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/paqm_chips.h"
#include "core/tests/dcbt_flows.h"

#define LIMIT 60 /* packets of the queue */
#define SWEEP 0.3
#define HELD 10.0  /* packets: the queue of `held`, */
#define SWINGS 2   /* and how often in a second it swings */
#define SETTLE 2.0 /* of a period, before waits and queue count */
#define PERIODS 3
#define PERIOD 10.0

struct waiting {
	int flow;
	long seq;
	double since;
};

/* What the queue was in a period, behind SETTLE. */
struct watched {
	double time, len, square, waits[PAQM_CBT_CLASSES];
	long left[PAQM_CBT_CLASSES];
};

/* Where the thesis is silent or says two things (above the line), and other readings of it. */
enum choice {
	TAIL,
	UNIFORM,
	IMMEDIATE,
	ADMITTED,
	CAP,
	HALF,
	AT_ONCE,
	SLOW,
	/* not what it says */
	OWN,
	BEFORE_TEST,
	APART,
	KNOWN,
	CBT,
	CHOICES
};

static const struct {
	const char *word, *means;
} choices[CHOICES] = {
	[TAIL] = {"tail", "a forced drop takes the arrival, not a packet at random"},
	[UNIFORM] = {"uniform", "early drops spaced as in 1993, not as in ns-2"},
	[IMMEDIATE] = {"immediate", "MM_APP goes down at a loss, then rests for a round trip"},
	[ADMITTED] = {"admitted", "flows count by packets that are queued, not by arrivals"},
	[CAP] = {"cap", "an untagged flow's threshold is never above a tagged one's"},
	[HALF] = {"half", "idle time counts in packets of 500 bytes, ns-2's default"},
	[AT_ONCE] = {"at-once", "flows of a group begin at once, not within 0.5 s"},
	[SLOW] = {"slow", "the least time-out is 1 s"},
	[OWN] = {"own", "a class's average is updated by its own arrivals"},
	[BEFORE_TEST] = {"before", "classes are tested first, who passes updates all averages"},
	[APART] = {"apart", "RED's average is updated by what reaches RED, classes' by all"},
	[KNOWN] = {"known", "flows are those that have begun, whether they send or not"},
	[CBT] = {"cbt", "CBT with its fixed thresholds, 2.9 and 0.6"},
};

static bool keep, chosen[CHOICES];
static double swing;
static struct watched watched[PERIODS];

static struct waiting queue[LIMIT + 1];
static int held[PAQM_CBT_CLASSES];
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

/* Of `begins`. */
static int group_of(int flow)
{
	return flow < 25 ? 0 : flow < TCP ? 1 : flow < TCP + MM ? 2 : 3;
}

static int period(void)
{
	return (int)(now / PERIOD) % PERIODS;
}

static bool settled(void)
{
	return now - period() * PERIOD >= SETTLE;
}

/* ------------------------------------------------------------------ the queue */

static void arrive(int flow, long seq);

static void count_flow(int flow)
{
	memset(active, 0, sizeof(active));
	if (!chosen[ADMITTED])
		seen[flow] = now;
	/* exact where sch_dcbt sweeps: a flow counts for 0.3 s behind its last packet */
	for (int i = 0; i < FLOWS; i++)
		active[class_of(i)] += chosen[KNOWN] ? now >= begins[group_of(i)]
						     : seen[i] >= 0 && now - seen[i] <= SWEEP;
}

static bool over(enum paqm_cbt_class class)
{
	return class != PAQM_CBT_TCP && paqm_dcbt_gate(&params, red.avg) &&
	       paqm_cbt_over(average[class],
			     paqm_dcbt_threshold(&params, PAQM_Q24(1, 10), chosen[CAP], class,
						 red.avg, active));
}

/* The average of one class, and with the last that of the queue. */
static void sample(int class)
{
	bool whole = class == PAQM_CBT_CLASSES;
	paqm_u64 *avg = whole ? &red.avg : &average[class];

	*avg = paqm_red_average(*avg, (paqm_u32)(whole ? waiting : held[class]), params.weight_q24);
}

/* Averages are updated, and the class is tested. */
static bool struck(enum paqm_cbt_class class)
{
	static const paqm_u64 fixed[] = {PAQM_CBT_NONE, PAQM_Q24(29, 10), PAQM_Q24(6, 10)};
	paqm_u32 of[PAQM_CBT_CLASSES];
	bool drop;

	if (chosen[OWN] || chosen[CBT])
		sample(class);
	if (chosen[CBT]) {
		if (paqm_cbt_over(average[class], fixed[class]))
			return true;
		sample(PAQM_CBT_CLASSES);
		return false;
	}
	if (chosen[OWN]) {
		sample(PAQM_CBT_CLASSES);
		return over(class);
	}
	if (chosen[APART]) {
		for (int i = 0; i < PAQM_CBT_CLASSES; i++)
			sample(i);
		drop = over(class);
		if (!drop)
			sample(PAQM_CBT_CLASSES);
		return drop;
	}
	if (chosen[BEFORE_TEST] && over(class))
		return true;
	for (int i = 0; i < PAQM_CBT_CLASSES; i++)
		of[i] = (paqm_u32)held[i];
	paqm_dcbt_average(&red.avg, average, (paqm_u32)waiting, of, params.weight_q24);
	return !chosen[BEFORE_TEST] && over(class);
}

static void decay(void)
{
	paqm_u64 packets;

	if (waiting || busy || idle_since < 0)
		return;
	packets = (paqm_u64)((now - idle_since) / (chosen[HALF] ? SLOT / 2 : SLOT));
	if (packets)
		idle_since = now;
	red.avg = paqm_red_decay(red.avg, params.weight_q24, packets);
	for (int i = 0; i < PAQM_CBT_CLASSES; i++)
		average[i] = paqm_red_decay(average[i], params.weight_q24, packets);
}

/* `held`: the queue is as long as it shall be. */
static void fill(void)
{
	static int next;
	double level = HELD + swing * sin(2 * M_PI * SWINGS * now);
	int flows = now < begins[1] ? 25 : TCP;

	while (keep && waiting < level)
		arrive(next++ % flows, 0);
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
	sent[period()][class_of(w.flow)]++;
	if (settled()) {
		watched[period()].waits[class_of(w.flow)] += (now - w.since) / SLOT;
		watched[period()].left[class_of(w.flow)]++;
	}
	busy = true;
	fill();
	at(now + SLOT, LEAVE, 0, 0);
	at(now + BEHIND, RECEIVE, w.flow, w.seq);
}

static void arrive(int flow, long seq)
{
	enum paqm_cbt_class class = class_of(flow);
	enum paqm_red_verdict verdict = PAQM_RED_PASS;

	count_flow(flow);
	decay();
	if (struck(class)) {
		dropped[class]++;
		return;
	}
	if (!keep || class != PAQM_CBT_TCP)
		verdict = paqm_red_test(&red, &params, (paqm_u32)waiting, (paqm_u32)mrand48());
	if (verdict == PAQM_RED_EARLY) {
		dropped[class]++;
		return;
	}
	seen[flow] = now;
	queue[waiting++] = (struct waiting){flow, seq, now};
	held[class]++;
	if (verdict == PAQM_RED_FORCED || waiting > LIMIT) {
		int victim = chosen[TAIL] ? waiting - 1 : (int)(drand48() * waiting);

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

	switch ((enum kind)e->kind) {
	case ARRIVE:
		arrive(e->flow, e->value);
		break;
	case LEAVE:
		leave();
		break;
	case RECEIVE:
		if (e->flow < TCP && !keep)
			received(e->flow, e->value);
		else if (class_of(e->flow) == PAQM_CBT_TAGGED)
			seen_frame(e->flow, e->value);
		break;
	case ACK:
		acknowledged(t, e->value);
		break;
	case TIMEOUT:
		if (e->value == t->timer)
			timed_out(t);
		break;
	case SEND:
		if (e->flow < TCP && keep) {
			fill();
		} else if (e->flow < TCP) {
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
					  .max_p_q24 = PAQM_Q24(1, 10),
					  .uniform = chosen[UNIFORM]};
	paqm_red_start(&red, &params, 0);
	for (int i = 0; i < FLOWS; i++) {
		int group = group_of(i);
		double start = begins[group] + (chosen[AT_ONCE] ? 0 : 0.5 * drand48());

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

/* The queue as it was until now. */
static void watch(double until)
{
	struct watched *s = &watched[period()];
	double time = until - now;

	if (!settled())
		return;
	s->time += time;
	s->len += time * waiting;
	s->square += time * waiting * waiting;
}

static void print_period(int n)
{
	const struct watched *s = &watched[n];
	double mean = s->len / s->time, wait[PAQM_CBT_CLASSES];

	for (int i = 0; i < PAQM_CBT_CLASSES; i++)
		wait[i] = s->left[i] ? s->waits[i] / (double)s->left[i] : 0;
	printf(", \"tcp%d\": %.1f, \"tagged%d\": %.1f, \"untagged%d\": %.1f", n + 1,
	       sent[n][PAQM_CBT_TCP] * 0.8 / (n == 2 ? TCP : 25), n + 1,
	       sent[n][PAQM_CBT_TAGGED] * 0.8 / MM, n + 1, sent[n][PAQM_CBT_UNTAGGED] * 0.8 / CBR);
	printf(", \"len%d\": %.2f, \"deviation%d\": %.2f, \"tcp_waits%d\": %.2f, "
	       "\"tagged_waits%d\": %.2f, \"untagged_waits%d\": %.2f",
	       n + 1, mean, n + 1, sqrt(fmax(0, s->square / s->time - mean * mean)), n + 1,
	       wait[PAQM_CBT_TCP], n + 1, wait[PAQM_CBT_TAGGED], n + 1, wait[PAQM_CBT_UNTAGGED]);
}

static int usage(void)
{
	fputs("usage: dcbt_model reno|newreno|held [SEED [CHOICE|swing=PACKETS]...]\n", stderr);
	for (int i = 0; i < CHOICES; i++)
		fprintf(stderr, "  %-10s %s\n", choices[i].word, choices[i].means);
	return 2;
}

static bool choose(const char *word)
{
	if (sscanf(word, "swing=%lf", &swing) == 1)
		return true;
	for (int i = 0; i < CHOICES; i++)
		if (strcmp(word, choices[i].word) == 0)
			return chosen[i] = true;
	return false;
}

int main(int argc, char **argv)
{
	newreno = argc > 1 && strcmp(argv[1], "newreno") == 0;
	keep = argc > 1 && strcmp(argv[1], "held") == 0;
	if (argc < 2 || (!newreno && !keep && strcmp(argv[1], "reno") != 0))
		return usage();
	for (int i = 3; i < argc; i++)
		if (!choose(argv[i]))
			return usage();
	slow = chosen[SLOW];
	immediate = chosen[IMMEDIATE];
	srand48(argc > 2 ? atol(argv[2]) : 1);
	begin();
	while (todo.n && todo.heap[0].t < END) {
		struct event e = events_take(&todo);

		watch(e.t);
		now = e.t;
		act(&e);
	}
	printf("{\"tcp_packets\": %ld, \"tcp_drop0\": %.4f, \"tagged_packets\": %ld, "
	       "\"tagged_drop0\": %.4f",
	       all(PAQM_CBT_TCP), percent(PAQM_CBT_TCP), all(PAQM_CBT_TAGGED),
	       percent(PAQM_CBT_TAGGED));
	for (int n = 0; n < PERIODS; n++)
		print_period(n);
	printf("}\n");
	return 0;
}
