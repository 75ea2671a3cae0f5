// SPDX-License-Identifier: GPL-2.0
/*
 * Layered rate control by packet trains (S.-S. Wang and H.-F. Hsiao, "TCP-friendly congestion
 * control for the fair streaming of scalable video", Computer Communications 2010), and the binary
 * search that its start phase is compared with there.
 *
 * The rate is one of equal steps, the layers. Start phase: trains from the highest rate downwards,
 * each at the rate at which the one before arrived, until delay rises no more. Then trains at the
 * rate of the next layer: no rising delay, one layer more; else the next train comes later. Loss
 * above a threshold that falls with the layer: down to what a loss rate of p leaves, 1 - sqrt(p).
 *
 * Beside the paper's abstract only excerpts of it were at hand. From them: equations (11) to (15),
 * M, alpha, T_MAX and the thresholds. Reconstructed: the first rate, when the start ends (EPSILON,
 * TRAINS_MOST), what lost trains mean, the window of loss, the tolerance of "RTT near its least",
 * rounding down to a layer, equation (12) as seconds. Added: the silence rule, as the paper has
 * none.
 */
#include <math.h>

#include "streamer/control/control.h"
#include "streamer/rtp/probe.h"

#define EPSILON 0.05	     /* of the first rate: a train that loses less ends the start phase */
#define TRAINS_MOST 8	     /* of the start phase */
#define PARTS 16	     /* of the first rate, to which the binary search goes: four trains */
#define CAME_LEAST (2.0 / 3) /* of a train, or it counts as one with rising delay */
#define LOST_MOST 1	     /* packets of a train that may still bring a layer, */
#define LOST_ABORTS 0.1	     /* and the part of it that ends it */
#define WINDOW 1.0	     /* s, at least, in which losses are counted, */
#define WINDOW_RTTS 2
#define WINDOW_PACKETS 100   /* and packets of it */
#define RTT_NEAR 0.1	     /* of the least round trip, at least, */
#define RTT_NEAR_LEAST 0.005 /* s */
#define SRTT_GAIN 0.1
#define FLOOR 0.1   /* s between trains, beside two round trips and the train itself */
#define ANSWER 1.0  /* s, at least, or four round trips, that an answer may take */
#define SILENCE 1.0 /* s, at least, */
#define SILENCE_REPORTS 3
#define SILENCE_RTTS 4
#define SILENCE_ANEW 10.0 /* s after which nothing of the path is known any more */

enum { LAYERS, TRAIN, ALPHA, FS, LONGEST, TCP_TIME };
static const struct ctl_option options[] = {
	[LAYERS] = {"layers", "equal steps up to the highest rate", 2, 32, 20},
	[TRAIN] = {"train", "packets of a train", 10, PROBE_TRAIN - 4, 30},
	[ALPHA] = {"alpha", "of a layer's share in its rate is the loss that it bears", 0.01, 1,
		   0.3},
	[FS] = {"fs",
		"share of pairs with rising delay that is too much; 0: 0.63, above 2 Mbit/s "
		"0.7",
		0, 1, 0},
	[LONGEST] = {"longest", "s between two probes at the most", 1, 600, 10},
	[TCP_TIME] = {"tcp-time", "1: a layer takes the time that TCP needs for it", 0, 1, 0},
	{0},
};

enum phase { START, NORMAL };

struct layered {
	bool binary;
	enum phase phase;
	int n, low, i; /* layers: all, the lowest in use, in use */
	double step, packet;
	int train; /* packets of one */
	double alpha, fs, longest;
	bool tcp_time;

	/* the train under way */
	bool waiting, again; /* for its report; it is sent a second time */
	uint8_t id;
	double rate, asked, ended; /* of it; when it was asked for, and reported */
	double due;		   /* the next train, or what is done instead of its report */
	double reported_fs;
	int lost_of_it;

	/* start phase */
	double first, lo, hi, estimate;
	int trains;
	/* transmission phase */
	double wait; /* s */
	uint64_t probes, gained, dropped;
	bool rose; /* the round trip has, since the last train */

