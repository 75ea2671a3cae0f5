// SPDX-License-Identifier: GPL-2.0
/* The process that reads the captures; see capturer.h. */
#include "feedback-daemon/capture/capturer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pcap/sll.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "feedback-daemon/capture/batch.h"

#define MS 1000000ULL
#define MESSAGES_PER_TURN 512
#define MEDIA_PER_TURN 8192 /* more than the ring holds */
#define MEDIA_AT_ONCE 64
#define BATCHES_PER_TURN 64 /* what their ring holds */
#define COUNTS_NS (500 * MS)

/* From this many media packets per window on, they are read by the clock; messages as well, as
 * waking up for each would cost several times as much as passing it on. Media is wanted only when a
 * message quotes it, and then it is read at once.
 */
#define WINDOW_NS (10 * MS)
#define MUCH_MEDIA 2
#define MUCH_MESSAGES 12
#define MEDIA_MS 20 /* their ring holds 400 of them a millisecond */
#define NAP_NS 600000L

struct batch {
	enum captured what;
	unsigned int n; /* packets */
	size_t len;	/* of them, in @at */
	uint8_t at[(MEDIA_AT_ONCE + MESSAGES_PER_TURN) * sizeof(struct capturer_record)];
};

struct reader {
	const struct capturer *c;
	struct batch media, batches, messages;
	struct capturer_record counts; /* told last */
	uint64_t counted_ns;
	bool uncounted; /* something has come since */
	uint64_t window_ns;
	unsigned int media_seen, messages_seen; /* within the window */
	bool much_media, much_messages;		/* in the one before */
	/* What poll() has not just found empty: to ask libpcap would be another poll(). */
	bool some_messages, some_media, some_batches;
	bool gone; /* the reader has gone */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void hand_on(struct reader *r, const void *what, size_t left)
{
	const uint8_t *at = what;
	ssize_t done;

	while (left && !r->gone) {
		done = write(r->c->out, at, left);
		if (done < 0 && errno == EINTR)
			continue;
		r->gone = done <= 0;
		if (r->gone)
			return;
		at += done;
		left -= (size_t)done;
	}
}

static uint64_t time_of(const struct pcap_pkthdr *h)
{
	return (uint64_t)h->ts.tv_sec * 1000000000ULL + (uint64_t)h->ts.tv_usec;
}

/* Room for a record of a packet that came by device @index; join() puts it to the others. */
static struct capturer_record *begin(struct batch *b, uint64_t t_ns, uint32_t index)
{
	struct capturer_record *rec = (struct capturer_record *)(b->at + b->len);

