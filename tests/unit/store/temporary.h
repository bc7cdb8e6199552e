/*
 * A directory of its own for a test.
 */
#ifndef TESTS_STORE_TEMPORARY_H
#define TESTS_STORE_TEMPORARY_H

/* Makes it on the first call; the same path until removed. */
const char *temporary_directory(void);

/* A path in it, valid until 64 calls later. */
const char *temporary_path(const char *name);

/* With everything in it; nothing to do when there is none. */
void temporary_remove(void);

#endif
