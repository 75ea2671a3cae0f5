// SPDX-License-Identifier: GPL-2.0
/* How the ends of a call are named, and what they say to each other, there and back. */
#include <string.h>

#include "core/tests/check.h"
#include "streamer/call/offer.h"
#include "streamer/call/scarce.h"
#include "streamer/call/unheard.h"
#include "streamer/options.h"
#include "streamer/rtp/gate.h"

#define LONGEST "0123456789abcdef0123456789abcdef" /* foundation */

TEST(test_round_trip)
{
	struct offer a = {.name = "host \"x\"\n",
			  .rate_max = 2000000,
			  .rtx = TRUE,
			  .tells = TRUE,
			  .corrects = TRUE,
			  .fec = 20,
			  .mends = TRUE,
			  .mux = TRUE,
			  .nonce = 0xfffffffe,
			  .returns = TRUE},
		     b;
	char *line;

	for (int i = 0; i < CALL_MEDIA; i++) {
		a.stream[i].port = (guint16)(5000 + 2 * i);
		a.stream[i].sends = i == CALL_VIDEO;
		a.stream[i].ssrc = 0xffffffff;
		a.stream[i].ice = (struct offer_ice){.ufrag = "ab+/",
						     .pwd = "0123456789abcdefghijkl",
						     .candidates = OFFER_CANDIDATES};
		for (guint k = 0; k < OFFER_CANDIDATES; k++)
			a.stream[i].ice.candidate[k] = (struct offer_candidate){
				.foundation = LONGEST,
				.priority = G_MAXINT32,
				.address = "2001:db8:1111:2222:3333:4444:5555:6666",
				.port = (guint16)(65535 - k),
				.kind = CANDIDATE_SRFLX};
		a.stream[i].payload = i == CALL_VIDEO ? 26 : 0;
		for (int k = 0; k < OFFER_KEY; k++)
			a.stream[i].key[k] = (guint8)(k * 7);
	}
	line = offer_write(&a);
	check(line[strlen(line) - 1] == '\n' && !strchr(line, '\n')[1], "one line", 0);
	check(offer_read(&b, line, strlen(line) - 1, NULL), "own offers are read", 0);
	check(!strcmp(b.name, "host \"x\"?"), "names are made printable", 0);
	check(b.rate_max == a.rate_max, "rate", 0);
	check(b.rtx, "retransmission", 0);
	check(b.tells, "tells when it is ready", 0);
	check(b.corrects && b.fec == 20, "correction", 0);
	check(b.mends, "copies of sound", 0);
	check(b.mux, "one port for RTP and RTCP", 0);
	check(b.nonce == a.nonce && b.returns, "probes", (int)b.nonce);
	check(strlen(line) <= OFFER_LINE, "the longest offer is a line", (int)strlen(line));
	for (int i = 0; i < CALL_MEDIA; i++)
		check(!memcmp(&a.stream[i].ice, &b.stream[i].ice, sizeof(struct offer_ice)), "ICE",
		      i);
	check(offer_ice(&a, &b), "both can use ICE", 0);
	b.mux = FALSE;
	check(!offer_ice(&a, &b), "not without one port for both", 0);
	b.mux = TRUE;
	b.stream[CALL_AUDIO].ice.candidates = 0;
	check(!offer_ice(&a, &b), "nor without a candidate of each stream", 0);
	check(b.stream[CALL_VIDEO].sends && b.stream[CALL_VIDEO].ssrc == 0xffffffff &&
		      !memcmp(b.stream[CALL_VIDEO].key, a.stream[CALL_VIDEO].key, OFFER_KEY),
	      "what is sent", 0);
	check(b.stream[CALL_VIDEO].payload == 26 && !b.stream[CALL_AUDIO].payload, "coding", 0);
	check(!b.stream[CALL_AUDIO].sends && b.stream[CALL_AUDIO].port == 5002, "what is not", 0);
	g_free(line);
}