	double rtt_min, srtt;
	struct {
		double begin, expected, lost;
	} half[2]; /* of the window, the present one first */
	double p;
	double since;		   /* the rate was lowered: what was sent before says nothing */
	bool skip;		   /* the next receiver report is about that */
	double bytes;		   /* sent since a receiver report */
	int trained, trained_lost; /* packets of trains in there */

	double silent, heard; /* when the rule acts next; when a report came last */
	double spacing;
	double loud; /* rate before the silence */
	bool idle, dark;
};

static double ly_rate(const struct layered *s, int i)
{
	return i * s->step;
}

/* The highest layer that fits. */
static int ly_fit(const struct layered *s, double rate)
{
	return (int)ctl_clamp(floor(rate / s->step + 1e-9), s->low, s->n);
}

static double ly_train_time(const struct layered *s, double rate)
{
	return s->train * 8 * s->packet / rate;
}

/* Equation (12): the step in packets/s times the round trip; or what TCP needs for that step. */
static double ly_wait(const struct layered *s)
{
	double rtt = isfinite(s->rtt_min) ? s->rtt_min : s->longest;

	return fmin(s->longest, s->step / (8 * s->packet) * rtt * (s->tcp_time ? rtt : 1));
}

/* Equation (13), after a probe that failed. */
static double ly_longer(const struct layered *s, double wait)
{
	return fmin(s->longest, wait * (1 + ly_rate(s, s->i) / ly_rate(s, s->n)));
}

/* Equation (14): loss that a layer bears. */
static double ly_bears(const struct layered *s, int i)
{
	return s->alpha * s->step / ly_rate(s, i);
}

/* The layer after a share of @p lost, if that is more than it bears. */
static int ly_drop(const struct layered *s, int i, double p)
{
	int j;

	if (p <= ly_bears(s, i))
		return i;
	j = ly_fit(s, ly_rate(s, i) * (1 - sqrt(p)));
	return j < i || i == s->low ? j : i - 1;
}

static double ly_floor(const struct layered *s)
{
	return ly_train_time(s, ly_rate(s, s->i < s->n ? s->i + 1 : s->n)) + 2 * s->srtt + FLOOR;
}

static void ly_forget_losses(struct layered *s, double now)
{
	s->half[0].begin = s->half[1].begin = now;
	s->half[0].expected = s->half[0].lost = s->half[1].expected = s->half[1].lost = 0;
	s->p = 0;
}

static void ly_send(struct layered *s, double now, double rate)
{
	s->id++;
	s->waiting = true;
	s->rate = rate;
	s->asked = now;
	s->ended = INFINITY;
	s->lost_of_it = 0;
	s->due = now + ly_train_time(s, rate) + fmax(ANSWER, SILENCE_RTTS * s->srtt);
}

static void ly_normal(struct layered *s, double now)
{
	s->phase = NORMAL;
	s->waiting = s->again = false;
	s->due = now + fmax(s->wait, ly_floor(s));
}

/* From @rate downwards, or a search between it and nothing. */
static void ly_begin(struct layered *s, double now, double rate)
{
	s->phase = START;
	s->trains = 0;
	s->again = false;
	s->first = s->hi = rate;
	s->lo = 0;
	ly_send(s, now, s->binary ? rate / 2 : rate);
}

static void ly_start_over(struct layered *s, double now, double estimate)
{
	s->estimate = estimate;
	s->i = ly_fit(s, estimate);
	s->wait = ly_wait(s);
	ly_forget_losses(s, now);
	ly_normal(s, now);
}

static void ly_probe(struct layered *s, double now)
{
	s->probes++;
	s->rose = false;
	ly_send(s, now, ly_rate(s, s->i + 1));
}

/* The next train of the start phase, when the queue of this one has drained. */
static void ly_next(struct layered *s, double now, double rate, double arrived)
{
	double drain = s->train * 8 * s->packet * (1 / arrived - 1 / s->rate);

	s->waiting = s->again = false;
	s->rate = rate;
	s->due = now + s->srtt + fmax(0, drain);
}

