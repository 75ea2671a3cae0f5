// SPDX-License-Identifier: GPL-2.0
/* What is said to clients and read from files: records, control requests, configuration. See
 * unit.h. */
#include <stdlib.h>
#include <unistd.h>

#include "feedback-daemon/conf.h"
#include "feedback-daemon/host/utf8.h"
#include "feedback-daemon/sockets/record.h"
#include "feedback-daemon/sockets/request.h"
#include "unit.h"

TEST(test_records)
{
	struct paqm_ipc_register r = t_reg(1, T_SPORT, 0);
	uint8_t longer[PAQM_IPC_RECORD_MAX + 1];
	union record out;
	size_t n;

	CHECK(!record_parse(&r, sizeof(r), &out));
	CHECK_EQ(out.reg.cookie, 1);
	CHECK(record_parse(&r, sizeof(r) - 1, &out));
	CHECK(record_parse(&r, sizeof(r) + 1, &out));
	/* a later release may say more, but no release less, and none without end */
	memset(longer, 0xEE, sizeof(longer));
	for (n = sizeof(r) - 1; n <= sizeof(longer); n++) {
		r.hdr.len = (uint16_t)n;
		memcpy(longer, &r, sizeof(r));
		CHECK_EQ(!record_parse(longer, n, &out),
			 n >= sizeof(r) && n <= PAQM_IPC_RECORD_MAX);
	}
	/* nor what this one does not know */
	r.hdr.len = 8;
	r.hdr.kind = PAQM_IPC_STATUS + 1;
	CHECK(!record_parse(&r, 8, &out));
	CHECK_EQ(out.hdr.kind, PAQM_IPC_STATUS + 1);
	r = t_reg(1, T_SPORT, 0);
	CHECK(record_parse(&r, 7, &out));
	CHECK(record_parse(&r, 0, &out));
	r.hdr.len--;
	CHECK(record_parse(&r, sizeof(r), &out));
	r = t_reg(1, T_SPORT, 0);
	r.hdr.kind = PAQM_IPC_RATE;
	CHECK(record_parse(&r, sizeof(r), &out));
	r = t_reg(1, T_SPORT, 0);
	r.hdr.version = 2;
	CHECK(record_parse(&r, sizeof(r), &out));
	r = t_reg(1, T_SPORT, 0);
	r.hdr.magic++;
	CHECK(record_parse(&r, sizeof(r), &out));
}

/* What stands at "NAME.NUMBER.NAME" in an answer. */
static const json_t *at(const json_t *o, const char *path)
{
	char *copy = strdup(path), *rest = copy, *word;

	while ((word = strsep(&rest, ".")))
		o = json_is_array(o) ? json_array_get(o, (size_t)atoi(word))
				     : json_object_get(o, word);
	free(copy);
	return o;
}

static const char *text_at(const json_t *o, const char *path)
{
	return json_string_value(at(o, path));
}

static json_t *request(const char *line, enum request_act *act)
{
	struct request_env env = {.now_ns = 2 * S, .start_ns = S, .ifaces = 1};

	strcpy(env.iface[0].name, "e\xFF"); /* any byte may stand in such a name */
	return request_answer(&eng, &env, line, strlen(line), act);
}

