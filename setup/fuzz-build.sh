# SPDX-License-Identifier: GPL-2.0
# What the run.sh of the fuzz targets share; to be sourced, from the top of the tree: names relative
# to it make the same program wherever the tree lies. Sets out: where a target is built and run.

top=$PWD
cc=${CC:-clang}
command -v "$cc" >/dev/null || {
	echo "$0: no compiler '$cc': install clang and its libFuzzer runtime, or set CC" >&2
	exit 1
}

# fuzz_out TARGET
fuzz_out() {
	out=${FUZZ_OUT:-$top/out/fuzz}/$1
	mkdir -p "$out/corpus"
}

# fuzz_build SANITIZERS PROGRAM WORD...: compile PROGRAM into $out, unless it is there and was made by
# the same compiler of the same words and texts. What the parsers compare with is in their corpus: to
# trace comparisons would find no more and take a third of the time.
fuzz_build() {
	sanitizers=$1
	program=$2
	shift 2
	set -- -std=gnu17 -g -O2 -fsanitize="$sanitizers" -fno-sanitize-recover=undefined \
		-fno-sanitize-coverage=trace-cmp -ffile-prefix-map="$top=." -I. "$@"
	text=$("$cc" -Wno-unused-command-line-argument -E "$@") || return
	made_of=$(printf '%s\n' "$("$cc" --version)" "$*" "$text" | sha256sum)
	if [ -x "$out/$program" ] && [ "$made_of" = "$(cat "$out/$program.made-of" 2>/dev/null)" ]; then
		return
	fi
	rm -f "$out/$program.made-of"
	"$cc" -o "$out/$program" "$@" || return
	echo "$made_of" >"$out/$program.made-of"
}
