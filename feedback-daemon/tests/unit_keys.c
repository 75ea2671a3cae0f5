// SPDX-License-Identifier: GPL-2.0
/* Keys: tags, rotation, the file they are in. See unit.h. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feedback-daemon/host/keys_file.h"
#include "unit.h"

static const struct addr sender = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 1, 2}};

/* Message about the last media packet, tagged with the router's key @k, whose id is @id. */
static enum refuse say_tagged(struct paqm_msg m, uint16_t id, const uint8_t *k, uint64_t now)
{
	uint8_t own[16];

	keys_derive(k, &sender, own);
	t_tag(&m, media, id, own);
	return say(&m, now);
}

/* The same in version 1, which has no keys of hosts. */
static enum refuse say_tagged1(struct paqm_msg m, uint16_t id, const uint8_t *k, uint64_t now)
{
	uint8_t object[PAQM1_OBJ_LEN], bytes[PAQM_TAG_BYTES], ip[T_MESSAGE];
	struct paqm_quote q;

	CHECK(!paqm_quote_decode(media, 28 + PAQM1_QUOTE_UDP, 4, &q));
	m.flags |= PAQM_F_AUTH;
	m.key_id = id;
	paqm1_object_encode(object, &m);
	m.tag = paqm_siphash24(k, bytes, paqm1_tag_bytes(object, &q, bytes));
	return deliver(ip, t_message1(ip, media, &m), now, NULL);
}

/* A key as text. */
static const char *hex(const uint8_t key[16], char text[33])
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", key[i]);
	return text;
}

/* Who reads the key of one host can speak to no other; and a tag is of one flow. */
TEST(test_host_keys)
{
	static const struct addr other = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 1, 3}};
	struct paqm_msg m = msg(0xA1, 1, 0.9, 500000);
	uint8_t a[16], own[16], theirs[16], ip[T_MESSAGE], second[T_MEDIA];
	struct addr v6 = {{0x20, 1, 0xD, 0xB8, 0, 0, 0, 1, 2, 3}}, near = v6, far = v6;
	char line[80], lines[128], first[33], last[33];

	memset(a, 0x0f, sizeof(a));
	keys_derive(a, &sender, own);
	keys_derive(a, &other, theirs);
	CHECK(memcmp(own, theirs, 16) && memcmp(own, a, 16) && memcmp(own, own + 8, 8));
	begin(NULL);
	snprintf(line, sizeof(line), "a1 7 %s host # mine\n", hex(own, last));
	use_keys(line);
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say_tagged1(m, 7, own, S), REFUSE_AUTH_BAD); /* a host's key tags no version 1 */
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	/* a host with several addresses has a key of each, here IPv6 before IPv4 */
	keys_derive(a, &v6, theirs);
	snprintf(lines, sizeof(lines), "a1 7 %s host\na1 7 %s host\n", hex(theirs, first),
		 hex(own, last));
	use_keys(lines);
	m.seq++;
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	m.seq++;
	keys_derive(a, &other, theirs);
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_BAD);
	/* the router's key on the host proves the same, and version 1 */
	use_keys("a1 7 " KEY_A);
	m.seq++;
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	m.seq++;
	CHECK_EQ(say_tagged1(m, 7, own, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say_tagged1(m, 7, a, S), REFUSE_NONE);

	/* the same bytes go to two receivers: what is said of the one is not said of the other */
	{
		struct paqm_ipc_register reg = t_reg(2, T_SPORT, T_SSRC);
		struct flow *f;

		reg.daddr[15]++;
		CHECK_EQ(engine_register(&eng, 1, 0, &reg, &f), 0);
		memcpy(second, media, T_MEDIA);
		second[19]++;
		engine_media(&eng, second, T_MEDIA, S);
		CHECK_EQ(f->packets, 1);
	}
	m.seq++;
	t_tag(&m, media, 7, own);
	CHECK_EQ(deliver(ip, t_message(ip, second, &m), S, NULL), REFUSE_AUTH_BAD);
	CHECK_EQ(say(&m, S), REFUSE_NONE);

	/* addresses that a host makes for itself have one key; other networks have others */
	near.b[15] = 99;
	far.b[7] = 2;
	keys_derive(a, &v6, own);
	keys_derive(a, &near, theirs);
	CHECK(!memcmp(own, theirs, 16));
	keys_derive(a, &far, theirs);
	CHECK(memcmp(own, theirs, 16));
}

/* The same message with another address as that which it came to. */
static enum refuse say_to(const struct paqm_msg *m, const struct addr *to, uint64_t now)
{
	uint8_t ip[T_MESSAGE];
	uint32_t len = t_message_type(ip, PAQM_ICMP_TYPE_EXP, media, m);

