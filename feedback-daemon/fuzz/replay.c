// SPDX-License-Identifier: GPL-2.0
/*
 * Corpus runner: gives every file of the named directories to a fuzz target
 * that was built without libFuzzer, so that known inputs are part of the tests.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	uint8_t *data;
	FILE *f = fopen(path, "rb");
	size_t size;
	long len;

	if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) < 0) {
		perror(path);
		return -1;
	}
	rewind(f);
	/* exactly as long as the input, so that a sanitizer sees overruns */
	data = malloc(len ? (size_t)len : 1);
	size = data ? fread(data, 1, (size_t)len, f) : 0;
	fclose(f);
	if (size != (size_t)len) {
		fprintf(stderr, "%s: cannot read it\n", path);
		free(data);
		return -1;
	}
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *e;
	char path[4096];
	int i, n = 0;
	DIR *d;

	for (i = 1; i < argc; i++) {
		d = opendir(argv[i]);
		if (!d) {
			perror(argv[i]);
			return 1;
		}
		while ((e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			if (run_file(path))
				return 1;
			n++;
		}
		closedir(d);
	}
	printf("%d inputs\n", n);
	return n ? 0 : 1;
}
