// SPDX-License-Identifier: GPL-2.0
/* Packets that leave: batches of segmentation offload, and whose they are. See unit.h. */
#include <stdlib.h>

#include "feedback-daemon/capture/batch.h"
#include "feedback-daemon/host/owner.h"
#include "feedback-daemon/tests/shown.h"
#include "unit.h"

struct parts {
	unsigned int n;
	uint32_t len[BATCH_SEGMENTS];
	uint8_t ip[BATCH_SEGMENTS][T_MEDIA + 200];
};

static void part(void *data, const uint8_t *head, uint32_t head_len, const uint8_t *payload,
		 uint32_t len)
{
	struct parts *p = data;

	CHECK(p->n < BATCH_SEGMENTS);
	if (head_len + len > sizeof(p->ip[0])) /* one that is no batch */
		len = (uint32_t)sizeof(p->ip[0]) - head_len;
	memcpy(p->ip[p->n], head, head_len);
	memcpy(p->ip[p->n] + head_len, payload, len);
	p->len[p->n++] = head_len + len;
}

/* What segmentation offload makes of a batch is what the flow has sent. */
TEST(test_batch)
{
	static struct parts p;
	static uint8_t ip[65536];
	uint32_t segments, last, seq, size = T_PAYLOAD, total;
	struct flow *f;

	for (segments = 1; segments <= 130; segments += segments < 4 ? 1 : 42) {
		for (last = 14; last <= size; last += 13) {
			setup(NULL);
			f = add(1, T_SPORT, T_SSRC);
			for (seq = 0; seq < segments; seq++) {
				t_media(media, T_SPORT, T_SSRC, (uint16_t)(65500 + seq));
				if (!seq)
					memcpy(ip, media, 28);
				memcpy(ip + 28 + seq * size, media + 28, size);
			}
			total = 28 + (segments - 1) * size + last;
			paqm_put16(ip + 2, (uint16_t)total);
			paqm_put16(ip + 24, (uint16_t)(total - 20));
			p.n = 0;
			batch_split(ip, total, part, &p);
			if (segments == 1 || segments > BATCH_SEGMENTS) {
				CHECK_EQ(p.n, 1); /* no batch of this kernel's */
				continue;
			}
			CHECK_EQ(p.n, segments);
			for (seq = 0; seq < p.n; seq++) {
				CHECK_EQ(p.len[seq], seq < p.n - 1 ? T_MEDIA : 28 + last);
				engine_media(&eng, p.ip[seq], p.len[seq], S);
			}
			CHECK_EQ(f->packets, last >= 28 ? segments : segments - 1);
			/* each proves, as it is alone */
			for (seq = 0; seq < segments - 1; seq++) {
				struct paqm_msg m = msg(1, 1 + seq, 0, 500000);

				t_media(media, T_SPORT, T_SSRC, (uint16_t)(65500 + seq));
				CHECK_EQ(say(&m, S), REFUSE_NONE);
			}
		}
	}
	/* another source or a gap is no segment; a jumbo packet is one packet */
	t_media(media, T_SPORT, T_SSRC, 1);
	memcpy(ip, media, T_MEDIA);
	t_media(media, T_SPORT, T_SSRC + 1, 2);
	memcpy(ip + T_MEDIA, media + 28, size);
	CHECK_EQ(batch_segment(ip + 28, 2 * size), 2 * size);
	t_media(media, T_SPORT, T_SSRC, 3);
	memcpy(ip + T_MEDIA, media + 28, size);
	CHECK_EQ(batch_segment(ip + 28, 2 * size), 2 * size);
	t_media(media, T_SPORT, T_SSRC, 2);
	memcpy(ip + T_MEDIA, media + 28, size);
	CHECK_EQ(batch_segment(ip + 28, 2 * size), size);
}

static enum owner whose;
static struct owner_ends asked;
static unsigned int looks;

static enum owner look(const struct owner_ends *p, uint32_t uid)
{
	CHECK_EQ(uid, 1000);
	asked = *p;
	looks++;
	return whose;
}

