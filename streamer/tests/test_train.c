// SPDX-License-Identifier: GPL-2.0
/* The train before the first picture: numbers, contents, and that it ends once, either way. */
#include <gst/gst.h>

#include "core/tests/check.h"
#include "streamer/rtp/train.h"

static GSocket *bound(void)
{
	GInetAddress *lo = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
	GSocketAddress *any = g_inet_socket_address_new(lo, 0);
	GSocket *s = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM,
				  G_SOCKET_PROTOCOL_UDP, NULL);

	if (!s || !g_socket_bind(s, any, FALSE, NULL))
		g_error("no socket");
	g_object_unref(any);
	g_object_unref(lo);
	return s;
}

struct end {
	GMainLoop *loop;
	int calls;
	gboolean told;
};

static void on_over(double ms, gboolean told, gpointer data)
{
	struct end *e = data;

	check(ms >= 0, "time", (long)ms);
	e->calls++;
	e->told = told;
	g_main_loop_quit(e->loop);
}

static void train(gboolean answer)
{
	GSocket *from = bound(), *to = bound();
	struct end e = {.loop = g_main_loop_new(NULL, FALSE)};
	struct train_params p = {
		.socket = from,
		.to = g_socket_get_local_address(to, NULL),
		.ssrc = 0x01020304,
		.first = 3, /* wraps on the way */
		.ts = 0xfffffffe,
	};
	struct train *t = train_start(&p, on_over, &e);
	guint8 packet[2048];
	guint32 last = p.ts;
	gssize len;

	if (answer)
		train_told(t);
	else
		g_main_loop_run(e.loop);
	check(e.calls == 1 && e.told == answer, "its end", e.calls);
	train_told(t);
	check(e.calls == 1, "ends once", e.calls);
	g_socket_set_timeout(to, 10);
	for (guint k = 0; k < TRAIN_PACKETS; k++) {
		len = g_socket_receive(to, (char *)packet, sizeof(packet), NULL, NULL);
		check(len == TRAIN_BYTES && train_is(packet, (gsize)len), "length", len);
		check(GST_READ_UINT16_BE(packet + 2) == (guint16)(3 - TRAIN_PACKETS + k),
		      "numbers lead to the first packet", GST_READ_UINT16_BE(packet + 2));
		check((gint32)(GST_READ_UINT32_BE(packet + 4) - last) >= 0, "time stamps", k);
		last = GST_READ_UINT32_BE(packet + 4);
		check(GST_READ_UINT32_BE(packet + 8) == p.ssrc, "source", k);
		check(packet[12] == TRAIN_NAL && packet[13] == 0xff &&
			      packet[TRAIN_BYTES - 1] == 0x80,
		      "filler data", k);
	}
	g_socket_set_blocking(to, FALSE);
	len = g_socket_receive(to, (char *)packet, sizeof(packet), NULL, NULL);
	check(len < 0, "no more", len);
	train_free(t);
	g_object_unref(p.to);
	g_object_unref(from);
	g_object_unref(to);
	g_main_loop_unref(e.loop);
}

TEST(test_ends)
{
	train(TRUE);
	train(FALSE);
}

TEST(test_is)
{
	guint8 other[TRAIN_BYTES] = {0x80, 96, [12] = 5};

	check(!train_is(other, sizeof(other)), "a picture's packet is none", 0);
	other[12] = TRAIN_NAL;
	check(train_is(other, sizeof(other)), "this one is", 0);
	check(!train_is(other, TRAIN_BYTES - 1), "nor is a shorter one", 0);
}

CHECK_MAIN