	t_ip(ip, 1, len, T_ROUTER, paqm_get32(to->b + 12));
	return deliver(ip, len, now, NULL);
}

/* Packet number @seq of the open flow, from 10.0.1.@host. */
static void send_from(uint8_t host, uint16_t seq, uint64_t now)
{
	t_media(media, T_SPORT, T_SSRC, seq);
	media[15] = host;
	engine_media(&eng, media, T_MEDIA, now);
}

/* Who reads the key of one host cannot speak to another by having his messages come to that one's
 * address: a host derives keys for addresses that the flow sends from.
 */
TEST(test_host_keys_moved)
{
	static const struct addr other = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 1, 3}};
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC);
	struct paqm_msg m = msg(0xA1, 1, 0.9, 500000);
	uint8_t a[16], own[16], theirs[16], ip[T_MESSAGE];
	char line[80], text[33];
	struct flow *f;
	uint8_t host;

	memset(a, 0x0f, sizeof(a));
	keys_derive(a, &sender, own);
	keys_derive(a, &other, theirs);
	begin(NULL);
	use_keys("a1 7 " KEY_A);
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(say_to(&m, &other, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);

	/* of a flow whose source was left open they can name any, in the quote as well */
	setup(NULL);
	memset(reg.saddr, 0, 16);
	CHECK_EQ(engine_register(&eng, 1, 0, &reg, &f), 0);
	use_keys("a1 7 " KEY_A);
	send_from(2, 1, S);
	m = msg(0xA1, 2, 0.9, 500000);
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(say_to(&m, &other, S), REFUSE_AUTH_BAD);
	media[15] = 3;
	CHECK_EQ(say_to(&m, &other, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	/* tags of version 1 say nothing of the host */
	m.seq++;
	CHECK_EQ(say_tagged1(m, 7, a, S), REFUSE_NONE);
	/* it sends from there, too: both hold, for as long as the packets do */
	m.seq++;
	send_from(3, 2, 2 * S);
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(say_to(&m, &other, 2 * S), REFUSE_NONE);
	m.seq++;
	CHECK_EQ(say_tagged(m, 7, a, 2 * S), REFUSE_NONE);
	send_from(2, 3, 6 * S + 1);
	m.seq++;
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(say_to(&m, &other, 6 * S + 1), REFUSE_AUTH_BAD);
	CHECK_EQ(say_tagged(m, 7, a, 6 * S + 1), REFUSE_NONE);
	/* those in use stay */
	for (host = 10; host < 10 + 3 * FLOW_SOURCES; host++) {
		send_from(host, host, 6 * S + host);
		send_from(2, 100 + host, 6 * S + host);
		m.seq++;
		CHECK_EQ(say_tagged(m, 7, a, 6 * S + host), REFUSE_NONE);
	}

	/* behind a NAT the message comes to another address than that of the line */
	m.seq++;
	snprintf(line, sizeof(line), "a1 7 %s host\n", hex(theirs, text));
	use_keys(line);
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(deliver(ip, t_message(ip, media, &m), 6 * S + 50, NULL), REFUSE_NONE);
	m.seq++;
	t_tag(&m, media, 7, theirs);
	CHECK_EQ(say_to(&m, &(struct addr){{[10] = 0xFF, [11] = 0xFF, 9}}, 6 * S + 50),
		 REFUSE_NONE);
}

TEST(test_keys)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(0xA1, 1, 0.9, 500000);
	uint8_t a[16], b[16];
	struct verdict v;
	uint8_t ip[T_MESSAGE];
	struct flow *f;

	memset(a, 0x0f, sizeof(a));
	memset(b, 0xb0, sizeof(b));
	f = begin(NULL);
	/* without keys nobody looks at tags, and nobody is told that one is right */
	m.flags = PAQM_F_AUTH;
	m.tag = 1;
	CHECK_EQ(deliver(ip, t_message(ip, media, &m), S, &v), REFUSE_NONE);
	CHECK(!(v.msg.flags & PAQM_F_AUTH) && !(f->rate.flags & PAQM_F_AUTH));

	/* one router has a key: it must use it, the others need not */
	use_keys("a1 7 " KEY_A "\n");
	m = msg(0xA1, 2, 0.9, 400000);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_MISSING);
	CHECK_EQ(say_tagged(m, 8, a, S), REFUSE_KEY_UNKNOWN);
	CHECK_EQ(say_tagged(m, 7, b, S), REFUSE_AUTH_BAD);
	CHECK_EQ(f->rate.rate_bps, 500000);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 400000);
	CHECK(f->rate.flags & PAQM_F_AUTH);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_SEQ_REPLAY);
	m = msg(0xB2, 1, 0.9, 450000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);

	/* rotation: both hold, then the old one is gone */
	use_keys("a1 7 " KEY_A "\na1 8 " KEY_B "\n");
	m = msg(0xA1, 3, 0.9, 400000);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	m.seq++;
	CHECK_EQ(say_tagged(m, 8, b, S), REFUSE_NONE);
	use_keys("a1 8 " KEY_B "\n");
	m.seq++;
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_KEY_UNKNOWN);
	CHECK_EQ(say_tagged(m, 8, b, S), REFUSE_NONE);
	CHECK_EQ(f->rate.routers, 2); /* allowances have stayed */

	/* a key for all says nothing about a router with its own */
	use_keys("* 8 " KEY_A "\na1 8 " KEY_B "\n");
	m.seq++;
	CHECK_EQ(say_tagged(m, 8, a, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say_tagged(m, 8, b, S), REFUSE_NONE);
	m = msg(0xB2, 2, 0.9, 450000);
	CHECK_EQ(say_tagged(m, 8, b, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_MISSING);
	CHECK_EQ(say_tagged(m, 8, a, S), REFUSE_NONE);

	/* no router without a key */
	p.require_auth = true;
	begin(&p);
	use_keys("a1 7 " KEY_A "\n");
	m = msg(0xB2, 1, 0.9, 450000);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_MISSING);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_KEY_UNKNOWN);
	m = msg(0xA1, 1, 0.9, 450000);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	engine_set_keys(&eng, NULL);
	m.seq++;
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_KEY_UNKNOWN);
}

