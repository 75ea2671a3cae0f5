#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The KUnit suite of the laws, in the kernel that runs.
. "$(dirname "$0")/lib.sh"
insmod "$PAQM_KO_DIR/kunit/paqm_kunit.ko"
dmesg | sed -nE 's/^\[[^]]*\] +((not )?ok [0-9]+ )(- )?(paqm_kunit_.*)/\1\4/p' >/run/tmp/kunit
while read -r line; do
	case "$line" in
	not*) not_ok "${line#not ok }" ;;
	*) ok "${line#ok }" ;;
	esac
done </run/tmp/kunit
check "the suite ran" test "$passed" -ge 10
check "unload" rmmod paqm_kunit
result
