/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of limits.def as constants of type uint64_t. */
#ifndef TACHO_BASE_LIMITS_H
#define TACHO_BASE_LIMITS_H

#include <stdint.h>

#define X(name, value, unit, what)                                                                 \
    static const uint64_t LIMIT_##name __attribute__((unused)) = value##ULL;
#include "base/limits.def"
#undef X

#endif