TEST(test_keys_file)
{
	static const struct {
		const char *text;
		unsigned int line; /* of the fault; 0: none */
		unsigned int n;
	} cases[] = {
		{"", 0, 0},
		{"\n\n# nothing\n \t\r\n", 0, 0},
		{"1 1 " KEY_A, 0, 1},
		{"FFFFFFFFFFFFFFFF 65535 " KEY_B "\n*\t1\t" KEY_A "#x\r\n", 0, 2},
		{"1 1 " KEY_A "\n1 2 " KEY_A "\n2 1 " KEY_A "\n* 1 " KEY_A "\n", 0, 4},
		{"1 1 " KEY_A "\n\n01 01 " KEY_B "\n", 3, 0},
		{"* 1 " KEY_A "\n* 1 " KEY_B "\n", 2, 0},
		{"1 1\n", 1, 0},
		{"1\n", 1, 0},
		{"1 1 " KEY_A " x\n", 1, 0},
		{"1 1 " KEY_A " hosts\n", 1, 0},
		{"1 1 " KEY_A " host x\n", 1, 0},
		{"1 1 " KEY_A " host\n2 1 " KEY_A "\thost # x\n", 0, 2},
		{"1 1 " KEY_A " host\n1 1 " KEY_A "\n", 2, 0},
		{"1 1 " KEY_A "\n1 1 " KEY_B " host\n", 2, 0},
		{"1 1 " KEY_A " host\n1 1 " KEY_A " host\n", 2, 0},
		{"1 1 " KEY_A " host\n1 1 " KEY_B " host\n", 0, 2},
		{"0 1 " KEY_A, 1, 0},
		{"** 1 " KEY_A, 1, 0},
		{"10000000000000000 1 " KEY_A, 1, 0},
		{"0x1 1 " KEY_A, 1, 0},
		{"1 0 " KEY_A, 1, 0},
		{"1 65536 " KEY_A, 1, 0},
		{"1 000001 " KEY_A, 1, 0},
		{"1 a " KEY_A, 1, 0},
		{"1 1 " KEY_A "0", 1, 0},
		{"1 1 0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0", 1, 0},
		{"1 1 0g0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", 1, 0},
		{"1 1 f@0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", 1, 0},
		{"1 1 00000000000000000000000000000000", 1, 0},
	};
	static struct keyring ring;
	char text[KEYS_FILE_MAX], *p = text;
	unsigned int line, i;
	const char *error;

	for (i = 0; i < ROWS(cases); i++) {
		error = keys_parse(cases[i].text, strlen(cases[i].text), &ring, &line);
		if (!error != !cases[i].line)
			fprintf(stderr, "keys case %u: %s\n", i, error ? error : "taken");
		CHECK_EQ(!error, !cases[i].line);
		if (error)
			CHECK_EQ(line, cases[i].line);
		else
			CHECK_EQ(ring.n, cases[i].n);
	}
	for (i = 1; i <= KEYS_MAX + 1; i++) {
		CHECK_EQ(!!keys_parse(text, (size_t)(p - text), &ring, &line), 0);
		CHECK_EQ(ring.n, i - 1);
		p += sprintf(p, "%x 1 " KEY_A "\n", i);
	}
	CHECK(keys_parse(text, (size_t)(p - text), &ring, &line));
	CHECK_EQ(line, KEYS_MAX + 1);
}

