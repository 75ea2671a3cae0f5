// SPDX-License-Identifier: GPL-2.0
/* Replay of a capture file; see offline.h. */
#include "feedback-daemon/capture/offline.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>

#include "feedback-daemon/capture/batch.h"

#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86DD
#define TYPE_VLAN 0x8100
#define TYPE_QINQ 0x88A8

#define SENT_BY_US 4 /* packet type of cooked captures */

#define HEAD 65600 /* bytes of a packet that are looked at: a batch and its link header */
#define CEIL_MOST 1000000000000ULL

struct packet {
	uint64_t t_ns;
	const uint8_t *ip; /* NULL: no IP */
	uint32_t len;
	bool in, out; /* may have come in, may have gone out */
};

struct replay {
	const struct engine *e;
	FILE *out;
	uint64_t now_ns;
};

static bool is_known(int link)
{
	switch (link) {
	case DLT_EN10MB:
	case DLT_RAW:
	case DLT_LINUX_SLL:
	case DLT_IPV4:
	case DLT_IPV6:
	case DLT_LINUX_SLL2:
		return true;
	}
	return false;
}

/* Clocks step, and files lie; the engine's time does neither. The 32 bits of a second in the
 * classic format have no sign, libpcap takes them for such as have.
 */
static uint64_t time_of(const struct pcap_pkthdr *h, uint64_t last_ns)
{
	uint64_t s = h->ts.tv_sec < 0 ? (uint32_t)h->ts.tv_sec
				      : paqm_min64((uint64_t)h->ts.tv_sec, UINT32_MAX);

	return paqm_max64(last_ns, s * 1000000000ULL + (uint64_t)h->ts.tv_usec % 1000000000ULL);
}

/* Find the IP packet behind the link header. */
static void link_header(int link, const uint8_t *head, struct packet *p)
{
	uint32_t hlen = 0, type = 0;

	p->in = true;
	p->out = true;
	switch (link) {
	case DLT_EN10MB:
		for (hlen = 14; p->len >= hlen; hlen += 4) {
			type = paqm_get16(head + hlen - 2);
			if (type != TYPE_VLAN && type != TYPE_QINQ)
				break;
		}
		break;
	case DLT_LINUX_SLL:
		hlen = 16;
		if (p->len >= hlen) {
			type = paqm_get16(head + 14);
			p->out = paqm_get16(head) == SENT_BY_US;
		}
		break;
	case DLT_LINUX_SLL2:
		hlen = 20;
		if (p->len >= hlen) {
			type = paqm_get16(head);
			p->out = head[10] == SENT_BY_US;
		}
		break;
	default:
		type = p->len && *head >> 4 == 6 ? TYPE_IPV6 : TYPE_IPV4;
	}
	if (link == DLT_LINUX_SLL || link == DLT_LINUX_SLL2)
		p->in = !p->out;
	p->ip = NULL;
	if (p->len <= hlen || (type != TYPE_IPV4 && type != TYPE_IPV6))
		return;
	p->ip = head + hlen;
	p->len -= hlen;
}

/* The protocol behind the IP header, -1 if it cannot be told. */
static int protocol(const struct packet *p)
{
	if (p->len < 20)
		return -1;
	return p->ip[0] >> 4 == 6 ? p->ip[6] : p->ip[9];
}

/* Is it a message, as the kernel filter of a live capture sees it? */
static bool is_message(const struct packet *p)
{
	uint32_t hlen = p->ip[0] >> 4 == 6 ? PAQM_IP6_HDR : (p->ip[0] & 15U) * 4;

	if (p->len <= hlen)
		return false;
	if (p->ip[0] >> 4 == 6)
		return protocol(p) == 58 &&
		       (p->ip[hlen] == PAQM_ICMP6_TYPE_EXP || p->ip[hlen] == PAQM_ICMP6_TYPE_OLD);
	return protocol(p) == 1 && paqm_icmp_carries(p->ip[hlen]);
}

static void put(FILE *out, json_t *o)
{
	json_dumpf(o, out, JSON_COMPACT);
	fputc('\n', out);
	json_decref(o);
}

static void expired(void *data, struct flow *f)
{
	const struct replay *r = data;

	put(r->out, request_event_flow(r->e, "expired", f, r->now_ns));
}