TEST(test_requests)
{
	static const char *const bad[] = {"", "{", "[]", "{}", "{\"cmd\": 1}", "{\"cmd\": \"x\"}"};
	struct paqm_msg m = msg(0xABC, 1, 0.9, 500000);
	enum request_act act;
	json_t *o;
	size_t i;

	begin(NULL);
	m.flags = PAQM_F_OVERLOAD | PAQM_F_FINAL;
	m.qdelay_100us = 35;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(say(&m, S), REFUSE_SEQ_REPLAY);
	o = request("{\"cmd\": \"show\"}", &act);
	CHECK(json_is_true(at(o, "ok")));
	CHECK_EQ(json_integer_value(at(o, "flows.0.rate_bps")), 500000);
	CHECK(!strcmp(text_at(o, "flows.0.flow"), "10.0.1.2:5004 > 10.0.2.2:5006"));
	CHECK(!strcmp(text_at(o, "flows.0.limited_by"), "0000000000000abc"));
	CHECK(json_real_value(at(o, "routers.0.qdelay_ms")) == 3.5);
	CHECK_EQ(json_array_size(at(o, "routers.0.flags")), 2);
	CHECK(!strcmp(text_at(o, "stats.interfaces.0.name"), "e?"));
	CHECK_EQ(json_integer_value(at(o, "stats.refused.seq_replay")), 1);
	CHECK_EQ(json_object_size(at(o, "stats.refused")), REFUSE_MAX - 1);
	json_decref(o);
	CHECK(act == REQUEST_NOTHING);
	o = request("{\"cmd\": \"watch\"}", &act);
	CHECK(act == REQUEST_WATCH && json_is_true(json_object_get(o, "ok")));
	json_decref(o);
	for (i = 0; i < ROWS(bad); i++) {
		o = request(bad[i], &act);
		CHECK(json_is_false(json_object_get(o, "ok")));
		CHECK(text_at(o, "error"));
		json_decref(o);
	}
}

/* The first flow's answer to "why". */
static const char *why(struct request_env *env, const char **text)
{
	static json_t *o;
	enum request_act act;

	json_decref(o);
	o = request_answer(&eng, env, "{\"cmd\": \"why\"}", 14, &act);
	CHECK_EQ(json_array_size(at(o, "why")), 1);
	*text = text_at(o, "why.0.text");
	return text_at(o, "why.0.code");
}

#define CHECK_WHY(want, part)                                                                      \
	do {                                                                                       \
		const char *text_, *code_ = why(&env, &text_);                                     \
		check(!strcmp(code_, want) && strstr(text_, part), text_, 0);                      \
	} while (0)

