# SPDX-License-Identifier: GPL-2.0
# To be sourced. or_skipped COMMAND...: runs it; status 77, a test's word for skipped, is none.

or_skipped() {
	local status=0
	"$@" || status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 77 ]
}
