// SPDX-License-Identifier: GPL-2.0
/*
 * paqmtop's rows: devices come, go, and are more than the table holds. The programs run without
 * the module: as programs of type syscall, which take any record. Needs root; skipped otherwise.
 */
#define main paqmtop_main
#include "userspace/paqmtop/paqmtop.c"
#undef main

#define SKIPPED 77

static int failed;

static void check(const char *what, bool holds)
{
	printf("%s %s\n", holds ? "ok" : "not ok", what);
	failed += !holds;
}

static void law(struct paqmtop_bpf *skel, const char *name)
{
	struct paqmtop_law record = {.capacity = 1000000};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &record, .ctx_size_in = sizeof(record));

	snprintf(record.dev, sizeof(record.dev), "%s", name);
	if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.on_law), &opts))
		die("cannot run a program: %s", strerror(errno));
}

/* The row of the device was last heard of two minutes ago. */
static void silence(int map, const char *name)
{
	char key[PAQMTOP_NAME] = "";
	struct paqmtop_device dev;

	snprintf(key, sizeof(key), "%s", name);
	if (bpf_map_lookup_elem(map, key, &dev))
		die("no row of %s", name);
	dev.heard_ns = now_ns() - 2 * SILENT_NS;
	bpf_map_update_elem(map, key, &dev, BPF_EXIST);
}

/* A report. */
static size_t report(int map, struct row *rows, char **names)
{
	static __u64 since;
	__u64 now = now_ns();
	size_t n = collect(map, rows, names, since);

	since = now;
	return n;
}

static bool shown(const struct row *rows, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name))
			return true;
	return false;
}

int main(void)
{
	static struct row rows[PAQMTOP_DEVICES];
	char *all[] = {NULL}, *one[] = {"ppp9", NULL}, name[PAQMTOP_NAME];
	struct paqmtop_bpf *skel = paqmtop_bpf__open();
	struct bpf_program *prog;
	size_t n;
	int map;

	if (!skel)
		die("cannot open the programs");
	bpf_object__for_each_program(prog, skel->obj)
	{
		bpf_program__set_type(prog, BPF_PROG_TYPE_SYSCALL);
		bpf_program__set_flags(prog, BPF_F_SLEEPABLE);
	}
	libbpf_set_print(quiet);
	if (paqmtop_bpf__load(skel)) {
		printf("skipped: the kernel refuses the programs, %s\n", strerror(errno));
		return SKIPPED;
	}
	map = bpf_map__fd(skel->maps.devices);
	law(skel, "ppp7");
	silence(map, "ppp7");
	n = report(map, rows, all);
	check("what has gone before the first report is in it", n == 1);
	law(skel, "lo");
	law(skel, "ppp8");
	law(skel, "ppp9");
	n = report(map, rows, all);
	check("all devices are shown", n == 3 && shown(rows, n, "ppp9"));
	silence(map, "lo");
	silence(map, "ppp9");
	n = report(map, rows, one);
	check("a device that has gone is not shown", n == 0);
	n = report(map, rows, all);
	check("one that is silent but here is, and one just heard of",
	      n == 2 && shown(rows, n, "lo") && shown(rows, n, "ppp8"));
	for (int i = 0; i < 10 * PAQMTOP_DEVICES; i++) {
		snprintf(name, sizeof(name), "veth%d", i);
		law(skel, name);
		if (i % 200 == 199)
			n = report(map, rows, all);
	}
	law(skel, "new");
	n = report(map, rows, all);
	check("nothing is lost of thousands of devices", !skel->bss->lost);
	check("the newest are shown", shown(rows, n, "new") && shown(rows, n, name));
	check("the oldest are not", !shown(rows, n, "ppp8") && !shown(rows, n, "veth0"));
	for (int i = 0; i < 6 * PAQMTOP_DEVICES; i++) {
		snprintf(name, sizeof(name), "eth%d", i % PAQMTOP_DEVICES);
		law(skel, name);
		if (i % PAQMTOP_DEVICES == PAQMTOP_DEVICES - 1)
			n = report(map, rows, all);
	}
	check("as many as the table holds stay while they are at work", n == PAQMTOP_DEVICES);
	for (int i = 0; i < 2 * PAQMTOP_DEVICES; i++) {
		snprintf(name, sizeof(name), "tap%d", i);
		law(skel, name);
	}
	check("what finds no row is counted", skel->bss->lost > 0);
	paqmtop_bpf__destroy(skel);
	return failed > 0;
}
