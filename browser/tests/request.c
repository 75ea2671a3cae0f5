// SPDX-License-Identifier: GPL-2.0
/* Unit tests of what paqm-native-host takes and refuses, and why. */
#include <stdio.h>
#include <string.h>

#include "browser/host/own.h"
#include "browser/host/request.h"
#include "feedback-daemon/tests/shown.h"

static int failed;

static void expect(int ok, const char *what)
{
	printf("%s: %s\n", ok ? "ok" : "not ok", what);
	failed |= !ok;
}

/* @reason: NULL: it is taken */
static void check(const char *text, const char *reason)
{
	struct native_request r;
	struct native_refusal no = {.reason = NULL};
	int status = native_request_parse(text, strlen(text), &r, &no);

	if (reason)
		expect(status == -1 && !strcmp(no.reason, reason) && *no.text, text);
	else
		expect(status == 0, text);
}

#define TO "\"destination\":\"10.0.0.2\",\"destination_port\":6"

static void requests(void)
{
	static const char first[] =
		"{\"op\":\"add\",\"flow\":7,\"source\":\"10.0.0.1\",\"source_port\":5," TO
		",\"ssrc\":4294967295}";
	struct native_refusal no;
	struct native_request r;

	expect(!native_request_parse(first, strlen(first), &r, &no) && r.op == NATIVE_ADD &&
		       r.flow == 7 && !strcmp(r.source, "10.0.0.1") && r.source_port == 5 &&
		       !strcmp(r.destination, "10.0.0.2") && r.destination_port == 6 &&
		       r.ssrc == 0xFFFFFFFF,
	       "every member is taken");
	check("{\"op\":\"add\",\"flow\":1,\"source_port\":5," TO "}", NULL);
	check("{\"op\":\"add\",\"flow\":1,\"later\":[1],\"source_port\":5," TO "}", NULL);
	check("{\"op\":\"remove\",\"flow\":2147483647}", NULL);
	check("{\"op\":\"sent\",\"flow\":1,\"bps\":0}", NULL);
	check("", "json");
	check("{\"op\":\"remove\",\"flow\":1} x", "json");
	check("{\"op\":\"remove\",\"op\":\"add\",\"flow\":1}", "json");
	check("[1]", "json");
	check("{\"op\":\"remove\",\"flow\":0}", "flow");
	check("{\"op\":\"remove\",\"flow\":2147483648}", "flow");
	check("{\"op\":\"remove\",\"flow\":1.5}", "flow");
	check("{\"op\":\"remove\"}", "flow");
	check("{\"op\":\"grow\",\"flow\":1}", "op");
	check("{\"op\":7,\"flow\":1}", "op");
	check("{\"op\":\"sent\",\"flow\":1}", "bps");
	check("{\"op\":\"sent\",\"flow\":1,\"bps\":1000000000001}", "bps");
	check("{\"op\":\"add\",\"flow\":1," TO "}", "source_port");
	check("{\"op\":\"add\",\"flow\":1,\"source_port\":65536," TO "}", "source_port");
	check("{\"op\":\"add\",\"flow\":1,\"source\":\"x.local\",\"source_port\":5," TO "}",
	      "source");
	check("{\"op\":\"add\",\"flow\":1,\"source\":\"0.0.0.0\",\"source_port\":5," TO "}",
	      "source");
	check("{\"op\":\"add\",\"flow\":1,\"source_port\":5,\"destination\":\"239.1.1.1\","
	      "\"destination_port\":6}",
	      "destination");
	check("{\"op\":\"add\",\"flow\":1,\"source_port\":5,\"destination\":\"ff02::1\","
	      "\"destination_port\":6}",
	      "destination");
	check("{\"op\":\"add\",\"flow\":1,\"source_port\":5,\"destination\":\"::ffff:224.0.0.1\","
	      "\"destination_port\":6}",
	      "destination");
	check("{\"op\":\"add\",\"flow\":1,\"source_port\":5,\"destination\":\"10.0.0.2\"}",
	      "destination_port");
	check("{\"op\":\"add\",\"flow\":1,\"source_port\":5," TO ",\"ssrc\":4294967296}", "ssrc");
}

#define SHOWN_LOOPBACK SHOWN("0100007F", "7F000001")
#define SHOWN_2001_DB8 SHOWN("B80D0120", "20010DB8")
#define SHOWN_LAST_1 SHOWN("01000000", "00000001")

static void lines(void)
{
	static const char v4[] =
		"  421: " SHOWN_LOOPBACK ":138C 00000000:0000 07 00000000:00000000 00:00000000 "
		"00000000  1000        0 12345 2 0000000000000000 0\n";
	static const char v6[] = " 77: 00000000000000000000000000000000:138C "
				 "00000000000000000000000000000000:0000 07 00000000:00000000 "
				 "00:00000000 00000000  1000        0 12345 2 0000000000000000 0\n";

	static const char open4[] =
		"  421: 00000000:138C 00000000:0000 07 00000000:00000000 00:00000000 "
		"00000000  1000        0 12345 2 0000000000000000 0\n";
	static const char one6[] =
		" 77: " SHOWN_2001_DB8 "0000000000000000" SHOWN_LAST_1 ":138C "
		"00000000000000000000000000000000:0000 07 00000000:00000000 "
		"00:00000000 00000000  1000        0 12345 2 0000000000000000 0\n";
	static const char mapped[] =
		" 77: 0000000000000000" SHOWN_MAPPED SHOWN_LOOPBACK ":138C "
		"00000000000000000000000000000000:0000 07 00000000:00000000 "
		"00:00000000 00000000  1000        0 12345 2 0000000000000000 0\n";

	expect(own_line(v4, "", 5004, 1000) && own_line(v6, "", 5004, 1000),
	       "a socket of that user");
	expect(!own_line(v4, "", 5005, 1000) && !own_line(v6, "", 5005, 1000), "another port");
	expect(!own_line(v4, "", 5004, 1001) && !own_line(v6, "", 5004, 0),
	       "another user's socket");
	expect(own_line(v4, "127.0.0.1", 5004, 1000) && own_line(mapped, "127.0.0.1", 5004, 1000) &&
		       own_line(one6, "2001:db8::1", 5004, 1000),
	       "its address");
	expect(!own_line(v4, "10.0.0.1", 5004, 1000) && !own_line(mapped, "10.0.0.1", 5004, 1000) &&
		       !own_line(one6, "2001:db8::2", 5004, 1000) &&
		       !own_line(one6, "10.0.0.1", 5004, 1000) &&
		       !own_line(v4, "2001:db8::1", 5004, 1000),
	       "another address");
	expect(own_line(open4, "10.0.0.1", 5004, 1000) && own_line(v6, "10.0.0.1", 5004, 1000) &&
		       own_line(v6, "2001:db8::1", 5004, 1000),
	       "an open one");
	expect(!own_line(open4, "2001:db8::1", 5004, 1000), "an open one of IPv4 only");
	expect(!own_line("  sl  local_address rem_address   st tx_queue", "", 0, 0),
	       "the head line");
	expect(!own_line("", "", 0, 0), "no line");
}

int main(void)
{
	requests();
	lines();
	return failed;
}
