/*
 * `redistinto-esi serve`: the ESI service over gRPC.
 */
#ifndef ESI_SERVE_H
#define ESI_SERVE_H

#include "esi-client/options.h"

/* Serves until it is stopped; the exit code. */
int esi_serve(const struct esi_options *options);

#endif