TEST(test_names)
{
	static const struct {
		const char *text, *name;
	} cases[] = {
		{"J\u00f6rg", "J\u00f6rg"},
		{"a \"b\" \\", "a \"b\" \\"},
		{"\xff\xc3", "??"},
		{"\u202eevil\xc2\x85\x1b[2J", "?evil??[2J"}, /* turned around, other controls */
		/* not cut within a character */
		{"123456789012345678901234567890123456789012345678901234567890ab\u00f6",
		 "123456789012345678901234567890123456789012345678901234567890ab"},
	};
	char name[OFFER_NAME];

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		offer_printable(name, sizeof(name), cases[i].text);
		check(!strcmp(name, cases[i].name), name, i);
	}
}

#define KEY "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\""
#define OFFER(version, name, rate, video)                                                          \
	"{\"paqm-call\":" version ",\"name\":" name ",\"rate-max\":" rate ",\"video\":" video      \
	",\"audio\":{\"port\":5002}}"
#define VIDEO "{\"port\":5000,\"ssrc\":7,\"key\":" KEY "}"

TEST(test_repair)
{
	static const struct {
		const char *line;
		gboolean rtx, corrects;
		guint fec;
	} cases[] = {
		{OFFER("1", "\"a\"", "1000000", VIDEO), FALSE, FALSE, 0}, /* who knows neither */
		{OFFER("1", "\"a\"", "1000000,\"rtx\":true", VIDEO), TRUE, FALSE, 0},
		{OFFER("1", "\"a\"", "1000000,\"rtx\":false,\"fec\":0", VIDEO), FALSE, TRUE, 0},
		{OFFER("1", "\"a\"", "1000000,\"rtx\":1,\"fec\":100", VIDEO), FALSE, TRUE, 100},
	};
	struct offer o;

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		check(offer_read(&o, cases[i].line, strlen(cases[i].line), NULL), "read", i);
		check(o.rtx == cases[i].rtx, "retransmission", i);
		check(!o.mends, "programs before do not use copies of sound", i);
		check(!o.mux, "nor one port for RTP and RTCP", i);
		check(!o.tells, "programs before do not tell when they are ready", i);
		check(o.corrects == cases[i].corrects && o.fec == cases[i].fec, "correction", i);
	}
}

TEST(test_refusals)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{OFFER("1", "\"a\"", "1000000", VIDEO), NULL},
		{OFFER("1", "5", "1000000", VIDEO), NULL},
		{"", "not one JSON object"},
		{"[]", "not one JSON object"},
		{"{\"paqm-call\":1,\"paqm-call\":1}", "not one JSON object"},
		{OFFER("2", "\"a\"", "1000000", VIDEO), "another version"},
		{OFFER("\"1\"", "\"a\"", "1000000", VIDEO), "another version"},
		{OFFER("1", "\"a\"", "999", VIDEO), "rate-max"},
		{OFFER("1", "\"a\"", "-1", VIDEO), "rate-max"},
		{OFFER("1", "\"a\"", "4000000001", VIDEO), "rate-max"},
		{OFFER("1", "\"a\"", "1e6", VIDEO), "rate-max"},
		{OFFER("1", "\"a\"", "1000000,\"fec\":101", VIDEO), "fec must be"},
		{OFFER("1", "\"a\"", "1000000,\"fec\":-1", VIDEO), "fec must be"},
		{OFFER("1", "\"a\"", "1000000,\"fec\":true", VIDEO), "fec must be"},
		{OFFER("1", "\"a\"", "1000000,\"probes\":0", VIDEO), "probes must be"},
		{OFFER("1", "\"a\"", "1000000,\"probes\":4294967296", VIDEO), "probes must be"},
		{OFFER("1", "\"a\"", "1000000,\"probes\":true", VIDEO), "probes must be"},
		{OFFER("1", "\"a\"", "1000000", "{}"), "needs a port"},
		{OFFER("1", "\"a\"", "1000000", "5"), "needs a port"},
		{OFFER("1", "\"a\"", "1000000", "{\"port\":80}"), "needs a port"},
		{OFFER("1", "\"a\"", "1000000", "{\"port\":65535}"), "needs a port"},
		{OFFER("1", "\"a\"", "1000000", "{\"port\":5000,\"ssrc\":7}"), "ssrc and key"},
		{OFFER("1", "\"a\"", "1000000", "{\"port\":5000,\"key\":" KEY "}"), "ssrc and key"},
		{OFFER("1", "\"a\"", "1000000",
		       "{\"port\":5000,\"ssrc\":4294967296,\"key\":" KEY "}"),
		 "ssrc and key"},
		{OFFER("1", "\"a\"", "1000000", "{\"port\":5000,\"ssrc\":7,\"key\":\"AAAA\"}"),
		 "30 bytes"},
		{OFFER("1", "\"a\"", "1000000", "{\"port\":5000,\"ssrc\":7,\"key\":\"*\"}"),
		 "30 bytes"},
		{OFFER("1", "\"a\"", "1000000",
		       "{\"port\":5000,\"ssrc\":7,\"payload\":128,\"key\":" KEY "}"),
		 "payload must be"},
		{OFFER("1", "\"a\"", "1000000",
		       "{\"port\":5000,\"ssrc\":7,\"payload\":\"JPEG\",\"key\":" KEY "}"),
		 "payload must be"},
	};
	char *large = g_strnfill(OFFER_LINE + 1, ' ');
	struct offer o;

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		GError *error = NULL;
		gboolean ok = offer_read(&o, cases[i].line, strlen(cases[i].line), &error);

		check(ok == !cases[i].says, "taken or refused", i);
		check(!cases[i].says || (error && strstr(error->message, cases[i].says)),
		      error ? error->message : "no reason", i);
		g_clear_error(&error);
	}
	check(!offer_read(&o, large, OFFER_LINE + 1, NULL), "a line too long", 0);
	g_free(large);
}