static void ly_topdown(struct layered *s, double now, bool rising, double arrived)
{
	double epsilon = fmax(EPSILON * s->first, s->step);

	if (!rising)
		ly_start_over(s, now, s->rate);
	else if (s->rate - arrived <= epsilon || s->trains >= TRAINS_MOST ||
		 arrived <= ly_rate(s, s->low))
		ly_start_over(s, now, arrived);
	else
		ly_next(s, now, arrived, arrived);
}

static void ly_search(struct layered *s, double now, bool rising, double arrived)
{
	if (rising)
		s->hi = s->rate;
	else
		s->lo = s->rate;
	if (s->hi - s->lo <= s->first / PARTS + 1e-6 || s->trains >= TRAINS_MOST)
		ly_start_over(s, now, (s->lo + s->hi) / 2);
	else
		ly_next(s, now, (s->lo + s->hi) / 2, fmax(arrived, s->rate / TRAINS_MOST));
}

static void ly_started(struct layered *s, double now, bool rising, double arrived)
{
	s->trains++;
	arrived = ctl_clamp(arrived, 1, s->rate);
	if (s->binary)
		ly_search(s, now, rising, arrived);
	else
		ly_topdown(s, now, rising, arrived);
}

static void ly_probed(struct layered *s, double now, bool won)
{
	if (won && s->i < s->n) {
		s->i++;
		s->gained++;
		s->wait = ly_wait(s);
		ly_forget_losses(s, now);
	} else {
		s->wait = ly_longer(s, s->wait);
	}
	ly_normal(s, now);
}

static void ly_init(void *state, const struct ctl_params *p, double now, bool binary)
{
	struct layered *s = state;
	int n = (int)p->option[LAYERS];

	*s = (struct layered){
		.binary = binary,
		.n = n,
		.step = p->rate_max / n,
		.packet = p->packet,
		.train = (int)p->option[TRAIN],
		.alpha = p->option[ALPHA],
		.fs = p->option[FS],
		.longest = p->option[LONGEST],
		.tcp_time = p->option[TCP_TIME] >= 0.5,
		.rtt_min = INFINITY,
		.silent = INFINITY,
		.since = -INFINITY,
		.idle = true,
	};
	s->low = (int)ctl_clamp(ceil(p->rate_min / s->step - 1e-9), 1, n);
	s->i = s->low;
	ly_forget_losses(s, now);
	ly_begin(s, now, ly_rate(s, n));
}

static void layered_init(void *state, const struct ctl_params *p, double now)
{
	ly_init(state, p, now, false);
}

static void binary_init(void *state, const struct ctl_params *p, double now)
{
	ly_init(state, p, now, true);
}

/* A report of any kind. */
static void ly_heard(struct layered *s, double now, double rtt)
{
	if (isfinite(rtt)) {
		rtt = fmax(rtt, 1e-4);
		s->srtt = s->srtt > 0 ? s->srtt + SRTT_GAIN * (rtt - s->srtt) : rtt;
		s->rtt_min = fmin(s->rtt_min, rtt);
	}
	if (s->dark && s->phase == NORMAL) {
		s->wait = ly_wait(s);
		if (now - s->heard > SILENCE_ANEW)
			ly_begin(s, now, fmin(ly_rate(s, s->n), 2 * s->loud));
		else
			ly_normal(s, now);
	}
	s->dark = false;
	s->heard = now;
	s->idle = true;
	s->silent = now + fmax(SILENCE, fmax(SILENCE_RTTS * s->srtt, SILENCE_REPORTS * s->spacing));
}

