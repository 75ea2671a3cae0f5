#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Status 0 if the running kernel has the module $1, built in, loaded or to be loaded: the condition
# of cases whose parent qdisc a small kernel may lack.
grep -qs "^$1 " /proc/modules && exit 0
modprobe -q "$1" 2>/dev/null && exit 0
option=$(echo "CONFIG_NET_$1" | tr '[:lower:]' '[:upper:]')
python3 -c 'import gzip, sys
sys.exit(f"\n{sys.argv[1]}=y\n" not in gzip.open("/proc/config.gz", "rt").read())' "$option"
