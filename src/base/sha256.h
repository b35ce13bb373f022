/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4). Own code because guest libraries may use libc only; everything else in the
 * program that needs it calls this too. Thread: any. */
#ifndef TACHO_BASE_SHA256_H
#define TACHO_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_HEX 65 /* with the NUL */

struct sha256 {
    uint32_t h[8];
    uint64_t n_bytes;
    uint8_t block[64];
};
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
void sha256_end(struct sha256 *s, uint8_t out[static SHA256_BYTES]);
void sha256_hex(const uint8_t digest[static SHA256_BYTES], char out[static SHA256_HEX]);

#endif
