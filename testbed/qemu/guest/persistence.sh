# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The recipes that tc-paqm ships as examples, run as they are shipped. Read by `run`.
examples=/usr/share/doc/tc-paqm/examples
echo "# recipes: paqm comes with the device"

has_paqm() { tc qdisc show dev "$1" | grep -q '^qdisc paqm .*bandwidth 20Mbit'; }
no_paqm() { ! has_paqm "$1"; }
has_key() { tc -d qdisc show dev "$1" | grep -q ' key 7:hidden'; }

for file in ifupdown networkmanager-dispatcher paqm@.service; do
	check "tc-paqm ships the example $file" test -r "$examples/$file"
done

mkdir -p /etc/paqm
(umask 077 && echo "qdisc change dev eth0 root paqm key 7:$(printf '0f%.0s' {1..16})" >/etc/paqm/eth0.key)
grep -v '^auto' "$examples/ifupdown" >/etc/network/interfaces.d/paqm
check "ifupdown: ifup" ifup eth0
check "ifupdown: up attached paqm" wait_for has_paqm eth0
check "ifupdown: and set its key" wait_for has_key eth0
check "ifupdown: ifdown" ifdown eth0
tc qdisc del dev eth0 root
rm -f /etc/network/interfaces.d/paqm

echo 'OPTIONS="bandwidth 20mbit feedback icmp"' >/etc/paqm/eth0.conf
install -m 755 "$examples/networkmanager-dispatcher" /etc/NetworkManager/dispatcher.d/50-paqm
printf '[main]\nno-auto-default=*\n' >/etc/NetworkManager/conf.d/paqm-test.conf
check "NetworkManager starts" systemctl start NetworkManager
check "NetworkManager: a connection" nmcli connection add type ethernet ifname eth0 \
	con-name paqm-test autoconnect no ipv4.method manual ipv4.addresses 192.0.2.1/24 \
	ipv6.method disabled
check "NetworkManager: is brought up" nmcli connection up paqm-test
check "NetworkManager: the dispatcher attached paqm" wait_for has_paqm eth0
check "NetworkManager: and set its key" wait_for has_key eth0
nmcli connection delete paqm-test >/dev/null
systemctl stop NetworkManager NetworkManager-dispatcher
tc qdisc del dev eth0 root 2>/dev/null
rm -f /etc/NetworkManager/dispatcher.d/50-paqm /etc/NetworkManager/conf.d/paqm-test.conf

printf '[Match]\nName=eth0\n[Network]\nAddress=192.0.2.1/24\nLinkLocalAddressing=no\n' \
	>/etc/systemd/network/10-paqm-test.network
cp "$examples/paqm@.service" /etc/systemd/system/
systemctl daemon-reload
check "systemd-networkd starts" systemctl start systemd-networkd
check "unit: enabled and started" systemctl enable -q --now paqm@eth0
check "unit: attached paqm" has_paqm eth0
check "unit: and set its key" has_key eth0
networkctl reconfigure eth0
check "systemd-networkd: configures the device" \
	wait_for sh -c 'ip -4 -br addr show dev eth0 | grep -q 192.0.2.1'
check "systemd-networkd: leaves paqm where it is" has_paqm eth0
driver=$(basename "$(readlink /sys/class/net/eth0/device/driver)")
modprobe -r "$driver"
check "unit: the device goes" wait_for test ! -e /sys/class/net/eth0
check "unit: the device is back" sh -c "modprobe $driver && udevadm settle"
check "unit: and paqm with it" wait_for has_paqm eth0
check "unit: and its key" wait_for has_key eth0
rm /etc/paqm/eth0.key
check "unit: restarted, without the file of the key" systemctl restart paqm@eth0
check "unit: has paqm" has_paqm eth0
has "unit: and no key" "$(tc -d qdisc show dev eth0)" ' key none'
check "unit: disabled and stopped" systemctl disable -q --now paqm@eth0
check "unit: paqm is gone" no_paqm eth0
systemctl stop systemd-networkd.socket systemd-networkd 2>/dev/null
ip addr flush dev eth0
rm -f /etc/systemd/network/10-paqm-test.network /etc/systemd/system/paqm@.service \
	/etc/paqm/eth0.conf
rmdir --ignore-fail-on-non-empty /etc/paqm
systemctl daemon-reload
