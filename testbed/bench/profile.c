// SPDX-License-Identifier: GPL-2.0
/*
 * QEMU plugin: how often was each translated block of guest code executed?
 *
 * At the end it writes one line per block to the file of its argument `out`:
 * executions, then the address of every instruction. Which functions these belong
 * to is found out from the guest's symbols (paqm_lab/bench_profile.py).
 *
 * The declarations are those of QEMU's plugin interface, version 1 and later; few
 * systems package its header.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };
typedef void (*tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*atexit_cb)(qemu_plugin_id_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_cb cb);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *ptr,
					      uint64_t imm);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, atexit_cb cb, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* A block may be translated anew: its executions are then counted by a new entry. */
struct block {
	struct block *next;
	uint64_t executed;
	size_t instructions;
	uint64_t address[];
};

static struct block *blocks;
static FILE *out;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *b = calloc(1, sizeof(*b) + n * sizeof(b->address[0]));

	(void)id;
	if (!b)
		abort();
	b->instructions = n;
	for (size_t i = 0; i < n; i++)
		b->address[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
	b->next = blocks;
	blocks = b;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &b->executed, 1);
}

static void finished(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	for (const struct block *b = blocks; b; b = b->next) {
		if (!b->executed)
			continue;
		fprintf(out, "%" PRIu64, b->executed);
		for (size_t i = 0; i < b->instructions; i++)
			fprintf(out, " %" PRIx64, b->address[i]);
		fputc('\n', out);
	}
	fclose(out);
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "profile: one argument is needed: out=FILE\n");
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror("profile: out");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finished, NULL);
	return 0;
}
