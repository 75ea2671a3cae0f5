// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers with units as tc writes them, and tc's JSON writer behind five short names.
 */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>

#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"

_Static_assert(TEXT_SIZE >= INET6_ADDRSTRLEN, "no room for an address");

const char *show_rate(__u64 bps, int digits, char *buf)
{
	static const char *const units[] = {"bit", "Kbit", "Mbit", "Gbit", "Tbit"};
	double value = bps;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(units) - 1 && value >= 1000; i++)
		value /= 1000;
	snprintf(buf, TEXT_SIZE, "%.*g%s", digits, value, units[i]);
	return buf;
}

const char *show_time(__u64 ns, int digits, char *buf)
{
	if (ns >= 1000000000)
		snprintf(buf, TEXT_SIZE, "%.*gs", digits, ns / 1e9);
	else if (ns >= 1000000)
		snprintf(buf, TEXT_SIZE, "%.*gms", digits, ns / 1e6);
	else
		snprintf(buf, TEXT_SIZE, "%.*gus", digits, ns / 1e3);
	return buf;
}

const char *measured_rate(__u64 bps, char *buf)
{
	return show_rate(bps, 4, buf);
}

const char *measured_time(__u64 ns, char *buf)
{
	return show_time(ns, 4, buf);
}

const char *show_address(__u8 family, const __u8 *addr, char *buf)
{
	if (!inet_ntop(family == 4 ? AF_INET : AF_INET6, addr, buf, TEXT_SIZE))
		snprintf(buf, TEXT_SIZE, "?");
	return buf;
}

void json_u64(const char *key, __u64 value)
{
	print_color_u64(PRINT_JSON, COLOR_IFNAME, key, NULL, value);
}

void json_s64(const char *key, __s64 value)
{
	print_color_s64(PRINT_JSON, COLOR_IFNAME, key, NULL, value);
}

void json_string(const char *key, const char *value)
{
	print_color_string(PRINT_JSON, COLOR_IFNAME, key, NULL, value);
}

void json_bool(const char *key, bool value)
{
	print_color_bool(PRINT_JSON, COLOR_IFNAME, key, NULL, value);
}

/* JSON has no infinity. */
void json_float(const char *key, double value)
{
	if (isfinite(value))
		print_color_float(PRINT_JSON, COLOR_IFNAME, key, NULL, value);
	else
		print_color_null(PRINT_JSON, COLOR_IFNAME, key, NULL, NULL);
}
