// SPDX-License-Identifier: GPL-2.0
/* Devices by name; see choose.h. */
#include "streamer/call/choose.h"

#include <stdio.h>
#include <string.h>

#include "streamer/call/offer.h"
#include "streamer/options.h"

#define NAME 128 /* bytes of a name that are shown */

static const struct {
	const char *what, *class, *word; /* @word: in an option of `call` */
} kinds[CHOOSE_KINDS] = {
	[CHOOSE_CAMERA] = {"camera", "Video/Source", "--source camera"},
	[CHOOSE_MICROPHONE] = {"microphone", "Audio/Source", "--audio mic"},
	[CHOOSE_SPEAKER] = {"loudspeaker", "Audio/Sink", "--audio-sink auto"},
};

const char *choose_name(const char *option, const char *word)
{
	gsize len = strlen(word);

	return !strncmp(option, word, len) && option[len] == ':' ? option + len + 1 : NULL;
}

gboolean choose_is(const char *option, const char *word)
{
	return !strcmp(option, word) || choose_name(option, word);
}

/* Those that are there now; free with g_list_free_full(..., gst_object_unref). */
static GList *devices_of(enum choose_kind kind)
{
	GstDeviceMonitor *monitor = gst_device_monitor_new();
	GList *devices = NULL;

	gst_device_monitor_add_filter(monitor, kinds[kind].class, NULL);
	if (gst_device_monitor_start(monitor)) {
		devices = gst_device_monitor_get_devices(monitor);
		gst_device_monitor_stop(monitor);
	}
	gst_object_unref(monitor);
	return devices;
}

/* Devices bring their names along: what would move the cursor does not reach a terminal. */
static void printable_name(GstDevice *device, char *name)
{
	char *told = gst_device_get_display_name(device);

	offer_printable(name, NAME, told && *told ? told : "?");
	g_free(told);
}

/* "1: NAME" each in a line. */
static char *list(GList *devices, const char *indent)
{
	GString *text = g_string_new(NULL);
	char name[NAME];
	guint n = 0;

	for (GList *l = devices; l; l = l->next) {
		printable_name(l->data, name);
		g_string_append_printf(text, "\n%s%u: %s", indent, ++n, name);
	}
	return g_string_free(text, FALSE);
}

/* The one of that name, or else the only one that has it as a part, or else of that number. */
static GstDevice *find(GList *devices, const char *wanted)
{
	char *lower = g_utf8_strdown(wanted, -1), *end;
	GstDevice *part = NULL;
	guint parts = 0;
	guint64 number;
	char name[NAME];

	for (GList *l = devices; l; l = l->next) {
		char *other;

		printable_name(l->data, name);
		if (!strcmp(name, wanted)) {
			g_free(lower);
			return l->data;
		}
		other = g_utf8_strdown(name, -1);
		if (*lower && strstr(other, lower)) {
			part = l->data;
			parts++;
		}
		g_free(other);
	}
	g_free(lower);
	if (parts == 1)
		return part;
	number = g_ascii_strtoull(wanted, &end, 10);
	if (!g_ascii_isdigit(*wanted) || *end || !number || number > g_list_length(devices))
		return NULL;
	return g_list_nth_data(devices, (guint)number - 1);
}

/* What sets it apart from an element of its kind that nobody has told anything. */
static char *describe(GstElement *element)
{
	GstElementFactory *factory = gst_element_get_factory(element);
	GstElement *plain = gst_element_factory_create(factory, NULL);
	GString *text = g_string_new(GST_OBJECT_NAME(factory));
	GParamSpec **specs;
	guint count;

	specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
	for (guint i = 0; i < count; i++) {
		char *mine, *usual, *escaped;

		if (specs[i]->value_type != G_TYPE_STRING || !strcmp(specs[i]->name, "name") ||
		    (specs[i]->flags & G_PARAM_READWRITE) != G_PARAM_READWRITE)
			continue;
		g_object_get(element, specs[i]->name, &mine, NULL);
		g_object_get(plain, specs[i]->name, &usual, NULL);
		if (mine && g_strcmp0(mine, usual)) {
			/* quotes and backslashes only: gst-launch knows no more */
			char **pieces = g_strsplit(mine, "\\", -1);
			char *slashes = g_strjoinv("\\\\", pieces);

			g_strfreev(pieces);
			pieces = g_strsplit(slashes, "\"", -1);
			escaped = g_strjoinv("\\\"", pieces);
			g_strfreev(pieces);
			g_string_append_printf(text, " %s=\"%s\"", specs[i]->name, escaped);
			g_free(escaped);
			g_free(slashes);
		}
		g_free(mine);
		g_free(usual);
	}
	g_free(specs);
	gst_object_unref(plain);
	return g_string_free(text, FALSE);
}

char *choose_elements(enum choose_kind kind, const char *name, GError **error)
{
	GList *devices = devices_of(kind);
	GstDevice *device = NULL;
	GstElement *element;
	char *text = NULL, *all;

	if (g_utf8_validate(name, -1, NULL))
		device = find(devices, name);
	element = device ? gst_device_create_element(device, NULL) : NULL;
	if (element) {
		gst_object_ref_sink(element);
		text = describe(element);
		gst_object_unref(element);
	} else {
		all = list(devices, "  ");
		g_set_error(error, USAGE_ERROR, 0, "%s:%s: no single %s has that name%s%s",
			    kinds[kind].word, name, kinds[kind].what,
			    devices ? "; there are:" : "; there is none at all", all);
		g_free(all);
	}
	g_list_free_full(devices, gst_object_unref);
	return text;
}

int cmd_devices(int argc, char **argv)
{
	static const GOptionEntry entries[] = {{0}};
	GError *error = NULL;

	g_set_prgname("paqm-streamer devices");
	if (!parse_options(NULL, "Cameras, microphones and loudspeakers that a call can use.",
			   entries, &argc, &argv, &error))
		return report_error(error);
	gst_init(NULL, NULL);
	for (int kind = 0; kind < CHOOSE_KINDS; kind++) {
		GList *devices = devices_of(kind);
		char *all = list(devices, "  ");

		printf("%ss, call %s:NAME%s\n", kinds[kind].what, kinds[kind].word,
		       devices ? all : "\n  none");
		g_free(all);
		g_list_free_full(devices, gst_object_unref);
	}
	return 0;
}
