// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into tc by test_show.py: `tc monitor file` prints text only, this
 * switches tc's own JSON writer on around it. Weak, because a shell that starts
 * tc sees this library too and has no such functions.
 */
extern void new_json_obj(int json) __attribute__((weak));
extern void delete_json_obj(void) __attribute__((weak));

__attribute__((constructor)) static void begin(void)
{
	if (new_json_obj)
		new_json_obj(1);
}

__attribute__((destructor)) static void end(void)
{
	if (delete_json_obj)
		delete_json_obj();
}