/* Messages that have waited till @until_ns for the packets that they quote. */
static void judge_waited(struct engine *e, uint64_t until_ns, uint64_t now_ns, FILE *out)
{
	struct verdict v;
	struct early m;

	while (engine_waited(e, until_ns, &m)) {
		uint64_t at_ns = m.due_ns ? m.due_ns : now_ns;

		engine_again(e, &m, at_ns, &v);
		put(out, request_event_verdict(e, &v, at_ns));
	}
}

/* A packet of a batch that has been taken apart. */
struct segment {
	struct engine *e;
	uint64_t t_ns;
};

static void sent_segment(void *data, const uint8_t *head, uint32_t head_len, const uint8_t *payload,
			 uint32_t len)
{
	const struct segment *s = data;
	uint8_t ip[PAQM_QUOTE_MAX];

	engine_media(s->e, ip, batch_packet(ip, head, head_len, payload, len), s->t_ns);
}

/* A file shows batches of segmentation offload as a live capture does. */
static void sent(struct engine *e, const struct packet *p)
{
	struct segment s = {.e = e, .t_ns = p->t_ns};

	if (p->len > BATCH_LEAST)
		batch_split(p->ip, p->len, sent_segment, &s);
	else
		engine_media(e, p->ip, p->len, p->t_ns);
}

static void judge(struct engine *e, const struct packet *p, FILE *out, struct offline_count *c)
{
	struct replay r = {.e = e, .out = out, .now_ns = p->t_ns};
	struct verdict v;

	engine_expire_all(e, p->t_ns, expired, &r);
	judge_waited(e, p->t_ns, p->t_ns, out);
	if (p->ip && p->in && is_message(p)) {
		c->messages++;
		engine_message(e, p->ip, p->len, p->t_ns, &v);
		if (!v.waits)
			put(out, request_event_verdict(e, &v, p->t_ns));
	} else if (p->ip && p->out && protocol(p) == 17) {
		sent(e, p);
	} else {
		c->foreign++;
	}
}

int offline_run(FILE *in, struct engine *e, FILE *out, struct offline_count *c, char *error,
		size_t size)
{
	char why[PCAP_ERRBUF_SIZE];
	pcap_t *file =
		pcap_fopen_offline_with_tstamp_precision(in, PCAP_TSTAMP_PRECISION_NANO, why);
	struct pcap_pkthdr *h;
	const uint8_t *head;
	struct packet p = {0};
	int more = PCAP_ERROR_BREAK;

	*c = (struct offline_count){0};
	if (!file) {
		snprintf(error, size, "%s", why);
		fclose(in);
		return -1;
	}
	if (!is_known(pcap_datalink(file))) {
		snprintf(error, size,
			 "link type %d is not supported; capture with "
			 "'tcpdump -i any'",
			 pcap_datalink(file));
		pcap_close(file);
		return -1;
	}
	while (!ferror(out) && (more = pcap_next_ex(file, &h, &head)) > 0) {
		c->packets++;
		p.t_ns = time_of(h, p.t_ns);
		p.len = h->caplen < HEAD ? h->caplen : HEAD;
		link_header(pcap_datalink(file), head, &p);
		judge(e, &p, out, c);
	}
	judge_waited(e, UINT64_MAX, p.t_ns, out);
	if (ferror(out))
		snprintf(error, size, "cannot write: %s", strerror(errno));
	else if (more == PCAP_ERROR)
		snprintf(error, size, "packet %llu: %s", (unsigned long long)c->packets + 1,
			 pcap_geterr(file));
	pcap_close(file);
	return ferror(out) || more == PCAP_ERROR ? -1 : 0;
}

void offline_summary(const struct engine *e, const struct offline_count *c, FILE *out)
{
	json_t *o =
		json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "event", "end", "packets",
			  (json_int_t)c->packets, "messages", (json_int_t)c->messages, "media",
			  (json_int_t)e->media, "media_ignored", (json_int_t)e->media_ignored,
			  "foreign", (json_int_t)c->foreign, "accepted", (json_int_t)e->accepted);

	json_object_set_new(o, "refused", request_refused(e));
	put(out, o);
}

/* ---------------------------------------------------------------- flows */

static bool whole_number(const char *word, int base, uint64_t most, uint64_t *value)
{
	char *end;

	if (!*word || word[strspn(word, base == 16 ? "0123456789abcdefABCDEF" : "0123456789")])
		return false;
	errno = 0;
	*value = strtoull(word, &end, base);
	return !errno && *value <= most;
}

