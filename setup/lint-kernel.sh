#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Static checks of the kernel modules; prints `ok NAME` or `not ok NAME` for each.
#
#	lint-kernel.sh --fast	what needs only the kernel's own scripts: checkpatch, kernel-doc;
#				what headers hold
#	lint-kernel.sh		these and all others: gcc with more warnings and its analyzer, clang,
#				sparse, coccinelle, compilation for i386 (32 bit: gcc, gcc -Os, clang)
#				and s390x (big endian)
#
# The others need about 1 GB under the user's cache directory, some Debian packages (installed if
# missing, as root) and some minutes for the first run: kernel trees are prepared there for each
# architecture, and a sparse that understands today's headers is built from Debian's source of it.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
top=$PWD
cache="${XDG_CACHE_HOME:-$HOME/.cache}/paqm"
work="$cache/lint"
clang=19 # the newest of Debian 12
sparse_suites="trixie forky sid" # the first with the version
sparse_version=0.6.5
. setup/lint-lib.sh

say() { printf 'lint-kernel: %s\n' "$*"; }
fail() {
	printf 'lint-kernel: %s\n' "$*" >&2
	exit 2
}

# Source of the newest kernel of the lab.
find_source() {
	source=$(PYTHONPATH=testbed python3 -c 'import sys
from paqm_lab import kernel
print(kernel.source_tree(lambda line: print(line, file=sys.stderr)))')
	[ -x "$source/scripts/checkpatch.pl" ] || fail "no kernel source (see above)"
}

# ---------------------------------------------------------------- the kernel's own scripts

# by_rules IGNORED FILE...
by_rules() {
	local ignored=$1
	shift
	perl "$source/scripts/checkpatch.pl" --no-tree --no-summary --terse --strict \
		--max-line-length=100 \
		--ignore "SPDX_LICENSE_TAG,CAMELCASE,PREFER_BIT_MACRO,BIT_MACRO,LINE_SPACING$ignored" -f "$@"
}

checkpatch() {
	local files macros=MACRO_ARG_UNUSED,MACRO_ARG_REUSE,COMPLEX_MACRO,TRAILING_SEMICOLON
	# The core is no kernel code: its types and parameter names are its own. Nor can a header of
	# tracepoints be laid out by the rules. What expands a table of macros leaves out columns.
	mapfile -t files < <(ls kernel/*.c kernel/{paqm,dcbt,rlqos}_*.h | grep -vE 'trace|_option')
	by_rules '' "${files[@]}" kernel/uapi/linux/*.h kernel/kunit/*.[ch] &&
		by_rules ",$macros" kernel/*_option*.[ch]
}

kernel_doc() {
	"$source/scripts/kernel-doc" -none -Wall -Werror kernel/*.c kernel/{paqm,dcbt,rlqos}_*.h \
		kernel/uapi/linux/*.h core/*.h
}

# Headers declare, and define what is inline: code that every file has for itself belongs in one.
# Tracepoints are a language of their own.
headers() {
	find "$1" -name "*.h" ! -name paqm_trace.h -print0 | xargs -0 perl -0777 -ne '
		while (/^(?!static (?:__always_)?inline )(\w[^\n;{}=]*\([^;{}]*\))\n\{/mg) {
			print "$ARGV defines $1\n"
		}' | { ! grep .; }
}

# ---------------------------------------------------------------- compilers

# A copy of the modules' sources in $work/build/NAME: nothing is built inside the tree.
copy_sources() {
	rm -rf "$work/build/$1"
	mkdir -p "$work/build/$1"
	setup/ls-files.sh -z kernel core ':!kernel/lab-tests' | grep -zE '(\.[ch]|/Kbuild|/Makefile)$' |
		xargs -0 cp --parents -t "$work/build/$1"
}

# compile NAME ARGUMENT...: make the modules; the log is $work/build/NAME.log
compile() {
	local name=$1
	shift
	copy_sources "$name"
	make "$@" M="$work/build/$name/kernel" KBUILD_MODPOST_WARN=1 -j2 modules \
		>"$work/build/$name.log" 2>&1 || {
		tail -n 20 "$work/build/$name.log"
		return 1
	}
}

# Warnings of a log that lie in our files; those inside the kernel's own headers do not count.
# What modpost misses without a whole kernel is looked at by own_symbols instead.
own_warnings() {
	local theirs
	theirs=$(sed 's/[].+*?^$(){}|[]/\\&/g' <<<"$source")
	! grep -E '(warning|error|note): ' "$work/build/$1.log" |
		grep -vE "^($theirs|$work/tree)|^WARNING: modpost: .*undefined|Symbol info of vmlinux" |
		grep -E '(warning|error): ' | sort -u | grep .
}

# Every symbol that a module wants must be one that the kernel exports somewhere (or its sibling
# module): so no helper of the compiler, such as a 64 bit division, is left to the linker.
own_symbols() {
	local name=$1 nm=$2
	find "$work/build/$name" -name '*.ko' -exec "$nm" -u {} + | awk 'NF == 2 { print $2 }' |
		sort -u >"$work/build/$name.wanted"
	[ -s "$work/build/$name.wanted" ] || { echo "no module was built"; return 1; }
	! comm -23 "$work/build/$name.wanted" "$work/exports" | grep .
}

gcc_warnings() { # level
	compile "gcc-w$1" -C "$(prepared x86_64)" ARCH=x86_64 W="$1" && own_warnings "gcc-w$1"
}

gcc_analyzer() {
	compile gcc-analyzer -C "$(prepared x86_64)" ARCH=x86_64 KCFLAGS=-fanalyzer && own_warnings gcc-analyzer
}

clang_build() {
	compile clang -C "$(prepared x86_64-clang)" ARCH=x86_64 LLVM="-$clang" W=1 && own_warnings clang &&
		own_symbols clang "llvm-nm-$clang"
}

cross_build() { # architecture, prefix of the compiler
	compile "$1" -C "$(prepared "$1")" ARCH="$(arch_of "$1")" CROSS_COMPILE="$2" W=1 &&
		own_warnings "$1" && own_symbols "$1" "$2nm"
}

# What divides 64 bits by a constant: gcc does that itself on 32 bit where it is to be fast, but not
# where it is to be small, and clang never does.
small_build() {
	compile i386-small -C "$(prepared i386)" ARCH=i386 CROSS_COMPILE=i686-linux-gnu- KCFLAGS=-Os &&
		own_warnings i386-small && own_symbols i386-small i686-linux-gnu-nm
}

clang32_build() {
	compile i386-clang -C "$(prepared i386-clang)" ARCH=i386 LLVM="-$clang" &&
		own_warnings i386-clang && own_symbols i386-clang "llvm-nm-$clang"
}

# KUnit's macros are not made for sparse.
sparse_arguments=(C=2 CHECK="$work/sparse/sparse" CONFIG_KUNIT=
	CF="-D__CHECK_ENDIAN__ -Wno-cast-truncate -D'__has_include(file)=1'")

sparse() {
	compile sparse -C "$(prepared x86_64)" ARCH=x86_64 "${sparse_arguments[@]}" &&
		own_warnings sparse
}

# semantic_patches DIRECTORY LOG PATCH...: what they say; fails if that is anything
semantic_patches() {
	local patch options dir=$1 log=$2
	shift 2
	: >"$log"
	for patch; do
		options=$(sed -n 's|^// Options: ||p' "$patch" | tr '\n' ' ')
		# shellcheck disable=SC2086 # options are words
		spatch -D report --no-show-diff --very-quiet $options --cocci-file "$patch" \
			--include-headers -I "$source/include" --dir "$dir" >>"$log" 2>&1 ||
			{ echo "$patch: spatch failed"; tail -n 3 "$log"; return 1; }
	done
	! grep -E '^[^ ]+:[0-9]+(:[0-9-]+)?: ' "$log"
}

# The kernel's own semantic patches, but those that need OCaml.
coccinelle() {
	local patches
	copy_sources coccinelle
	rm -rf "$work/build/coccinelle/kernel/fuzz" # user space
	mapfile -t patches < <(grep -rL 'script:ocaml' --include='*.cocci' "$source/scripts/coccinelle" |
		xargs grep -l 'virtual report' | sort)
	[ "${#patches[@]}" -ge 40 ] || { echo "only ${#patches[@]} semantic patches"; return 1; }
	semantic_patches "$work/build/coccinelle/kernel" "$work/build/coccinelle.log" "${patches[@]}"
}

# planted WORD ARGUMENT...: compile setup/lint-planted.c; the tool must say WORD about it
planted() {
	local word=$1
	shift
	rm -f "$work/build/planted/kernel/planted.o"
	make "$@" M="$work/build/planted/kernel" planted.o >"$work/build/planted.log" 2>&1
	grep -qE "planted.c:[0-9]+:.*$word" "$work/build/planted.log" ||
		{ echo "not said: $word"; return 1; }
}

# Every tool finds the fault that is there for it.
planted_faults() {
	local x86=(-C "$(prepared x86_64)" ARCH=x86_64) i386
	i386=(-C "$(prepared i386)" ARCH=i386 CROSS_COMPILE=i686-linux-gnu-)
	copy_sources planted
	cp setup/lint-planted.c "$work/build/planted/kernel/planted.c"
	planted 'no previous prototype' "${x86[@]}" W=1 && planted Wshadow "${x86[@]}" W=2 &&
		planted 'NULL' "${x86[@]}" KCFLAGS=-fanalyzer &&
		planted 'no previous prototype' -C "$(prepared x86_64-clang)" ARCH=x86_64 \
			LLVM="-$clang" W=1 &&
		planted 'different base types' "${x86[@]}" "${sparse_arguments[@]}" &&
		planted 'no previous prototype' "${i386[@]}" W=1 || return 1
	i686-linux-gnu-nm -u "$work/build/planted/kernel/planted.o" | awk '{ print $2 }' | sort -u |
		comm -23 - "$work/exports" | grep -qx __udivdi3 || { echo "not found: __udivdi3"; return 1; }
	cp setup/lint-planted.c "$work/build/planted/kernel/planted.h"
	! headers "$work/build/planted/kernel" >/dev/null || { echo "headers said nothing"; return 1; }
	rm "$work/build/planted/kernel/planted.h"
	! semantic_patches "$work/build/planted/kernel" "$work/build/planted.log" \
		"$source/scripts/coccinelle/free/ifnullfree.cocci" >/dev/null ||
		{ echo "coccinelle said nothing"; return 1; }
}

# ---------------------------------------------------------------- what they need

arch_of() {
	case "$1" in
	s390x) echo s390 ;;
	*) echo "${1%-clang}" ;;
	esac
}

prepared() { echo "$work/tree/$version-$1"; }

# prepare ARCHITECTURE ARGUMENT...: a configured tree that modules can be compiled against
prepare() {
	local dir log arch=$1
	dir=$(prepared "$1")
	log="$dir.log"
	shift
	[ -e "$dir/prepared" ] && return
	say "preparing $version for $arch (log: $log)"
	rm -rf "$dir"
	mkdir -p "$dir"
	local make=(make -C "$source" O="$dir" ARCH="$(arch_of "$arch")" "$@")
	"${make[@]}" defconfig >"$log" 2>&1 || fail "no configuration for $arch, see $log"
	printf 'CONFIG_%s\n' NET_SCHED=y NET_CLS=y IPV6=y MODULES=y KUNIT=y DEBUG_INFO_NONE=y \
		WERROR=n TRIM_UNUSED_KSYMS=n >>"$dir/.config"
	{ "${make[@]}" olddefconfig && "${make[@]}" -j2 modules_prepare; } >>"$log" 2>&1 ||
		fail "preparing a tree for $arch failed, see $log: $(tail -n 1 "$log")"
	touch "$dir/prepared"
}

need() { # package command
	command -v "$2" >/dev/null || missing+=("$1")
}

packages() {
	local missing=() log="$work/apt.log"
	need coccinelle spatch
	need gcc-i686-linux-gnu i686-linux-gnu-gcc
	need gcc-s390x-linux-gnu s390x-linux-gnu-gcc
	need "clang-$clang" "clang-$clang"
	need "lld-$clang" "ld.lld-$clang"
	need "llvm-$clang" "llvm-nm-$clang"
	need dpkg-dev dpkg-source
	[ "${#missing[@]}" -eq 0 ] && return
	[ "$(id -u)" -eq 0 ] || fail "packages are missing; as root: apt-get install ${missing[*]}"
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q -y install --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
		{ apt-get -q update && apt-get -q -y install --no-install-recommends "${missing[@]}"; } \
			>>"$log" 2>&1 || fail "apt-get failed, see $log: $(tail -n 1 "$log")"
}

# The sparse of Debian 12 stops at the headers of today's kernels. Its source package of a later
# suite is fetched from where this machine fetches its own packages; apt's lists stay untouched.
build_sparse() {
	local site suite apt dir="$work/sparse.fetch" log="$work/sparse.log"
	[ -x "$work/sparse/sparse" ] && return
	say "building sparse $sparse_version (log: $log)"
	site=$(PYTHONPATH=testbed python3 -m paqm_lab.apt) || fail "no address to fetch sparse from"
	for suite in $sparse_suites; do
		rm -rf "$dir"
		mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
		echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" \
			>"$dir/list"
		apt=(-q -oDir::Etc::sourceparts=/dev/null -oDir::Etc::sourcelist="$dir/list"
			-oDir::State::lists="$dir/lists" -oDir::Cache="$dir/cache" -oAPT::Sandbox::User=root)
		apt-get "${apt[@]}" update >"$log" 2>&1 || continue
		apt-cache "${apt[@]}" showsrc sparse 2>>"$log" | grep -q "^Version: $sparse_version" || continue
		(cd "$dir" && apt-get "${apt[@]}" source sparse >>"$log" 2>&1) || continue
		make -C "$dir"/sparse-*/ -j2 sparse CC=gcc >>"$log" 2>&1 ||
			fail "sparse does not build, see $log: $(tail -n 1 "$log")"
		rm -rf "$work/sparse"
		mv "$dir"/sparse-*/ "$work/sparse"
		rm -rf "$dir"
		return
	done
	fail "no sparse $sparse_version in $sparse_suites, see $log"
}

# All names that the kernel's source exports to modules, and those of our own first module.
list_exports() {
	{
		grep -rhoE 'EXPORT_(SYMBOL|PER_CPU_SYMBOL|TRACEPOINT_SYMBOL|STATIC_CALL)[A-Z_]*\([A-Za-z0-9_]+' \
			"$source"/{kernel,lib,net,mm,block,fs,crypto,drivers/base,drivers/char} \
			"$source"/arch/{x86,s390} kernel | sed 's/^EXPORT_STATIC_CALL.*(/__SCT__/; s/.*(//'
		# generated by macros or by the linker, in every kernel
		printf '%s\n' get_random_u{8,16,32,64} bpf_trace_run{1,2,3,4,5,6,7,8,9,10,11,12} \
			__x86_return_thunk __fentry__ __this_module \
			__x86_indirect_thunk_{r,e}{ax,bx,cx,dx,si,di,bp} __x86_indirect_thunk_r{8,9,10,11,12,13,14,15} \
			__s390_indirect_jump_r{1,2,3,4,5,6,7,8,9,10,11,12,13,14} _mcount
	} | sort -u >"$work/exports"
}

# ---------------------------------------------------------------- run

find_source
lint "checkpatch" checkpatch
lint "kernel-doc" kernel_doc
lint "headers define inlines only" headers kernel
[ "${1:-}" = --fast ] && exit $failed
[ $# -eq 0 ] || fail "usage: lint-kernel.sh [--fast]"

mkdir -p "$work/build" "$work/tree" || fail "cannot create $work; set XDG_CACHE_HOME"
exec 9>"$work/lock"
flock 9 # the trees are shared
version=$(make -s -C "$source" kernelversion)
packages
build_sparse
list_exports
prepare x86_64
lint "gcc W=1" gcc_warnings 1
lint "gcc W=2" gcc_warnings 2
lint "gcc -fanalyzer" gcc_analyzer
lint "sparse, endian-checked" sparse
lint "coccinelle" coccinelle
prepare x86_64-clang LLVM="-$clang"
lint "clang W=1" clang_build
prepare i386 CROSS_COMPILE=i686-linux-gnu-
lint "i386: 32 bit" cross_build i386 i686-linux-gnu-
lint "i386, gcc -Os" small_build
prepare i386-clang LLVM="-$clang"
lint "i386, clang" clang32_build
prepare s390x CROSS_COMPILE=s390x-linux-gnu-
lint "s390x: big endian" cross_build s390x s390x-linux-gnu-
lint "each tool finds its planted fault" planted_faults
exit $failed