/* A packet of the same ports from another address of this host. */
static void send_elsewhere(uint16_t seq, uint64_t now_ns)
{
	t_media(media, T_SPORT, T_SSRC, seq);
	media[15]++;
	engine_media(&eng, media, T_MEDIA, now_ns);
}

/* What the tables say of a packet of IPv6, and of what it was before a translator. */
static const struct {
	enum owner v6, v4;
	uint64_t own;
} translated[] = {
	{OWNER_OTHER, OWNER_HIS, 0},	   {OWNER_UNKNOWN, OWNER_OTHER, 0},
	{OWNER_UNKNOWN, OWNER_UNKNOWN, 0}, {OWNER_HIS, OWNER_UNKNOWN, 0},
	{OWNER_UNKNOWN, OWNER_HIS, 1},
};
static enum owner as_it_left, before;

static enum owner look_twice(const struct owner_ends *p, uint32_t uid)
{
	CHECK_EQ(uid, 1000);
	return addr_is_v4(&p->daddr) ? before : as_it_left;
}

#define SHOWN_192_0_0_1 SHOWN("010000C0", "C0000001")
#define SHOWN_10_0_1_2 SHOWN("0201000A", "0A000102")
#define SHOWN_10_0_1_3 SHOWN("0301000A", "0A000103")
#define SHOWN_10_0_2_2 SHOWN("0202000A", "0A000202")

/* Add the sockets of a table. */
static void read_sockets(struct owner_table *all, const char *table)
{
	FILE *t = fmemopen((void *)table, strlen(table), "r");

	CHECK(t);
	owner_read(all, t);
	fclose(t);
}

/* Where the source is left open a packet counts if it is from a socket of the flow's user. */
TEST(test_owner)
{
	/* of 10.0.1.2, open, and connected */
	static const char table[] =
		"  sl  local_address rem_address   st tx_queue rx_queue tr "
		"tm->when retrnsmt   uid\n"
		"  1: " SHOWN_10_0_1_2 ":138C 00000000:0000 07 00000000:00000000 "
		"00:00000000 00000000  1000 0\n"
		"  1: " SHOWN_10_0_1_2 ":138C 00000000:0000 07 00000000:00000000 "
		"00:00000000 00000000  1000 0\n" /* alike: counts once */
		"  2: 00000000:138D 00000000:0000 07 00000000:00000000 "
		"00:00000000 00000000     0 0\n"
		"  3: " SHOWN_10_0_1_3 ":138C " SHOWN_10_0_2_2 ":138E 01 00000000:00000000 "
		"00:00000000 00000000  1001 0\n"
		" bad line\n";
	static const char table6[] = "  9: 00000000000000000000000000000000:138F "
				     "00000000000000000000000000000000:0000 07 "
				     "00000000:00000000 00:00000000 00000000  1000 0\n"
				     " 10: 0000000000000000" SHOWN_MAPPED SHOWN_10_0_1_2 ":138C "
				     "00000000000000000000000000000000:0000 07 "
				     "00000000:00000000 00:00000000 00000000  1002 0\n";
	static const struct {
		uint8_t host;
		uint16_t sport, dport;
		enum owner v4, both;
	} cases[] = {
		{2, 5004, 5006, OWNER_HIS, OWNER_OTHER}, /* another has it in disguise */
		{3, 5004, 5006, OWNER_OTHER, OWNER_OTHER},
		{3, 5004, 5008, OWNER_UNKNOWN, OWNER_UNKNOWN}, /* connected elsewhere */
		{4, 5004, 5006, OWNER_UNKNOWN, OWNER_UNKNOWN},
		{4, 5005, 5006, OWNER_HIS, OWNER_HIS},	   /* root's */
		{4, 5007, 5006, OWNER_UNKNOWN, OWNER_HIS}, /* of IPv6, open to both */
	};
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC);
	struct flow *f, *named;
	struct owner_table all = {0};
	unsigned int i;

	for (i = 0; i < ROWS(cases); i++) {
		struct owner_ends p = {
			.saddr = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 1, cases[i].host}},
			.daddr = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 2, 2}},
			.sport = cases[i].sport,
			.dport = cases[i].dport};

		all.n = 0;
		read_sockets(&all, table);
		CHECK_EQ(all.n, 3);
		CHECK_EQ(owner_find(&all, &p, 1000), cases[i].v4);
		read_sockets(&all, table6);
		CHECK_EQ(all.n, 5);
		CHECK_EQ(owner_find(&all, &p, 1000), cases[i].both);
	}
	free(all.of);

	setup(NULL);
	eng.owner = look;
	memset(reg.saddr, 0, 16);
	CHECK_EQ(engine_register(&eng, 1, 1000, &reg, &f), 0);
	whose = OWNER_OTHER;
	send_media(T_SPORT, T_SSRC, 1, S);
	whose = OWNER_UNKNOWN;
	send_media(T_SPORT, T_SSRC, 2, S);
	CHECK_EQ(f->packets, 0);
	CHECK_EQ(eng.media_others, 2);
	CHECK(asked.sport == T_SPORT && asked.dport == T_DPORT && asked.saddr.b[15] == 2);
	whose = OWNER_HIS;
	send_media(T_SPORT, T_SSRC, 3, S);
	CHECK_EQ(f->packets, 1);
	/* it is known for a while, for this address */
	whose = OWNER_OTHER;
	send_media(T_SPORT, T_SSRC, 4, 2 * S);
	CHECK_EQ(f->packets, 2);
	CHECK_EQ(looks, 3);
	send_elsewhere(5, 2 * S);
	send_media(T_SPORT, T_SSRC, 6, 12 * S);
	CHECK_EQ(f->packets, 2);
	CHECK_EQ(looks, 5);
	/* who names his source is not looked for */
	reg = t_reg(2, T_SPORT + 2, T_SSRC);
	CHECK_EQ(engine_register(&eng, 1, 1000, &reg, &named), 0);
	send_media(T_SPORT + 2, T_SSRC, 1, S);
	CHECK_EQ(named->packets, 1);
	CHECK_EQ(looks, 5);
}