/* ADDRESS:PORT; @any: the address may be *. */
static bool end_point(char *word, bool any, uint8_t addr[16], uint16_t *port)
{
	char *colon = strrchr(word, ':'), *host = word;
	struct addr a = {0};
	uint64_t number;

	if (!colon || !whole_number(colon + 1, 10, 0xFFFF, &number) || !number)
		return false;
	*colon = 0;
	*port = (uint16_t)number;
	if (*host == '[' && colon[-1] == ']') {
		colon[-1] = 0;
		if (inet_pton(AF_INET6, host + 1, a.b) != 1)
			return false;
	} else if (!any || strcmp(host, "*")) {
		uint8_t v4[4];

		if (inet_pton(AF_INET, host, v4) != 1)
			return false;
		a = addr_v4(v4);
	}
	memcpy(addr, a.b, sizeof(a.b));
	return true;
}

static const char *flow_option(const char *name, const char *value, struct paqm_ipc_register *reg)
{
	uint64_t number;

	if (!strcmp(name, "ssrc")) {
		if (!whole_number(value, 16, UINT32_MAX, &number))
			return "ssrc must be up to 8 hexadecimal digits";
		reg->ssrc = (uint32_t)number;
	} else if (!strcmp(name, "floor")) {
		if (!whole_number(value, 10, CEIL_MOST, &reg->floor_bps))
			return "floor must be a number of bit/s";
	} else if (!strcmp(name, "ceil")) {
		if (!whole_number(value, 10, CEIL_MOST, &reg->ceil_bps))
			return "ceil must be a number of bit/s";
	} else {
		return "after the addresses only ssrc HEX, floor BIT/S and ceil BIT/S may follow";
	}
	return NULL;
}

const char *offline_flow(const char *text, struct paqm_ipc_register *reg)
{
	char copy[OFFLINE_FLOW_MAX], *rest = NULL, *word, *value;
	const char *error = NULL;

	*reg = (struct paqm_ipc_register){
		.hdr = {PAQM_IPC_MAGIC, PAQM_IPC_VERSION, PAQM_IPC_REGISTER, sizeof(*reg)},
		.ceil_bps = CEIL_MOST,
	};
	if (strlen(text) >= sizeof(copy))
		return "longer than 255 characters";
	strcpy(copy, text);
	word = strtok_r(copy, " \t", &rest);
	if (!word || !end_point(word, true, reg->saddr, &reg->sport))
		return "source must be ADDRESS:PORT, [IPV6-ADDRESS]:PORT or *:PORT";
	word = strtok_r(NULL, " \t", &rest);
	if (!word || !end_point(word, false, reg->daddr, &reg->dport))
		return "destination must be ADDRESS:PORT or [IPV6-ADDRESS]:PORT";
	while (!error && (word = strtok_r(NULL, " \t", &rest))) {
		value = strtok_r(NULL, " \t", &rest);
		error = flow_option(word, value ? value : "", reg);
	}
	return error;
}

int offline_add(struct engine *e, const char *text, char *error, size_t size)
{
	struct paqm_ipc_register reg;
	const char *why = offline_flow(text, &reg);
	struct flow *f;
	int err;

	reg.cookie = e->serial + 1;
	err = why ? 0 : engine_register(e, 1, 0, &reg, &f);
	if (why)
		snprintf(error, size, "%s", why);
	else if (err == EEXIST)
		snprintf(error, size, "an earlier flow has the same packets");
	else if (err)
		snprintf(error, size, "impossible flow: %s", strerror(err));
	return why || err ? -1 : 0;
}

int offline_flows(FILE *in, struct engine *e, char *error, size_t size)
{
	char line[OFFLINE_FLOW_MAX + 2], why[160];
	unsigned int number;
	size_t len;

	for (number = 1; fgets(line, sizeof(line), in); number++) {
		len = strcspn(line, "#\r\n");
		if (len == sizeof(line) - 1) {
			snprintf(error, size, "line %u: longer than %d characters", number,
				 OFFLINE_FLOW_MAX);
			return -1;
		}
		while (!strchr(line, '\n') && len < sizeof(line) - 1 && !feof(in)) {
			int c = fgetc(in); /* the rest of a comment */

			if (c == EOF || c == '\n')
				break;
		}
		line[len] = 0;
		if (line[strspn(line, " \t")] && offline_add(e, line, why, sizeof(why))) {
			snprintf(error, size, "line %u: %s", number, why);
			return -1;
		}
	}
	if (ferror(in))
		snprintf(error, size, "%s", strerror(errno));
	return ferror(in) ? -1 : 0;
}
