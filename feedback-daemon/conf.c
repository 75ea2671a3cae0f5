// SPDX-License-Identifier: GPL-2.0
/* Settings of paqmd; see conf.h. */
#include "feedback-daemon/conf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feedback-daemon/host/sandbox.h"
#include "feedback-daemon/sockets/ctl.h"

#define LINE_MAX_LEN 512

static const char *const names[CONF_KEYS_MAX] = {
#define X(name, text, arg) [CONF_##name] = text,
	CONF_KEYS(X)
#undef X
};

const char *conf_name(enum conf_key key)
{
	return names[key];
}

bool conf_is_flag(enum conf_key key)
{
	return key == CONF_REQUIRE_AUTH || key == CONF_LEGACY || key == CONF_SANDBOX ||
	       key == CONF_VERBOSE;
}

static void take_env(char to[CONF_PATH_LEN], const char *name, const char *otherwise)
{
	const char *v = getenv(name);

	/* One that is too long is cut, and refused when it is opened. */
	snprintf(to, CONF_PATH_LEN, "%s", v && *v ? v : otherwise);
}

void conf_default(struct conf *c)
{
	*c = (struct conf){.ifaces = 1, .use = ALLOW_USE_ERF, .sandbox = true};
	strcpy(c->iface[0], "any");
	strcpy(c->user, SANDBOX_USER);
	take_env(c->socket, "PAQM_SOCKET", PAQM_IPC_PATH);
	take_env(c->control, "PAQM_CONTROL", CTL_PATH);
}

/* The setters return NULL or what the value must be. */

static const char *set_interface(struct conf *c, const char *v, bool first)
{
	size_t i, n = strlen(v);

	if (n == 0 || n >= CONF_IFACE_LEN)
		return "a name of 1 to 15 bytes; see 'ip link', or any";
	/* The kernel looks eth0:1 up as eth0, and calls no device so. */
	for (i = 0; i < n; i++)
		if (v[i] == '/' || v[i] == ':' || isspace((unsigned char)v[i]))
			return "the name of an interface, or any; see 'ip link'";
	if (first)
		c->ifaces = 0;
	for (i = 0; i < c->ifaces; i++)
		if (!strcmp(c->iface[i], v))
			return "named only once";
	if (c->ifaces == CONF_IFACES)
		return "one of at most 8; or use any";
	strcpy(c->iface[c->ifaces++], v);
	return NULL;
}

static const char *set_path(char to[CONF_PATH_LEN], const char *v)
{
	size_t n = strlen(v);

	if (v[0] != '/' || v[n - 1] == '/' || n >= CONF_PATH_LEN)
		return "the absolute path of a file, of at most 107 bytes";
	strcpy(to, v);
	return NULL;
}

static const char *set_name(char to[CONF_NAME_LEN], const char *v)
{
	if (!*v || strlen(v) >= CONF_NAME_LEN)
		return "a name of 1 to 32 bytes";
	strcpy(to, v);
	return NULL;
}

static const char *set_bool(bool *to, const char *v)
{
	if (strcmp(v, "yes") && strcmp(v, "no"))
		return "yes or no";
	*to = !strcmp(v, "yes");
	return NULL;
}

static const char *set_use(struct conf *c, const char *v)
{
	for (int use = 0; use < ALLOW_USES; use++)
		if (!strcmp(v, allow_uses[use])) {
			c->use = use;
			return NULL;
		}
	return "erf, ecf, thesis-erf or thesis-ecf";
}

bool conf_set(struct conf *c, enum conf_key key, const char *value, uint32_t *seen,
	      char why[CONF_WHY])
{
	bool first = !(*seen & 1U << key);
	const char *must = NULL;

	switch (key) {
	case CONF_INTERFACE:
		must = set_interface(c, value, first);
		break;
	case CONF_SOCKET:
		must = set_path(c->socket, value);
		break;
	case CONF_CONTROL:
		must = set_path(c->control, value);
		break;
	case CONF_USER:
		must = set_name(c->user, value);
		break;
	case CONF_GROUP:
		must = set_name(c->group, value);
		break;
	case CONF_KEYS:
		must = set_path(c->keys, value);
		break;
	case CONF_REQUIRE_AUTH:
		must = set_bool(&c->require_auth, value);
		break;
	case CONF_USE:
		must = set_use(c, value);
		break;
	case CONF_LEGACY:
		must = set_bool(&c->legacy, value);
		break;
	case CONF_SANDBOX:
		must = set_bool(&c->sandbox, value);
		break;
	case CONF_VERBOSE:
		must = set_bool(&c->verbose, value);
		break;
	case CONF_KEYS_MAX:
		break;
	}
	if (!must && !first && key != CONF_INTERFACE)
		must = "given only once";
	if (must) {
		snprintf(why, CONF_WHY, "%s %.100s: must be %s", names[key], value, must);
		return false;
	}
	*seen |= 1U << key;
	return true;
}

