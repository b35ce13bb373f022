/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's bytes, as docs/formats/journal.md has them: record header, header payload, types.
 * Shared by writer, reader, shipper and server. Little-endian hosts only (x86-64, arm64). */
#ifndef TACHO_JOURNAL_FORMAT_H
#define TACHO_JOURNAL_FORMAT_H

#include <stdint.h>

#define JOURNAL_SYNC 0x1fc34aa7u
#define JOURNAL_VERSION 1u
#define JOURNAL_PAYLOAD_MAX 65536u
#define JOURNAL_FLAG_SIDE 1u

enum journal_type {
    JOURNAL_HEADER = 1,
    JOURNAL_ANCHOR = 2,
    JOURNAL_BEGIN = 3,
    JOURNAL_END = 4,
    JOURNAL_METRICS = 5,
    JOURNAL_SYSTEM = 6,
    JOURNAL_PROCESS_START = 7,
    JOURNAL_PROCESS_END = 8,
    JOURNAL_CONFIG = 9,
    JOURNAL_HOST = 10,
    JOURNAL_OUTPUT = 11,
    JOURNAL_SESSION = 12,
    JOURNAL_EVENT = 13,
    JOURNAL_HEARTBEAT = 14,
    JOURNAL_DROPPED = 15,
    JOURNAL_CHECKPOINT = 16,
    JOURNAL_RUNNER_START = 17,
    JOURNAL_RUNNER_END = 18,
    JOURNAL_TYPE_MAX = 18
};

enum journal_role { JOURNAL_ROLE_WORKLOAD = 0, JOURNAL_ROLE_RUNNER = 1 };

struct __attribute__((packed)) journal_record_header {
    uint32_t sync;
    uint16_t type;
    uint16_t flags;
    uint32_t length; /* of the payload, bytes */
    uint32_t crc;    /* CRC-32C of the header's other fields but sync, then the payload */
    uint64_t boottime_ns;
    uint64_t seq;
};
_Static_assert(sizeof(struct journal_record_header) == 32, "record header is 32 bytes on disk");

struct __attribute__((packed)) journal_header_fixed {
    uint32_t version;
    uint32_t role;
    uint8_t journal_id[16];
    uint8_t boot_id[16];
    uint64_t boottime_ns;
    uint64_t monotonic_ns;
    int64_t wall_ns;
    int32_t rank;
    uint32_t world_size;
    uint32_t pid;
    uint32_t restart_count;
};
_Static_assert(sizeof(struct journal_header_fixed) == 80, "header payload starts with 80 bytes");

struct __attribute__((packed)) journal_begin_end {
    uint8_t phase;
    uint8_t thread[3]; /* number of the thread, lowest byte first; 0 = unknown */
    int64_t step;
};
_Static_assert(sizeof(struct journal_begin_end) == 12, "BEGIN and END start with 12 bytes");

#endif
