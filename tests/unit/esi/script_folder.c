/*
 * Parses every file of a folder whose name has the given end: script_folder FOLDER [SUFFIX]. Plain
 * program: without a folder (an option that is not set) it exits with 77, which tells meson that
 * the test was skipped, and says so.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "esi-client/script.h"

enum {
    SKIPPED = 77,
    FILE_MAX = 1024 * 1024,
};

static int check_file(const char *folder, const char *name)
{
    static uint8_t data[FILE_MAX];
    static struct esi_script_errors errors;
    struct esi_script *script = NULL;
    struct rt_error err;
    char path[4096];
    size_t size;
    FILE *file;
    int failed = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size = fread(data, 1, sizeof(data), file);
    (void)fclose(file);
    if (esi_script_parse(name, rt_bytes_of(data, size), MODEL_DIALECT_EXTENDED, &script, &errors,
                         &err) != RT_OK) {
        printf("not ok: %s\n", err.message);
        failed = 1;
    } else if (script->n_statements == 0) {
        printf("not ok: %s has no statement\n", name);
        failed = 1;
    } else {
        printf("ok: %s, %zu statements\n", name, script->n_statements);
    }
    (void)esi_script_free(script);
    return failed;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t size = strlen(name), suffix_size = strlen(suffix);

    return size >= suffix_size && strcmp(name + size - suffix_size, suffix) == 0;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "";
    const char *suffix = argc > 2 ? argv[2] : "";
    struct dirent *entry;
    size_t n_files = 0;
    int failures = 0;
    DIR *dir;

    if (folder[0] == '\0') {
        printf("skipped: no folder was named\n");
        return SKIPPED;
    }
    dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return 1;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || !ends_with(entry->d_name, suffix))
            continue;
        n_files++;
        failures += check_file(folder, entry->d_name);
    }
    (void)closedir(dir);
    printf("%zu scripts, %d failures\n", n_files, failures);
    return failures > 0 || n_files == 0;
}
