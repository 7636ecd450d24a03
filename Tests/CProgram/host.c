/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Loads and unloads a plug-in with the core, while a thread that has used it lives on: plugin.c. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 10u

static pthread_barrier_t barrier;
static unsigned (*work)(bool);

/* The plug-in is gone when this thread ends. */
static void *use_and_stay(void *unused)
{
	unsigned count = work(true);

	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return count == 1000 ? unused : (void *)&barrier;
}

static bool is_mapped(const char *name)
{
	char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		found |= strstr(line, name) != NULL;
	if (maps != NULL)
		fclose(maps);
	return found;
}

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc == 2 && i < ROUNDS; i++) {
		void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *result;
		bool (*end)(void);
		pthread_t thread;

		if (plugin == NULL) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		*(void **)&work = dlsym(plugin, "plugin_work");
		*(void **)&end = dlsym(plugin, "plugin_end");
		pthread_barrier_init(&barrier, NULL, 2);
		if (pthread_create(&thread, NULL, use_and_stay, NULL) != 0)
			return 1;
		pthread_barrier_wait(&barrier);
		if (work(false) != 1000 || !end()) {
			fprintf(stderr, "round %u: the plug-in did not do its work, or did not end\n", i);
			return 1;
		}
		dlclose(plugin);
		if (is_mapped(argv[1]) || is_mapped("libeventcore")) {
			fprintf(stderr, "round %u: the plug-in is still there\n", i);
			return 1;
		}
		pthread_barrier_wait(&barrier);
		pthread_join(thread, &result);
		pthread_barrier_destroy(&barrier);
		if (result != NULL)
			return 1;
	}
	printf("%u times loaded and unloaded: ok\n", ROUNDS);
	return argc != 2;
}