/* Whatever the state of a flow, its reason is named. */
TEST(test_why)
{
	struct request_env env = {.now_ns = 2 * S, .start_ns = S, .ifaces = 1};
	struct paqm_msg m = msg(0xABC, 1, 1.0, 500000);
	uint8_t other[T_MEDIA], p[T_MESSAGE];
	uint64_t now = 40 * S;
	struct flow *f;

	setup(NULL);
	f = add(1, T_SPORT, 0);
	CHECK_WHY("no_media", "is it sent");
	env.iface[0].up = false;
	CHECK_WHY("no_media", "one is gone");
	env.iface[0].up = true;
	f->others = 3;
	CHECK_WHY("not_own", "3 packets of this flow have left");
	f->refused = 1; /* because of that */
	CHECK_WHY("not_own", "register it as that user");
	f->refused = 0;
	send_media(T_SPORT, 1, 1, S);
	CHECK_WHY("no_message", "1 packets have left");
	t_media(other, T_SPORT + 4, 1, 1);
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_FLOW_UNKNOWN);
	CHECK_WHY("no_message", "are addresses translated?");
	t_media(other, T_SPORT, 1, 9);
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_QUOTE_UNKNOWN);
	CHECK_WHY("unproven", "quote_unknown");
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_WHY("advice", "0.500 Mbit/s (1.0 s ago), the least of 1 router");
	m = msg(0xDEF, 1, 1.0, 600000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_WHY("advice", "2 routers");
	m = msg(0xABC, 2, 1.0, 1000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_WHY("floor", "less than the floor of 0.010");
	m = msg(0xABC, 3, 1.0, 1e7);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	m = msg(0xDEF, 2, 1.0, 1e7);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_WHY("ceiling", "ceiling of 1.000 Mbit/s");
	engine_expire(&eng, f, 5 * S);
	env.now_ns = 6 * S;
	CHECK_WHY("expired", "silent for 5.0 s");
	CHECK_WHY("expired", "some were refused");

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	flap(f, &now, 40, 250 * MS, 200000, 800000);
	env.now_ns = now;
	CHECK_WHY("damped", "rising slowly");
	engine_expire(&eng, f, now + 10 * S);
	CHECK_WHY("expired", "its messages are lost");
}

/* Requests and events, with and without everything that may be missing. */
TEST(test_views)
{
	static const char *const lines[] = {"show",  "flows",	"routers",
					    "stats", "capture", "reload"};
	struct request_env env = {.now_ns = 2 * S, .start_ns = S};
	struct engine_params params = engine_defaults;
	struct paqm_msg m = msg(0xABC, 1, 0.5, 500000);
	struct verdict v = {.refuse = REFUSE_IP_CUT};
	uint8_t big[REQUEST_PACKET_MAX + 9] = {0xAB};
	enum request_act act, acts = 0;
	char line[64];
	struct flow *f;
	json_t *o;
	size_t i;

	params.use = ALLOW_USE_ECF;
	params.require_auth = true;
	setup(&params);
	f = add(1, T_SPORT, 0);
	f->has_status = true;
	f->status.qp = 30;
	send_media(T_SPORT, 1, 1, S);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_MISSING);
	for (i = 0; i < ROWS(lines); i++) {
		snprintf(line, sizeof(line), "{\"cmd\": \"%s\"}", lines[i]);
		o = request_answer(&eng, &env, line, strlen(line), &act);
		CHECK(json_is_true(json_object_get(o, "ok")));
		acts |= act;
		if (i == 1)
			CHECK_EQ(json_integer_value(at(o, "flows.0.status.qp")), 30);
		if (i == 3)
			CHECK(json_is_true(at(o, "stats.require_auth")));
		json_decref(o);
	}
	CHECK_EQ(acts, REQUEST_CAPTURE | REQUEST_RELOAD);
	o = request_event_verdict(&eng, &v, S);
	CHECK(!json_object_get(o, "seq") && !json_object_get(o, "flow"));
	CHECK(!strcmp(text_at(o, "reason"), "ip_cut"));
	json_decref(o);
	/* The longest message is told whole. */
	o = request_event_packet(&v, big, PAQM_IP6_HDR + PAQM_MSG_MAX, S);
	CHECK_EQ(strlen(text_at(o, "ip")), 2 * (PAQM_IP6_HDR + PAQM_MSG_MAX));
	json_decref(o);
	o = request_event_packet(&v, big, sizeof(big), S);
	CHECK_EQ(strlen(text_at(o, "ip")), 2 * REQUEST_PACKET_MAX);
	CHECK(!strncmp(text_at(o, "ip"), "ab00", 4));
	json_decref(o);
	o = request_reloaded(NULL);
	CHECK(json_is_true(json_object_get(o, "ok")));
	json_decref(o);
	o = request_reloaded("line 1");
	CHECK(!strcmp(text_at(o, "error"), "line 1"));
	json_decref(o);
	/* what is no text does not cost the answer */
	o = request_reloaded("line 1: \xE2\x82 is no word");
	CHECK(!strcmp(text_at(o, "error"), "line 1: ?? is no word"));
	json_decref(o);
	CHECK(!strcmp(refuse_name(REFUSE_MAX), "unknown"));
}

