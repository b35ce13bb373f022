/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <string.h>

#if defined(__aarch64__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

/* The reflected polynomial by nibbles: 64 bytes that stay in cache where there is no instruction. */
static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t n)
{
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = nibble[crc & 15] ^ (crc >> 4);
        crc = nibble[crc & 15] ^ (crc >> 4);
    }
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_processor(uint32_t crc, const uint8_t *p,
                                                               size_t n)
{
    uint64_t wide = crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; n > 0; p++, n--)
        crc = __builtin_ia32_crc32qi(crc, *p);
    return crc;
}

static int has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__)
__attribute__((target("+crc"))) static uint32_t by_processor(uint32_t crc, const uint8_t *p,
                                                             size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        __asm__("crc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    }
    for (; n > 0; p++, n--)
        __asm__("crc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)*p));
    return crc;
}

static int has_instruction(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
#else
#define by_processor by_table
static int has_instruction(void)
{
    return 0;
}
#endif

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    crc = ~crc;
    crc = has_instruction() ? by_processor(crc, p, n) : by_table(crc, p, n);
    return ~crc;
}
