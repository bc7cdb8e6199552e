/*
 * Standard descriptors that whoever started the program had closed: /dev/null takes their place,
 * so that no file of the process becomes one of them. Libraries open files in their constructors,
 * thus it happens before any of those. Only for executables: the linker allows nobody else to have
 * this section, so it is part of the binaries and of no library. The only thread there is yet.
 */
#include <fcntl.h>
#include <unistd.h>

/* Read-only, so that what is written there fails. open() gives the lowest number that is free. */
static void keep_standard_descriptors(void)
{
    int fd = 0;

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDONLY);
    if (fd > STDERR_FILENO)
        (void)close(fd);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_constructors)(void) = keep_standard_descriptors;