#define CANDIDATE "[\"1\",2130706431,\"192.0.2.1\",5000,\"host\"]"
#define WITH_ICE(ice) OFFER("1", "\"a\"", "1000000", "{\"port\":5000,\"ice\":" ice "}")
#define WORDS "\"ufrag\":\"abcd\",\"pwd\":\"0123456789abcdefghijkl\""
#define ICE(candidates) WITH_ICE("{" WORDS ",\"candidates\":[" candidates "]}")
#define ADDRESS(address) ICE("[\"1\",1,\"" address "\",5000,\"host\"]")
#define SEVEN                                                                                      \
	CANDIDATE "," CANDIDATE "," CANDIDATE "," CANDIDATE "," CANDIDATE "," CANDIDATE            \
		  "," CANDIDATE

TEST(test_candidates)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{ICE(""), NULL},
		{ICE(SEVEN "," CANDIDATE), NULL},
		{ICE(SEVEN "," CANDIDATE "," CANDIDATE), "at most"},
		{ICE("[\"1\",1,\"2001:db8::1\",1,\"relay\"]"), NULL},
		{WITH_ICE("5"), "ufrag and pwd"},
		{WITH_ICE("{}"), "ufrag and pwd"},
		{WITH_ICE("{" WORDS "}"), "at most"},
		{WITH_ICE("{" WORDS ",\"candidates\":{}}"), "at most"},
		{WITH_ICE("{\"ufrag\":\"abc\",\"pwd\":\"0123456789abcdefghijkl\","
			  "\"candidates\":[]}"),
		 "ufrag and pwd"},
		{WITH_ICE("{\"ufrag\":\"ab:d\",\"pwd\":\"0123456789abcdefghijkl\","
			  "\"candidates\":[]}"),
		 "ufrag and pwd"},
		{WITH_ICE("{\"ufrag\":\"ab\\u0000d\",\"pwd\":\"0123456789abcdefghijkl\","
			  "\"candidates\":[]}"),
		 "not one JSON object"},
		{WITH_ICE("{\"ufrag\":\"" LONGEST "x\",\"pwd\":\"0123456789abcdefghijkl\","
			  "\"candidates\":[]}"),
		 "ufrag and pwd"},
		{WITH_ICE("{\"ufrag\":\"abcd\",\"pwd\":\"0123456789abcdefghijk\","
			  "\"candidates\":[]}"),
		 "ufrag and pwd"},
		{ICE("5"), "a candidate must"},
		{ICE("[]"), "a candidate must"},
		{ICE("[\"1\",1,\"192.0.2.1\",5000,\"host\",1]"), "a candidate must"},
		{ICE("[\"\",1,\"192.0.2.1\",5000,\"host\"]"), "a candidate must"},
		{ICE("[\"" LONGEST "x\",1,\"192.0.2.1\",5000,\"host\"]"), "a candidate must"},
		{ICE("[\"1\\r\\n\",1,\"192.0.2.1\",5000,\"host\"]"), "a candidate must"},
		{ICE("[1,1,\"192.0.2.1\",5000,\"host\"]"), "a candidate must"},
		{ICE("[\"1\",0,\"192.0.2.1\",5000,\"host\"]"), "a candidate must"},
		{ICE("[\"1\",-1,\"192.0.2.1\",5000,\"host\"]"), "a candidate must"},
		{ICE("[\"1\",2147483648,\"192.0.2.1\",5000,\"host\"]"), "a candidate must"},
		{ICE("[\"1\",1.5,\"192.0.2.1\",5000,\"host\"]"), "a candidate must"},
		{ICE("[\"1\",1,\"192.0.2.1\",0,\"host\"]"), "a candidate must"},
		{ICE("[\"1\",1,\"192.0.2.1\",65536,\"host\"]"), "a candidate must"},
		{ICE("[\"1\",1,\"192.0.2.1\",5000,\"prflx\"]"), "a candidate must"},
		{ICE("[\"1\",1,\"192.0.2.1\",5000,\"\"]"), "a candidate must"},
		{ICE("[\"1\",1,\"192.0.2.1\",5000,null]"), "a candidate must"},
		{ADDRESS("192.0.2.1"), NULL},
		{ADDRESS("10.0.0.1"), NULL},
		{ADDRESS("peer.example"), "a candidate must"},
		{ADDRESS("192.0.2.1 typ relay"), "a candidate must"},
		{ADDRESS("0.0.0.0"), "a candidate must"},
		{ADDRESS("0.1.2.3"), "a candidate must"},
		{ADDRESS("127.0.0.1"), "a candidate must"},
		{ADDRESS("169.254.1.1"), "a candidate must"},
		{ADDRESS("224.0.0.251"), "a candidate must"},
		{ADDRESS("255.255.255.255"), "a candidate must"},
		{ADDRESS("::"), "a candidate must"},
		{ADDRESS("::1"), "a candidate must"},
		{ADDRESS("fe80::1"), "a candidate must"},
		{ADDRESS("fe80::1%eth0"), "a candidate must"},
		{ADDRESS("ff02::1"), "a candidate must"},
		{ADDRESS("::ffff:127.0.0.1"), "a candidate must"},
		{ADDRESS("\\u0000192.0.2.1"), "not one JSON object"},
		{ADDRESS("2001:db8:1111:2222:3333:4444:5555:66666666666666"), "a candidate must"},
	};
	struct offer o;

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		GError *error = NULL;
		gboolean ok = offer_read(&o, cases[i].line, strlen(cases[i].line), &error);

		check(ok == !cases[i].says, cases[i].line, i);
		check(!cases[i].says || (error && strstr(error->message, cases[i].says)),
		      error ? error->message : "no reason", i);
		g_clear_error(&error);
	}
}