	rec->t_ns = t_ns;
	rec->index = index;
	rec->what = (uint16_t)b->what;
	return rec;
}

static void join(struct batch *b, struct capturer_record *rec, uint32_t len)
{
	rec->len = (uint16_t)len;
	b->n++;
	b->len += capturer_size(rec->len);
}

static void take(u_char *data, const struct pcap_pkthdr *h, const u_char *bytes)
{
	struct batch *b = (struct batch *)data;
	const struct sll2_header *link = (const struct sll2_header *)bytes;
	uint32_t len = h->caplen - SLL2_HDR_LEN;
	struct capturer_record *rec;

	if (h->caplen < SLL2_HDR_LEN || b->n == MESSAGES_PER_TURN)
		return; /* cannot happen: no more are asked for */
	rec = begin(b, time_of(h), ntohl(link->sll2_if_index));
	len = len < FILTER_SNAP ? len : FILTER_SNAP;
	memcpy(rec->ip, bytes + SLL2_HDR_LEN, len);
	join(b, rec, len);
}

/* A packet of segmentation offload that is taken apart. */
struct taken {
	struct batch *b;
	uint64_t t_ns;
	uint32_t index;
};

static void take_segment(void *data, const uint8_t *head, uint32_t head_len, const uint8_t *payload,
			 uint32_t len)
{
	struct taken *t = data;
	struct capturer_record *rec = begin(t->b, t->t_ns, t->index);

	join(t->b, rec, batch_packet(rec->ip, head, head_len, payload, len));
}

static void take_batch(u_char *data, const struct pcap_pkthdr *h, const u_char *bytes)
{
	const struct sll2_header *link = (const struct sll2_header *)bytes;
	struct taken t = {.b = (struct batch *)data, .t_ns = time_of(h)};

	if (h->caplen < SLL2_HDR_LEN || t.b->n)
		return; /* cannot happen: one is asked for */
	t.index = ntohl(link->sll2_if_index);
	batch_split(bytes + SLL2_HDR_LEN, h->caplen - SLL2_HDR_LEN, take_segment, &t);
}

/* Read up to @most packets into an empty batch. Return: false if the capture is over. */
static bool read_some(struct reader *r, pcap_t *p, pcap_handler how, struct batch *b, int most)
{
	struct capturer_record end;

	b->n = 0;
	b->len = 0;
	if (pcap_dispatch(p, most, how, (u_char *)b) >= 0)
		return true;
	end = (struct capturer_record){.what = CAPTURED_END, .len = sizeof(end.why)};
	strncpy(end.why, pcap_geterr(p), sizeof(end.why) - 1);
	hand_on(r, &end, capturer_size(end.len));
	r->gone = true;
	return false;
}

/* Return: how many packets, -1 if the capture is over. */
static int read_batches(struct reader *r)
{
	int n = 0;

	for (unsigned int i = 0; i < BATCHES_PER_TURN && !r->gone; i++) {
		if (!read_some(r, r->c->batches, take_batch, &r->batches, 1))
			return -1;
		if (!r->batches.n)
			break;
		hand_on(r, r->batches.at, r->batches.len);
		n += (int)r->batches.n;
	}
	return n;
}

/* The same; @n have been read in this turn. The messages go with the last of them. */
static int read_media(struct reader *r, int n)
{
	struct batch *b = &r->media;
	bool last;

	do {
		if (!read_some(r, r->c->media, take, b, MEDIA_AT_ONCE))
			return -1;
		n += (int)b->n;
		last = b->n < MEDIA_AT_ONCE || n >= MEDIA_PER_TURN;
		if (last) {
			memcpy(b->at + b->len, r->messages.at, r->messages.len);
			b->len += r->messages.len;
		}
		hand_on(r, b->at, b->len);
	} while (!last && !r->gone);
	return n;
}

/*
 * Messages are read first and passed on last: what they quote was captured before them, even if
 * poll() found no media yet.
 */
static bool turn(struct reader *r)
{
	int n = 0;

	r->messages.n = 0;
	r->messages.len = 0;
	if (r->some_messages &&
	    !read_some(r, r->c->messages, take, &r->messages, MESSAGES_PER_TURN))
		return false;
	if (r->some_batches || r->messages.n)
		n = read_batches(r);
	if (n >= 0 && (r->some_media || r->messages.n))
		n = read_media(r, n);
	if (n < 0)
		return false;
	r->media_seen += (unsigned int)n;
	r->messages_seen += r->messages.n;
	r->uncounted |= n || r->messages.n;
	/* the next turn may come without poll() */
	r->some_messages = r->some_media = r->some_batches = true;
	return !r->gone;
}

/* Report the kernel's counters if they have changed. */
static void tell_counts(struct reader *r, uint64_t now)
{
	struct capturer_record rec = {.what = CAPTURED_COUNTS, .len = sizeof(rec.count)};
	pcap_t *const of[] = {r->c->media, r->c->messages, r->c->batches};
	uint32_t received[2] = {0}, dropped[2] = {0};
	struct pcap_stat st;
	unsigned int i;

	if (!r->uncounted || now < r->counted_ns + COUNTS_NS)
		return;
	r->uncounted = false;
	r->counted_ns = now;
	for (i = 0; i < 3; i++) {
		if (pcap_stats(of[i], &st))
			return;
		received[i % 2] += st.ps_recv; /* batches are media */
		dropped[i % 2] += st.ps_drop;
	}
	for (i = 0; i < 2; i++) {
		/* they have 32 bits, and begin anew */
		rec.count[i].received =
			r->counts.count[i].received +
			(uint32_t)(received[i] - (uint32_t)r->counts.count[i].received);
		rec.count[i].dropped =
			r->counts.count[i].dropped +
			(uint32_t)(dropped[i] - (uint32_t)r->counts.count[i].dropped);
	}
	if (!memcmp(&rec, &r->counts, sizeof(rec)))
		return;
	r->counts = rec;
	hand_on(r, &rec, capturer_size(rec.len));
}

/* Return: false if the reader has gone. */
static bool wait_for_work(struct reader *r)
{
	struct pollfd p[] = {
		{.fd = r->c->out},
		{.fd = pcap_get_selectable_fd(r->c->messages), .events = POLLIN},
		{.fd = pcap_get_selectable_fd(r->c->media), .events = POLLIN},
		{.fd = pcap_get_selectable_fd(r->c->batches), .events = POLLIN},
	};
	int timeout = r->much_media ? MEDIA_MS : r->uncounted ? (int)(COUNTS_NS / MS) : -1;
	socklen_t len = sizeof(int);
	int i, err;

	if (poll(p, r->much_media ? 2 : 4, timeout) < 0)
		return true;
	r->some_messages = p[1].revents;
	r->some_media = r->much_media || p[2].revents;
	r->some_batches = r->much_media || p[3].revents;
	/* An error would wake us for ever; asking for it clears it. */
	for (i = 1; i < 4; i++)
		if (p[i].revents & POLLERR)
			getsockopt(p[i].fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return !p[0].revents;
}

void capturer_run(const struct capturer *c)
{
	static struct reader r;
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t now;

	r.c = c;
	r.media.what = CAPTURED_MEDIA;
	r.batches.what = CAPTURED_MEDIA;
	r.messages.what = CAPTURED_MESSAGE;
	r.counts.what = CAPTURED_COUNTS;
	r.counts.len = sizeof(r.counts.count);
	while ((r.much_messages || wait_for_work(&r)) && turn(&r)) {
		now = now_ns();
		tell_counts(&r, now);
		if (now >= r.window_ns + WINDOW_NS) {
			r.much_media = r.media_seen >= MUCH_MEDIA;
			r.much_messages = r.messages_seen >= MUCH_MESSAGES;
			r.media_seen = 0;
			r.messages_seen = 0;
			r.window_ns = now;
		}
		if (r.much_messages && r.messages.n < MESSAGES_PER_TURN)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
}
