#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Status 0 if qfq of the running kernel takes a leaf that holds packets back, as a shaper does.
# An older one reports a fault of the kernel (WARN) when it meets one; newer ones only print a line.
object=$PAQM_KDIR/net/sched/sch_qfq.o
[ -e "$object" ] || object=$(modinfo -n sch_qfq 2>/dev/null)
[ -e "$object" ] || { echo "qfq-holds.sh: no object code of sch_qfq; set PAQM_KDIR" >&2; exit 2; }
case $object in *.xz) show=xzcat ;; *) show=cat ;; esac
! $show "$object" | grep -q 'qfq_dequeue: non-workconserving leaf'