static void ly_trained(struct layered *s, double now, const struct probe_result *t)
{
	bool lossy = t->came < CAME_LEAST * t->of, rising;

	if (!s->waiting || t->train != s->id)
		return; /* of an older train */
	ly_heard(s, now, t->rtt);
	if (!s->waiting || t->train != s->id)
		return;
	s->ended = now;
	s->reported_fs = t->fs;
	s->trained += (int)t->of;
	s->trained_lost += (int)(t->of - t->came);
	rising = lossy || t->fs > (s->fs > 0 ? s->fs : probe_threshold(s->rate));
	if (s->phase == NORMAL)
		ly_probed(s, now,
			  !rising && t->verdict != PROBE_INVALID && t->of - t->came <= LOST_MOST);
	else if (t->verdict == PROBE_INVALID && !lossy && !s->again) {
		s->again = true;
		ly_send(s, now, s->rate);
	} else
		ly_started(s, now, rising, t->rate);
}

static bool ly_message(void *state, const struct ctl_params *p, double now,
		       const struct ctl_message *m)
{
	struct probe_result t;

	(void)p;
	if (m->name != PROBE_NAME || m->subtype != PROBE_SUBTYPE ||
	    !probe_heard(m->data, m->len, (uint64_t)(now * 1e6), &t))
		return false;
	ly_trained(state, now, &t);
	return true;
}

/* Of packets sent outside of trains, and since the rate was lowered. */
static void ly_count(struct layered *s, double now, double expected, double lost)
{
	double half = fmax(WINDOW, WINDOW_RTTS * s->srtt) / 2, all;
	int j;

	s->half[0].expected += expected;
	s->half[0].lost += lost;
	all = s->half[0].expected + s->half[1].expected;
	if (all < WINDOW_PACKETS)
		return;
	s->p = (s->half[0].lost + s->half[1].lost) / all;
	j = ly_drop(s, s->i, s->p);
	if (j < s->i && s->phase == NORMAL && !s->waiting) {
		s->i = j;
		s->dropped++;
		s->since = now;
		s->skip = true;
		s->wait = ly_wait(s);
		ly_forget_losses(s, now);
		ly_normal(s, now);
	} else if (now - s->half[0].begin >= half) {
		s->half[1] = s->half[0];
		s->half[0].begin = now;
		s->half[0].expected = s->half[0].lost = 0;
	}
}

static bool ly_counts(const struct layered *s, double sent)
{
	return sent > s->since && !(sent >= s->asked && sent <= s->ended);
}

/* The fate of each packet is known. */
static void ly_count_packets(struct layered *s, const struct fb_report *r)
{
	double came = 0, lost = 0;

	for (size_t i = 0; i < r->n; i++)
		came += ly_counts(s, r->pkts[i].sent);
	for (size_t i = 0; i < r->lost; i++) {
		lost += ly_counts(s, r->losses[i].sent);
		s->lost_of_it += s->waiting && r->losses[i].sent >= s->asked;
	}
	if (came + lost > 0)
		ly_count(s, r->now, came + lost, lost);
}

/* A share is, of what was sent meanwhile; trains are taken off by what was reported of them. */
static void ly_count_share(struct layered *s, const struct fb_report *r)
{
	double expected = s->bytes / s->packet, lost = r->fraction * expected;

	expected = fmax(0, expected - s->trained);
	lost = ctl_clamp(lost - s->trained_lost, 0, expected);
	s->bytes = 0;
	s->trained = s->trained_lost = 0;
	if (s->skip && r->now - s->since < s->srtt + r->interval) {
		s->skip = false;
		return;
	}
	ly_count(s, r->now, expected, lost);
}

/* The queue is gone: equation (15). */
static void ly_drained(struct layered *s, double now)
{
	double near = fmax(RTT_NEAR * s->rtt_min, RTT_NEAR_LEAST);

	if (!(s->srtt > 0) || !isfinite(s->rtt_min))
		return;
	s->rose |= s->srtt > s->rtt_min + 2 * near;
	if (s->rose && s->srtt <= s->rtt_min + near && s->phase == NORMAL && !s->waiting &&
	    s->i < s->n && s->p <= ly_bears(s, s->i) && now - s->asked >= ly_floor(s))
		ly_probe(s, now);
}