/* One line without its end. Return: false with @why if it is wrong. */
static bool take_line(struct conf *c, char *line, uint32_t *seen, char why[CONF_WHY])
{
	static const char blank[] = " \t";
	char *key, *value, *rest;
	int i;

	for (rest = line; *rest; rest++)
		if (*rest == '#' && (rest == line || strchr(blank, rest[-1])))
			*rest-- = 0;
	key = strtok_r(line, blank, &rest);
	if (!key)
		return true;
	value = strtok_r(NULL, blank, &rest);
	for (i = 0; i < CONF_KEYS_MAX && strcmp(names[i], key); i++)
		;
	if (i == CONF_KEYS_MAX)
		snprintf(why, CONF_WHY, "unknown setting '%.100s'; see paqmd.conf(5)", key);
	else if (!value)
		snprintf(why, CONF_WHY, "%s: has no value; see paqmd.conf(5)", key);
	else if (strtok_r(NULL, blank, &rest))
		snprintf(why, CONF_WHY, "%s: has more than one value; give one line to each", key);
	else
		return conf_set(c, (enum conf_key)i, value, seen, why);
	return false;
}

unsigned int conf_parse(struct conf *c, const char *text, size_t len, conf_report report,
			void *data)
{
	unsigned int number, wrong = 0;
	uint32_t seen = 0;
	const char *end;
	size_t n, i;

	for (number = 1; len; number++) {
		char line[LINE_MAX_LEN + 1], why[CONF_WHY] = "";

		end = memchr(text, '\n', len);
		n = end ? (size_t)(end - text) : len;
		for (i = 0; i < n && i < LINE_MAX_LEN; i++) {
			line[i] = text[i];
			if (line[i] == '\r' && i + 1 == n)
				strcpy(why, "ends with a carriage return: save it with Unix "
					    "line ends");
			else if ((unsigned char)line[i] < ' ' && line[i] != '\t')
				snprintf(why, CONF_WHY,
					 "byte %zu is a control character: remove it", i + 1);
		}
		line[i] = 0;
		if (number == 1 && n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
			strcpy(why, "begins with a byte order mark: save it as UTF-8 without one");
		if (n > LINE_MAX_LEN)
			snprintf(why, CONF_WHY, "longer than %d bytes", LINE_MAX_LEN);
		if (*why || !take_line(c, line, &seen, why)) {
			report(data, number, why);
			wrong++;
		}
		n += end != NULL;
		text += n;
		len -= n;
	}
	return wrong;
}

unsigned int conf_load(struct conf *c, const char *path, bool must, conf_report report, void *data)
{
	char *text, why[CONF_WHY];
	size_t len = 0;
	ssize_t n = 0;
	unsigned int wrong;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == ENOENT && !must)
		return 0;
	text = malloc(CONF_FILE_MAX + 1);
	if (fd >= 0 && text)
		while (len <= CONF_FILE_MAX &&
		       (n = read(fd, text + len, CONF_FILE_MAX + 1 - len)) > 0)
			len += (size_t)n;
	if (fd < 0 || !text || n < 0) {
		if (errno == EACCES) /* after privileges were given up */
			snprintf(why, sizeof(why), "must be readable by uid %u", geteuid());
		else
			snprintf(why, sizeof(why), "cannot read it: %s", strerror(errno));
		report(data, 0, why);
		wrong = 1;
	} else if (len > CONF_FILE_MAX) {
		report(data, 0, "is larger than 64 KiB");
		wrong = 1;
	} else {
		wrong = conf_parse(c, text, len, report, data);
	}
	free(text);
	if (fd >= 0)
		close(fd);
	return wrong;
}