/* A host that translates its own IPv4: what leaves is IPv6, of an address that no socket has. */
TEST(test_translated)
{
	static const char table[] = "  1: " SHOWN_192_0_0_1 ":138C " SHOWN_10_0_2_2
				    ":138E 01 00000000:00000000 00:00000000 00000000  1000 0\n";
	static const char table6[] = "  9: 00000000000000000000000000000000:138C "
				     "00000000000000000000000000000000:0000 07 "
				     "00000000:00000000 00:00000000 00000000  1001 0\n";
	const struct paqm_msg m = msg(7, 1, 1, 400e3);
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC);
	uint8_t p[T_MEDIA + 20], text[512];
	struct owner_table all = {0};
	struct owner_ends ends = {.daddr = addr_v6(reg.daddr), .sport = 5004, .dport = 5006};
	unsigned int open, i;
	struct flow *f;

	/* which of its addresses the socket has is not known */
	read_sockets(&all, table);
	CHECK_EQ(owner_find(&all, &ends, 1000), OWNER_HIS);
	CHECK_EQ(owner_find(&all, &ends, 1001), OWNER_OTHER);
	ends.dport++;
	CHECK_EQ(owner_find(&all, &ends, 1000), OWNER_UNKNOWN);
	ends.dport--;
	read_sockets(&all, table6);
	t_v6(ends.saddr.b, T_SADDR);
	t_v6(ends.daddr.b, T_DADDR);
	CHECK_EQ(owner_find(&all, &ends, 1000), OWNER_OTHER); /* it is IPv6 from the beginning */
	free(all.of);

	for (open = 0; open < 2; open++) {
		setup(NULL);
		eng.owner = look_twice;
		if (open)
			memset(reg.saddr, 0, 16);
		CHECK_EQ(engine_register(&eng, 1, 1000, &reg, &f), 0);
		t_media(p, T_SPORT, T_SSRC, 1);
		CHECK_EQ(t_to6(p, T_MEDIA), sizeof(p));
		CHECK_EQ(about(p, &m), REFUSE_FLOW_UNKNOWN);
		for (i = 0; i < ROWS(translated); i++) {
			as_it_left = translated[i].v6;
			before = translated[i].v4;
			engine_media(&eng, p, sizeof(p), S + i * S);
			CHECK_EQ(f->packets, translated[i].own);
		}
		CHECK_EQ(f->others, ROWS(translated) - f->packets);
		CHECK_EQ(deliver(text, t_message(text, p, &m), i * S, NULL), REFUSE_NONE);
		CHECK_EQ(f->rate.rate_bps, 400000);
		p[8 + 15]++; /* the source */
		CHECK_EQ(about(p, &m), REFUSE_FLOW_UNKNOWN);
		p[8 + 15]--;
		p[24 + 15]++; /* another destination */
		engine_media(&eng, p, sizeof(p), i * S);
		CHECK_EQ(f->packets, 1);
	}
	/* a flow of IPv6 is one of IPv4 in no disguise */
	setup(NULL);
	t_v6(reg.saddr, T_SADDR);
	t_v6(reg.daddr, T_DADDR);
	CHECK_EQ(engine_register(&eng, 1, 1000, &reg, &f), 0);
	send_media(T_SPORT, T_SSRC, 1, S);
	CHECK_EQ(f->packets, 0);
}