static void ly_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct layered *s = state;

	(void)p;
	s->spacing = r->fb->spacing > 0 ? r->fb->spacing : r->interval;
	ly_heard(s, r->now, r->rtt);
	if (r->expected)
		ly_count_packets(s, r);
	else
		ly_count_share(s, r);
	if (s->waiting && s->phase == NORMAL && s->lost_of_it > LOST_ABORTS * s->train) {
		s->ended = r->now;
		ly_probed(s, r->now, false);
	}
	ly_drained(s, r->now);
}

static void ly_sent(void *state, double now, size_t bytes)
{
	struct layered *s = state;

	if (s->idle && isfinite(s->silent))
		s->silent = fmax(s->silent, now + SILENCE);
	s->idle = false;
	s->bytes += (double)bytes;
}

static bool ly_silence(const struct layered *s)
{
	return !s->idle && isfinite(s->silent);
}

static double ly_next_time(const void *state)
{
	const struct layered *s = state;
	bool train = s->waiting || s->phase == START || s->i < s->n;

	return fmin(train ? s->due : INFINITY, ly_silence(s) ? s->silent : INFINITY);
}

/* No report about a train. */
static void ly_unanswered(struct layered *s, double now)
{
	s->ended = now;
	if (s->phase == NORMAL) {
		ly_probed(s, now, false);
	} else if (!s->again) {
		s->again = true;
		ly_send(s, now, s->rate);
	} else {
		ly_started(s, now, true, s->rate / 2);
	}
}

static void ly_timeout(void *state, const struct ctl_params *p, double now)
{
	struct layered *s = state;

	(void)p;
	if (ly_silence(s) && now >= s->silent) {
		if (!s->dark)
			s->loud = ly_rate(s, s->i);
		s->dark = true;
		s->i = ly_fit(s, ly_rate(s, s->i) / 2);
		s->silent = now + fmax(SILENCE,
				       fmax(SILENCE_RTTS * s->srtt, SILENCE_REPORTS * s->spacing));
		if (s->phase == NORMAL) { /* no trains until somebody answers */
			s->waiting = false;
			s->due = INFINITY;
		}
		s->since = now;
		ly_forget_losses(s, now);
	}
	if (now < s->due)
		return;
	if (s->waiting)
		ly_unanswered(s, now);
	else if (s->phase == START)
		ly_send(s, now, s->rate);
	else if (s->i < s->n)
		ly_probe(s, now);
	else
		s->due = INFINITY;
}

static bool ly_train(const void *state, struct ctl_train *t)
{
	const struct layered *s = state;

	*t = (struct ctl_train){.id = s->id,
				.packets = (uint8_t)s->train,
				.start = s->phase == START,
				.rate = s->rate};
	return s->waiting;
}

static double ly_now(const void *state, const struct ctl_params *p)
{
	const struct layered *s = state;

	(void)p;
	return ly_rate(s, s->i);
}

static void ly_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct layered *s = state;

	log(name, "layer", s->i, data);
	log(name, "trains", s->trains, data);
	log(name, "estimate", s->estimate, data);
	log(name, "wait", s->wait, data);
	log(name, "fs", s->reported_fs, data);
	log(name, "p", s->p, data);
	log(name, "probes", (double)s->probes, data);
	log(name, "gained", (double)s->gained, data);
	log(name, "dropped", (double)s->dropped, data);
}

const struct ctl_kind ctl_layered = {
	.name = "layered-probing",
	.summary = "Wang and Hsiao: layers that trains of packets and losses decide on",
	.options = options,
	.size = sizeof(struct layered),
	.init = layered_init,
	.report = ly_report,
	.sent = ly_sent,
	.train = ly_train,
	.message = ly_message,
	.next = ly_next_time,
	.timeout = ly_timeout,
	.rate = ly_now,
	.state = ly_state,
};

const struct ctl_kind ctl_binary = {
	.name = "binary",
	.summary = "the same, begun by a binary search",
	.options = options,
	.size = sizeof(struct layered),
	.init = binary_init,
	.report = ly_report,
	.sent = ly_sent,
	.train = ly_train,
	.message = ly_message,
	.next = ly_next_time,
	.timeout = ly_timeout,
	.rate = ly_now,
	.state = ly_state,
};