TEST(test_notes)
{
	static const struct {
		const char *line;
		enum note_kind kind;
		const char *text;
	} cases[] = {
		{"{\"muted\":true}", NOTE_MUTED, ""},
		{"{\"ready\":true}", NOTE_READY, ""},
		{"{\"ready\":1}", NOTE_NONE, ""},
		{"{\"muted\":false}", NOTE_UNMUTED, ""},
		{"{\"muted\":1}", NOTE_NONE, ""},
		{"{\"camera\":false}", NOTE_CAMERA_OFF, ""},
		{"{\"camera\":true}", NOTE_CAMERA_ON, ""},
		{"{\"camera\":\"off\"}", NOTE_NONE, ""},
		{"{\"bye\":\"so long\\u001b[2J\"}", NOTE_BYE, "so long?[2J"},
		{"{\"new\":1}", NOTE_NONE, ""},
		{"{\"candidates\":1}", NOTE_CANDIDATES, ""},
		{"", NOTE_NONE, ""},
		{"bye", NOTE_NONE, ""},
	};
	char text[OFFER_NAME], *line;

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		check(note_read(cases[i].line, strlen(cases[i].line), text) == cases[i].kind,
		      "kind of note", i);
		check(!strcmp(text, cases[i].text), "text of note", i);
	}
	for (enum note_kind kind = NOTE_MUTED; kind <= NOTE_BYE; kind++) {
		line = note_write(kind, "x");
		check(note_read(line, strlen(line) - 1, text) == kind, "own notes are read", kind);
		g_free(line);
	}
}

