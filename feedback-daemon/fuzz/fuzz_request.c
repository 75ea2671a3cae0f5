// SPDX-License-Identifier: GPL-2.0
/* Fuzz target: control requests, against an engine with a flow and a router. */
#include <stdlib.h>

#include "feedback-daemon/sockets/request.h"
#include "feedback-daemon/tests/packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct engine eng;

static void fill(void)
{
	static const uint8_t key[PAQM_SIPHASH_KEY] = {1};
	struct paqm_msg m = {.router_id = 1, .seq = 1, .flags = 0xFF};
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC);
	uint8_t media[T_MEDIA], ip[256];
	struct verdict v;
	struct flow *f;

	m.ecf = t_f32(0.5);
	m.rate = 500000;
	engine_init(&eng, &engine_defaults, key);
	if (engine_register(&eng, 1, 0, &reg, &f))
		abort();
	engine_media(&eng, media, t_media(media, T_SPORT, T_SSRC, 1), 1);
	engine_message(&eng, ip, t_message(ip, media, &m), 2, &v);
	if (v.refuse)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request_env env = {.now_ns = 3, .ifaces = 1, .iface[0].name = "\xFF"};
	enum request_act act;
	json_t *o;
	char *text;

	if (!eng.serial)
		fill();
	o = request_answer(&eng, &env, (const char *)data, size, &act);
	if (!o || !json_is_boolean(json_object_get(o, "ok")))
		abort();
	text = json_dumps(o, JSON_COMPACT);
	if (!text)
		abort(); /* an answer must always be printable */
	free(text);
	json_decref(o);
	return 0;
}
