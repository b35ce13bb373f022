/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli, reflected 0x82f63b78), as RFC 3720 appendix B.4 defines it.
 * Guest-safe. Uses the processor's instruction where there is one. Thread: any. */
#ifndef TACHO_BASE_CRC32C_H
#define TACHO_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues a checksum: start with crc = 0. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

#endif
