// SPDX-License-Identifier: GPL-2.0
/*
 * GLib hands control messages to whatever class knows their type, and udpsrc reads them, though it
 * keeps only its own. So a class of ours sees the ECN field in the thread that is about to push the
 * packet, and leaves it there for a probe.
 */
#include "streamer/rtp/ecn.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>

#define ECN_MASK 3

static _Thread_local enum ecn taken;

typedef struct {
	GSocketControlMessage parent;
} PaqmTosMessage;

typedef struct {
	GSocketControlMessageClass parent;
} PaqmTosMessageClass;

GType paqm_tos_message_get_type(void);
G_DEFINE_TYPE(PaqmTosMessage, paqm_tos_message, G_TYPE_SOCKET_CONTROL_MESSAGE)

/* Nobody wants the message itself: none is made. */
static GSocketControlMessage *tos_deserialize(int level, int type, gsize size, gpointer data)
{
	int wide;

	if (level == IPPROTO_IP && type == IP_TOS && size >= 1) {
		taken = (enum ecn)(*(const guint8 *)data & ECN_MASK);
	} else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS && size >= sizeof(wide)) {
		memcpy(&wide, data, sizeof(wide));
		taken = (enum ecn)(wide & ECN_MASK);
	}
	return NULL;
}

static void paqm_tos_message_class_init(PaqmTosMessageClass *class)
{
	class->parent.deserialize = tos_deserialize;
}

static void paqm_tos_message_init(PaqmTosMessage *message)
{
	(void)message;
}

gboolean ecn_parse(const char *text, enum ecn *ecn)
{
	static const struct {
		const char *name;
		enum ecn ecn;
	} names[] = {{"off", ECN_NOT_ECT}, {"ect0", ECN_ECT0}, {"ect1", ECN_ECT1}};

	for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
		if (strcmp(text, names[i].name))
			continue;
		*ecn = names[i].ecn;
		return TRUE;
	}
	return FALSE;
}

static gboolean set_field(GSocket *socket, int level, int option, int mask, int bits,
			  GError **error)
{
	int value = 0;

	return g_socket_get_option(socket, level, option, &value, error) &&
	       g_socket_set_option(socket, level, option, (value & ~mask) | bits, error);
}

/* IPv4 of a socket of IPv6 has a field of its own. */
static gboolean set_fields(GSocket *socket, int mask, int bits, GError **error)
{
	return set_field(socket, IPPROTO_IP, IP_TOS, mask, bits, error) &&
	       (g_socket_get_family(socket) != G_SOCKET_FAMILY_IPV6 ||
		set_field(socket, IPPROTO_IPV6, IPV6_TCLASS, mask, bits, error));
}

gboolean ecn_send_as(GSocket *socket, enum ecn ecn, GError **error)
{
	return set_fields(socket, ECN_MASK, (int)ecn, error);
}

gboolean dscp_send_as(GSocket *socket, guint dscp, GError **error)
{
	return set_fields(socket, 0xff & ~ECN_MASK, (int)dscp << 2, error);
}

void ecn_watch(GstElement *udpsrc, GSocket *socket)
{
	g_type_ensure(paqm_tos_message_get_type());
	g_socket_set_option(socket, IPPROTO_IP, IP_RECVTOS, 1, NULL);
	if (g_socket_get_family(socket) == G_SOCKET_FAMILY_IPV6)
		g_socket_set_option(socket, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, NULL);
	/* It reads control messages if it expects time stamps, which it asks the socket for when it
	 * opens it: told later, it gets none. Its own clock stamps better.
	 */
	gst_element_set_state(udpsrc, GST_STATE_READY);
	gst_util_set_object_arg(G_OBJECT(udpsrc), "socket-timestamp", "realtime");
}

enum ecn ecn_taken(void)
{
	enum ecn ecn = taken;

	taken = ECN_NOT_ECT;
	return ecn;
}