/* Looking takes time that all flows share: one flow does not take it from the others. */
TEST(test_owner_often)
{
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC), other = t_reg(2, T_SPORT + 2, 0);
	struct flow *f, *second;
	unsigned int i;

	setup(NULL);
	eng.owner = look;
	memset(reg.saddr, 0, 16);
	memset(other.saddr, 0, 16);
	CHECK_EQ(engine_register(&eng, 1, 1000, &reg, &f), 0);
	CHECK_EQ(engine_register(&eng, 2, 1000, &other, &second), 0);
	looks = 0;
	whose = OWNER_UNKNOWN;
	for (i = 0; i < 1000; i++)
		send_media(T_SPORT, T_SSRC, (uint16_t)i, S + i * (S / 1000));
	CHECK(looks > 1 && looks <= 5);
	looks = 0;
	whose = OWNER_HIS;
	send_media(T_SPORT + 2, T_SSRC, 1, 2 * S);
	CHECK_EQ(looks, 1);
	CHECK_EQ(second->packets, 1);

	/* it is looked for again while what was found still holds, not with each packet either */
	looks = 0;
	whose = OWNER_UNKNOWN;
	for (i = 0; i < 900; i++)
		send_media(T_SPORT + 2, T_SSRC, (uint16_t)i, 2 * S + i * (S / 100));
	CHECK_EQ(second->packets, 901);
	CHECK(looks > 1 && looks <= 20);
	whose = OWNER_HIS;
	send_media(T_SPORT + 2, T_SSRC, 1, 11 * S + S / 2);
	whose = OWNER_UNKNOWN;
	send_media(T_SPORT + 2, T_SSRC, 2, 21 * S);
	CHECK_EQ(second->packets, 903);
	whose = OWNER_OTHER;
	send_media(T_SPORT + 2, T_SSRC, 3, 21 * S + S / 2);
	CHECK_EQ(second->packets, 903);

	/* what comes from elsewhere, however often, does not use up the looks at his address */
	whose = OWNER_HIS;
	send_media(T_SPORT, T_SSRC, 1, 30 * S);
	CHECK_EQ(f->packets, 1);
	looks = 0;
	whose = OWNER_OTHER;
	for (i = 0; i < 600; i++)
		send_elsewhere((uint16_t)i, 30 * S + i * (S / 100));
	CHECK(looks > 1 && looks <= 24);
	whose = OWNER_HIS;
	send_media(T_SPORT, T_SSRC, 2, 36 * S - 1);
	whose = OWNER_OTHER;
	send_media(T_SPORT, T_SSRC, 3, 40 * S + S / 2);
	CHECK_EQ(f->packets, 3);
}
