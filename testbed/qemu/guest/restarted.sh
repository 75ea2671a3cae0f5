# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# After the restart of the machine: what should be there again. Read by `run`.
echo "# after a restart"
ip link set eth0 up
check "paqmd is back" wait_for paqmctl show
check "the trial is back" wait_for systemctl is-active -q paqm-trial@eth0
check "and P-AQM with it" wait_for stands 'paqm 7a1: root'
check "a pause" paqm-trial end eth0 --pause
same "what stood there before is back" "$(tc qdisc show dev eth0)" "$(cat /root/found)"
check "the trial goes on" paqm-trial router eth0 --resume
check "with P-AQM at once" stands 'paqm 7a1: root'
check "the trial ends" paqm-trial end eth0
same "what stood there before is back at the end" "$(tc qdisc show dev eth0)" "$(cat /root/found)"
same "and the service is gone" "$(systemctl is-enabled paqm-trial@eth0 2>&1)" disabled
check "the report reads what was kept" paqm-trial report /var/lib/paqm-trial --out /root/report
rm -rf /root/report /root/found