TEST(test_names_in_json)
{
	static const char *const good[] = {"",
					   "eth0",
					   "bl\xC3\xA5",
					   "\xE2\x82\xAC",
					   "\xED\x9F\xBF",
					   "\xF0\x90\x80\x80",
					   "\xF4\x8F\xBF\xBF"};
	static const char *const bad[] = {"\xFF",
					  "\x80",
					  "a\xC3",
					  "\xC3q",
					  "\xE2\x82",
					  "\xC1\xBF",
					  "\xE0\x9F\xBF",
					  "\xED\xA0\x80",
					  "\xF0\x8F\xBF\xBF",
					  "\xF4\x90\x80\x80",
					  "\xF8\x88\x80\x80\x80"};
	char name[] = "bl\xC3\xA5\xFF";

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(utf8_is(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!utf8_is(bad[i]));
	utf8_mend(name);
	CHECK(!strcmp(name, "bl???"));
}
/* What a configuration file must be, before its lines count. */
static unsigned int mistakes;
static char mistake[CONF_WHY];

static void note(void *data, unsigned int line, const char *text)
{
	(void)data;
	(void)line;
	mistakes++;
	snprintf(mistake, sizeof(mistake), "%s", text);
}

TEST(test_conf_file)
{
	static const struct {
		const char *line, *fault;
	} bad[] = {
		{"interface 0123456789abcdef", "1 to 15"},
		{"interface a/b", "name of an interface"},
		{"interface eth0:1", "name of an interface"},
		{"interface \x80\n interface a b", "more than one value"},
		{"user 0123456789012345678901234567890123", "1 to 32"},
		{"group 0123456789012345678901234567890123", "1 to 32"},
		{"socket relative", "absolute path"},
		{"socket /run/paqm/", "path of a file"},
		{"control x", "absolute path"},
		{"keys x", "absolute path"},
		{"require-auth maybe", "yes or no"},
		{"sandbox 1", "yes or no"},
		{"verbose true", "yes or no"},
		{"use both", "thesis-erf or thesis-ecf"},
		{"use ecf\nuse erf", "only once"},
		{"interface a\ninterface a", "only once"},
		{"nothing 1", "unknown setting"},
		{"use", "no value"},
		{"use erf\x01", "control character"},
		{"use erf\r", "carriage return"},
		{"\xef\xbb\xbfuse erf", "byte order mark"},
		{"use\rerf", "control character"},
	};
	char dir[] = "/tmp/paqmd-unit-XXXXXX", path[64], why[CONF_WHY];
	uint32_t seen = 0;
	struct conf c;
	unsigned int i;
	FILE *f;

	conf_default(&c);
	for (i = 0; i < ROWS(bad); i++) {
		mistakes = 0;
		CHECK_EQ(conf_parse(&c, bad[i].line, strlen(bad[i].line), note, NULL), mistakes);
		CHECK(mistakes);
		check(strstr(mistake, bad[i].fault), mistake, i);
	}
	CHECK(!conf_set(&c, CONF_USER, "", &seen, why));
	CHECK(!conf_set(&c, CONF_INTERFACE, "", &seen, why));
	for (i = 0; i < CONF_IFACES + 1; i++) {
		char name[8];

		snprintf(name, sizeof(name), "e%u", i);
		CHECK_EQ(conf_set(&c, CONF_INTERFACE, name, &seen, why), i < CONF_IFACES);
	}
	setenv("PAQM_SOCKET", "", 1);
	setenv("PAQM_CONTROL", "/x", 1);
	conf_default(&c);
	CHECK(!strcmp(c.socket, PAQM_IPC_PATH) && !strcmp(c.control, "/x"));

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/conf", dir);
	mistakes = 0;
	CHECK_EQ(conf_load(&c, path, false, note, NULL), 0);
	CHECK_EQ(conf_load(&c, path, true, note, NULL), 1);
	CHECK(strstr(mistake, "No such file"));
	CHECK_EQ(conf_load(&c, dir, false, note, NULL), 1);
	CHECK(strstr(mistake, "directory"));
	f = fopen(path, "w");
	CHECK(f && fputs("use ecf # relative\n\nverbose yes", f) > 0 && !fclose(f));
	CHECK_EQ(conf_load(&c, path, true, note, NULL), 0);
	CHECK(c.use == ALLOW_USE_ECF && c.verbose);
	CHECK(!truncate(path, CONF_FILE_MAX + 1));
	CHECK_EQ(conf_load(&c, path, true, note, NULL), 1);
	CHECK(strstr(mistake, "64 KiB"));
	unlink(path);
	rmdir(dir);
}