/* A file that others may read or write holds no secrets. */
TEST(test_keys_load)
{
	char dir[] = "/tmp/paqmd-unit-XXXXXX", path[64], error[256];
	static struct keyring ring;
	FILE *f;
	int i;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/keys", dir);
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "No such file"));
	f = fopen(path, "w");
	CHECK(f && fputs("# one\n1 1 " KEY_A "\n", f) > 0 && !fclose(f));
	for (i = 0; i < 0200; i++) {
		CHECK(!chmod(path, (mode_t)(0600 | i)));
		CHECK_EQ(!keys_load(path, geteuid(), &ring, error, sizeof(error)), !(i & 077));
	}
	CHECK(!chmod(path, 0600));
	CHECK(!keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK_EQ(ring.n, 1);
	f = fopen(path, "a");
	CHECK(f && fputs("1 1 " KEY_A "\n", f) > 0 && !fclose(f));
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "/keys:3: "));
	CHECK_EQ(ring.n, 0); /* nothing is left of a file with a mistake */
	CHECK(!truncate(path, KEYS_FILE_MAX + 1));
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "65536"));
	if (!geteuid()) {
		CHECK(!chown(path, 1, 0));
		CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
		CHECK(strstr(error, "another user"));
		CHECK(!truncate(path, 0));
		CHECK(!keys_load(path, 1, &ring, error, sizeof(error)));
	}
	unlink(path);
	CHECK(!mkfifo(path, 0600));
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "regular file"));
	unlink(path);
	rmdir(dir);
	keys_wipe(&ring);
	CHECK_EQ(ring.n, 0);
}

/* Credentials as the service manager makes them: of root, mode 0440 for the user's access list. */
TEST(test_keys_credential)
{
	char dir[] = "/tmp/paqmd-unit-XXXXXX", path[64], inner[64], beside[64], error[256];
	static struct keyring ring;
	const char *const all[] = {path, inner, beside};
	unsigned int i;
	FILE *f;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/keys", dir);
	snprintf(inner, sizeof(inner), "%s/in", dir);
	CHECK(!mkdir(inner, 0700));
	snprintf(inner, sizeof(inner), "%s/in/keys", dir);
	snprintf(beside, sizeof(beside), "%s-keys", dir);
	for (i = 0; i < 3; i++) {
		f = fopen(all[i], "w");
		CHECK(f && fputs("1 1 " KEY_A "\n", f) > 0 && !fclose(f));
		CHECK(!chmod(all[i], 0440));
	}
	unsetenv("CREDENTIALS_DIRECTORY");
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "chmod 600"));
	CHECK(!setenv("CREDENTIALS_DIRECTORY", dir, 1));
	for (i = 0; i < 0200; i++) {
		bool good = geteuid() ? !(i & 077) : !(i & 037);

		CHECK(!chmod(path, (mode_t)(0400 | i)));
		CHECK_EQ(!keys_load(path, geteuid(), &ring, error, sizeof(error)), good);
	}
	/* what lies elsewhere is none */
	CHECK(!chmod(path, 0440));
	CHECK(keys_load(inner, geteuid(), &ring, error, sizeof(error)));
	CHECK(keys_load(beside, geteuid(), &ring, error, sizeof(error)));
	CHECK(!setenv("CREDENTIALS_DIRECTORY", "", 1));
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(!setenv("CREDENTIALS_DIRECTORY", "/nowhere", 1));
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(!setenv("CREDENTIALS_DIRECTORY", dir, 1));
	if (!geteuid()) {
		/* the group's right is that of a true group, or the directory is open */
		CHECK(!chown(path, 0, 1));
		CHECK(keys_load(path, 0, &ring, error, sizeof(error)));
		CHECK(!chown(path, 0, 0));
		CHECK(!keys_load(path, 0, &ring, error, sizeof(error)));
		CHECK(!chmod(dir, 0755));
		CHECK(keys_load(path, 0, &ring, error, sizeof(error)));
		CHECK(!chmod(dir, 0550));
		CHECK(!keys_load(path, 0, &ring, error, sizeof(error)));
		CHECK(!chown(dir, 1, 0));
		CHECK(keys_load(path, 0, &ring, error, sizeof(error)));
		/* where there are no access lists it is given to the user */
		CHECK(!chown(path, 1, 0) && !chmod(path, 0400));
		CHECK(!keys_load(path, 1, &ring, error, sizeof(error)));
	}
	unsetenv("CREDENTIALS_DIRECTORY");
	for (i = 0; i < 3; i++)
		unlink(all[i]);
	snprintf(inner, sizeof(inner), "%s/in", dir);
	rmdir(inner);
	rmdir(dir);
	keys_wipe(&ring);
}
