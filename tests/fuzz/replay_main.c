/*
 * Runs every file of the folders named on the command line through a fuzz target: its corpus as an
 * ordinary test. Each input is also cut at every length up to PREFIX_MAX, because truncation is
 * what parsers get wrong first. Fails when there is nothing to run.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum {
    FILE_MAX = 1024 * 1024,
    PREFIX_MAX = 512,
};

/* The input lies in memory of exactly its size, so that a sanitizer sees a read past its end. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);

    if (!exact)
        abort();
    memcpy(exact, data, size);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static int run_file(const char *path)
{
    static uint8_t data[FILE_MAX];
    FILE *file = fopen(path, "rb");
    size_t size;

    if (!file) {
        perror(path);
        return 1;
    }
    size = fread(data, 1, sizeof(data), file);
    if (ferror(file) || fgetc(file) != EOF) {
        (void)fprintf(stderr, "%s: unreadable, or more than %d bytes\n", path, FILE_MAX);
        (void)fclose(file);
        return 1;
    }
    (void)fclose(file);
    for (size_t length = 0; length < size && length < PREFIX_MAX; length++)
        run(data, length);
    run(data, size);
    return 0;
}

static int run_folder(const char *folder, size_t *n_files)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int failures = 0;

    if (!dir) {
        perror(folder);
        return 1;
    }
    while ((entry = readdir(dir)) != NULL) {
        char path[4096];

        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        failures += run_file(path);
        (*n_files)++;
    }
    (void)closedir(dir);
    return failures;
}

int main(int argc, char **argv)
{
    size_t n_files = 0;
    int failures = 0;

    for (int i = 1; i < argc; i++)
        failures += run_folder(argv[i], &n_files);
    printf("%zu files replayed, %d failures\n", n_files, failures);
    return failures > 0 || n_files == 0;
}