TEST(test_later_candidates)
{
	static const char *const bad[] = {
		"",
		"{}",
		"{\"candidates\":1}",
		"{\"candidates\":{}}",
		"{\"candidates\":{\"video\":[]}}",
		"{\"candidates\":{\"video\":[],\"audio\":[1]}}",
		"{\"candidates\":{\"video\":[[\"1\",1,\"127.0.0.1\",5,\"host\"]],\"audio\":[]}}",
		"{\"candidates\":{\"video\":[[\"1\",1,\"10.0.0.1\",5,\"prflx\"]],\"audio\":[]}}",
	};
	struct offer_ice told[CALL_MEDIA] = {0}, heard[CALL_MEDIA];
	char text[OFFER_NAME], *line;

	told[CALL_AUDIO].candidates = OFFER_CANDIDATES;
	for (guint k = 0; k < OFFER_CANDIDATES; k++)
		told[CALL_AUDIO].candidate[k] = (struct offer_candidate){
			.foundation = LONGEST,
			.priority = G_MAXINT32,
			.address = "2001:db8:1111:2222:3333:4444:5555:6666",
			.port = (guint16)(65535 - k),
			.kind = CANDIDATE_RELAY};
	line = note_write_candidates(told);
	check(strlen(line) <= OFFER_LINE && line[strlen(line) - 1] == '\n', "a line",
	      (int)strlen(line));
	check(note_read(line, strlen(line) - 1, text) == NOTE_CANDIDATES, "its kind", 0);
	check(note_read_candidates(line, strlen(line) - 1, heard) &&
		      !memcmp(told, heard, sizeof(told)),
	      "there and back", 0);
	g_free(line);
	for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
		check(!note_read_candidates(bad[i], strlen(bad[i]), heard), bad[i], (int)i);
}

TEST(test_where)
{
	static const struct {
		const char *text, *host; /* NULL: refused */
		guint16 fallback, port;
	} cases[] = {
		{"192.0.2.1:5004", "192.0.2.1", 0, 5004},
		{"192.0.2.1", "192.0.2.1", 5090, 5090},
		{"192.0.2.1", NULL, 0, 0},
		{"[2001:db8::1]:5004", "2001:db8::1", 0, 5004},
		{"[2001:db8::1]", "2001:db8::1", 5090, 5090},
		{"2001:db8::1", "2001:db8::1", 5090, 5090},
		{"[fe80::1%eth0]:5004", "fe80::1%eth0", 0, 5004},
		{"fe80::1%eth0", "fe80::1%eth0", 5090, 5090},
		{"host.example:65534", "host.example", 0, 65534},
		{"host.example", "host.example", 5090, 5090},
		{"host.example", "host.example", 65535, 65535}, /* none: --bind */
		{"host.example:65535", NULL, 65535, 0},
		{"host.example:65535", NULL, 0, 0},
		{"host.example:65536", NULL, 0, 0},
		{"host.example:0", NULL, 5090, 0},
		{"host.example:-1", NULL, 5090, 0},
		{"host.example:", NULL, 5090, 0},
		{":5004", NULL, 0, 0},
		{"[2001:db8::1", NULL, 5090, 0},
		{"[2001:db8::1]5004", NULL, 5090, 0},
		{"", NULL, 5090, 0},
	};

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		GError *error = NULL;
		GNetworkAddress *where = parse_where(cases[i].text, cases[i].fallback, &error);

		check(!where == !cases[i].host, cases[i].text, i);
		if (where && cases[i].host) {
			check(!strcmp(g_network_address_get_hostname(where), cases[i].host),
			      cases[i].text, i);
			check(g_network_address_get_port(where) == cases[i].port, cases[i].text,
			      g_network_address_get_port(where));
		}
		check(where || (error && strstr(error->message, "is not an address")),
		      "what is refused is said", i);
		g_clear_object(&where);
		g_clear_error(&error);
	}
}

