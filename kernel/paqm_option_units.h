/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tables of options have in common (paqm_option_table.h, dcbt_option_table.h). A table has
 * every option of a qdisc, once: the module makes its configuration, defaults, netlink policy and
 * refusals from it (paqm_option_rows.h), the tc plugin its parser, printer and help; tests read it,
 * too (tc-tests/option_table.py). docs/adding.md says how to add an option.
 *
 * Whoever includes a table defines PAQM_OPTION() before; it is undefined at the end. Columns:
 *
 * kind      what is given, see below
 * attribute without TCA_PAQM_ or TCA_DCBT_
 * field     of the module's configuration
 * name      on the command line, and in refusals
 * key       in tc's JSON
 * zero      word for the value 0, if that lies outside of the range; or ""
 * least     of the range, as (number, unit), for fractions as (decimal, numerator, denominator)
 * most      the same
 * initial   value of a new queue
 * shown     by tc: ALWAYS; SET: without -d only if it is not the initial one; DETAIL: with -d
 * group     EVERYDAY, or RESEARCH: for the published laws and for experiments
 *
 * Kinds of 32 bits: TIME (us), SIZE (bytes, no upper end), COUNT, SIGNED, WORD (one of a list),
 * FLAG (NAME and noNAME), TARGET (TIME, or the bytes of the TARGET_BYTES that follows it), RATIO
 * (Q24), PERCENT (the same, N% is understood), SHARE (Q16, the same), PACKETS (Q16). Of 64 bits:
 * RATE (bytes/s; all ones: auto), ID (hexadecimal), SEED, DSCPS (a bit each). Others: PREFIXES,
 * KEY.
 *
 * tc shows them in their order. Words of an option of kind WORD, the one for 0 first, are in
 * PAQM_WORDS_ and the attribute.
 */
#ifndef PAQM_OPTION_UNITS_H
#define PAQM_OPTION_UNITS_H

#define PAQM_PER_us 1
#define PAQM_PER_ms 1000
#define PAQM_PER_s 1000000
#define PAQM_PER_bytes 1
#define PAQM_PER_MiB 1048576
#define PAQM_PER_kbit 125LL
#define PAQM_PER_gbit 125000000LL
#define PAQM_PER_count 1

/* In which form a kind is sent. OWN: not a number. */
#define PAQM_FORM_TIME U32
#define PAQM_FORM_SIZE U32
#define PAQM_FORM_COUNT U32
#define PAQM_FORM_SIGNED S32
#define PAQM_FORM_WORD U32
#define PAQM_FORM_FLAG U32
#define PAQM_FORM_TARGET U32
#define PAQM_FORM_TARGET_BYTES U32
#define PAQM_FORM_RATIO Q24
#define PAQM_FORM_PERCENT Q24
#define PAQM_FORM_SHARE Q16
#define PAQM_FORM_PACKETS Q16
#define PAQM_FORM_RATE U64
#define PAQM_FORM_ID U64
#define PAQM_FORM_SEED U64
#define PAQM_FORM_DSCPS U64
#define PAQM_FORM_PREFIXES OWN
#define PAQM_FORM_KEY OWN
#define PAQM_JOIN(a, b) a##b
#define PAQM_BY_FORM(prefix, form) PAQM_JOIN(prefix, form)

/* PAQM_END(kind) (number, unit): value of an end of a range as sent; fractions are rounded down. */
#define PAQM_END(kind) PAQM_BY_FORM(PAQM_END_, PAQM_FORM_##kind)
#define PAQM_END_U32(number, unit) ((number) * PAQM_PER_##unit)
#define PAQM_END_S32 PAQM_END_U32
#define PAQM_END_U64 PAQM_END_U32
#define PAQM_END_OWN PAQM_END_U32
#define PAQM_END_Q24(decimal, num, den) ((1ULL << 24) * (num) / (den))
#define PAQM_END_Q16(decimal, num, den) ((1ULL << 16) * (num) / (den))

/* The same for an initial value, a fraction's nearest. */
#define PAQM_INITIAL(kind) PAQM_BY_FORM(PAQM_INITIAL_, PAQM_FORM_##kind)
#define PAQM_INITIAL_U32 PAQM_END_U32
#define PAQM_INITIAL_S32 PAQM_END_U32
#define PAQM_INITIAL_U64 PAQM_END_U32
#define PAQM_INITIAL_OWN PAQM_END_U32
#define PAQM_INITIAL_Q24(decimal, num, den) (((1ULL << 24) * (num) + (den) / 2) / (den))
#define PAQM_INITIAL_Q16(decimal, num, den) (((1ULL << 16) * (num) + (den) / 2) / (den))

/* Fields of the configuration. */
#define PAQM_FIELD_U32(field) u32 field;
#define PAQM_FIELD_Q24 PAQM_FIELD_U32
#define PAQM_FIELD_Q16 PAQM_FIELD_U32
#define PAQM_FIELD_S32(field) s32 field;
#define PAQM_FIELD_U64(field) u64 field;
#define PAQM_FIELD_OWN(field)

#endif /* PAQM_OPTION_UNITS_H */
