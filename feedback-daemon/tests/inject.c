// SPDX-License-Identifier: GPL-2.0
/*
 * Does what somebody would do who has taken over a process of paqmd: makes it send a packet by
 * each descriptor it has, in every way there is. Prints "tried N" with the number of system calls
 * made in its name. What has left is for others to see.
 *
 * Usage: inject PID IFINDEX HEX    (the packet, from its IP header on); status 77: not this machine
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#ifdef __x86_64__
#define FILES 64

/* What is written into the other's memory. */
struct letter {
	struct sockaddr_ll to;
	struct iovec iov;
	struct msghdr msg;
	unsigned char packet[256];
};

static pid_t pid;
static struct user_regs_struct regs;

/* One system call in its name; it stands at an instruction that makes one. Return: what that does.
 */
static long call(long number, unsigned long a, unsigned long b, unsigned long c, unsigned long e,
		 unsigned long f)
{
	struct user_regs_struct r = regs;
	int status;

	r.orig_rax = (unsigned long)-1;
	r.rax = (unsigned long)number;
	r.rdi = a;
	r.rsi = b;
	r.rdx = c;
	r.r10 = 0;
	r.r8 = e;
	r.r9 = f;
	if (ptrace(PTRACE_SETREGS, pid, NULL, &r) || ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) ||
	    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, pid, NULL, &r)) {
		perror("inject");
		exit(1);
	}
	return (long)r.rax;
}

int main(int argc, char **argv)
{
	struct letter l = {.to = {.sll_family = AF_PACKET,
				  .sll_protocol = htons(0x0800),
				  .sll_halen = 6,
				  .sll_addr = {255, 255, 255, 255, 255, 255}}};
	struct user_regs_struct saved;
	struct iovec from = {.iov_base = &l, .iov_len = sizeof(l)}, into = from;
	unsigned long at, packet, to, len, fd;
	unsigned int byte, tried = 0;
	long code;
	int status;

	if (argc != 4)
		return 2;
	pid = (pid_t)atoi(argv[1]);
	l.to.sll_ifindex = atoi(argv[2]);
	for (len = 0; len < sizeof(l.packet) && sscanf(argv[3] + 2 * len, "%2x", &byte) == 1; len++)
		l.packet[len] = (unsigned char)byte;
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid ||
	    ptrace(PTRACE_GETREGS, pid, NULL, &saved)) {
		perror("inject");
		return 1;
	}
	/* All of them wait in a system call: what stands before the next instruction made it. */
	regs = saved;
	regs.rip -= 2;
	code = ptrace(PTRACE_PEEKTEXT, pid, (void *)regs.rip, NULL);
	if ((code & 0xFFFF) != 0x050F) {
		fputs("inject: it does not wait in a system call\n", stderr);
		return 1;
	}
	at = (saved.rsp - 4096) & ~63UL;
	to = at + offsetof(struct letter, to);
	packet = at + offsetof(struct letter, packet);
	l.iov = (struct iovec){.iov_base = (void *)packet, .iov_len = len};
	l.msg = (struct msghdr){.msg_name = (void *)to,
				.msg_namelen = sizeof(l.to),
				.msg_iov = (void *)(at + offsetof(struct letter, iov)),
				.msg_iovlen = 1};
	into.iov_base = (void *)at;
	if (process_vm_writev(pid, &from, 1, &into, 1, 0) != sizeof(l)) {
		perror("inject");
		return 1;
	}
	for (fd = 3; fd < FILES; fd++) {
		call(SYS_sendto, fd, packet, len, to, sizeof(l.to));
		call(SYS_sendto, fd, packet, len, 0, 0);
		call(SYS_sendmsg, fd, at + offsetof(struct letter, msg), 0, 0, 0);
		call(SYS_write, fd, packet, len, 0, 0);
		call(SYS_writev, fd, at + offsetof(struct letter, iov), 1, 0, 0);
		tried += 5;
	}
	call(SYS_socket, AF_PACKET, SOCK_DGRAM, htons(0x0800), 0, 0);
	call(SYS_socket, AF_INET, SOCK_DGRAM, 0, 0, 0);
	tried += 2;
	ptrace(PTRACE_SETREGS, pid, NULL, &saved);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	printf("tried %u\n", tried);
	return 0;
}
#else
int main(void)
{
	return 77;
}
#endif