/* So many seconds of @granted; how often the picture has paused or come back. */
static int seconds(struct scarce *s, int n, double granted)
{
	int changes = 0;

	while (n-- > 0)
		changes += scarce_second(s, granted, 200e3);
	return changes;
}

TEST(test_scarce)
{
	struct scarce s = {0};

	check(!seconds(&s, 100, 200e3), "as much as it needs is enough", 0);
	check(!seconds(&s, 100, 0), "who is told nothing goes on", 0);
	for (int i = 0; i < 50; i++)
		check(!seconds(&s, 1, 199e3) && !seconds(&s, 1, 300e3), "a second is nothing", i);
	check(seconds(&s, SCARCE_AFTER, 199e3) == 1 && s.paused, "it pauses", 0);
	check(!seconds(&s, 1000, 259e3), "a little more does not bring it back", 0);
	check(!seconds(&s, SCARCE_ENDS - 1, 261e3), "nor does enough for a moment", 0);
	check(!seconds(&s, 1, 150e3), "that was not to last", 0);
	check(seconds(&s, SCARCE_ENDS, 261e3) == 1 && !s.paused, "it comes back", 0);
	check(!seconds(&s, 1000, 201e3), "and stays", 0);
}

TEST(test_scarce_untold)
{
	struct scarce s = {0};
	int wait = SCARCE_UNTOLD;

	for (int i = 0; i < 6; i++) {
		check(seconds(&s, SCARCE_AFTER, 150e3) == 1 && s.paused, "it pauses", i);
		check(!seconds(&s, wait - 1, 0), "without a word it waits", i);
		check(seconds(&s, 1, 0) == 1 && !s.paused, "and tries", wait);
		wait = MIN(2 * wait, SCARCE_UNTOLD_MAX);
	}
	check(!seconds(&s, 1, 250e3), "a word that it may", 0);
	seconds(&s, SCARCE_AFTER, 150e3);
	check(seconds(&s, SCARCE_UNTOLD, 0) == 1, "and the next trial is soon", 0);
}

/* So many seconds; how often the picture has stopped or come back. */
static int unheard(struct unheard *u, int n, gboolean sent, gboolean reported)
{
	int changes = 0;

	while (n-- > 0)
		changes += unheard_second(u, sent, reported);
	return changes;
}

TEST(test_unheard)
{
	struct unheard u = {0};

	for (int i = 0; i < 50; i++)
		check(!unheard(&u, BREAKER_S - 1, TRUE, FALSE) && !unheard(&u, 1, TRUE, TRUE),
		      "reports may be rare", i);
	check(!unheard(&u, 1000, FALSE, FALSE), "without a camera nobody has to report", 0);
	check(!unheard(&u, BREAKER_S - 1, TRUE, FALSE), "when it is there again, neither at once",
	      0);
	check(unheard(&u, 1, TRUE, FALSE) == 1 && u.stopped, "then it stops", 0);
	check(!unheard(&u, 1000, FALSE, FALSE) && !unheard(&u, 1000, TRUE, FALSE),
	      "and does not come back by itself", 0);
	check(unheard(&u, 1, FALSE, TRUE) == 1 && !u.stopped, "one report is enough", 0);
	check(!unheard(&u, BREAKER_S - 1, TRUE, FALSE), "and the time begins anew", 0);
}

CHECK_MAIN
