/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says at a glance: steps, operations, and shares of the devices' and hosts' time. What
 * overview_page, get_overview, get_kpi_metrics and check_host_boundness print of it is the same.
 *
 *     struct overview o;
 *     if (!overview_of(profile, a, &o, e)) return false;
 *     const struct overview_percents p = overview_percents_of(&o);
 *     overview_release(&o);
 *
 * Everything lives in the arena but the op_db's maps. Thread: one at a time per arena. */
#ifndef TACHO_ANALYSIS_OVERVIEW_H
#define TACHO_ANALYSIS_OVERVIEW_H

#include "analysis/framework_ops.h"
#include "analysis/host_ops.h"
#include "analysis/program_cost.h"
#include "analysis/step_table.h"

struct overview {
    const struct profile *profile;
    struct op_db db;
    struct framework_rows rows;
    struct host_ops host;
    struct pod_steps pods;
    struct step_summary steps;
    struct program_cost cost;
    struct op_rates rates; /* of the program, over the devices' time */
};

/* Percent; NaN = the profile does not tell. */
struct overview_percents {
    double device_ops, host_ops;     /* of the operations of both, by count */
    double device_eager, host_eager; /* of the operations' self time */
    double device_idle, host_idle;   /* of their time */
    double duty;     /* of the devices' time, working: TPU without waiting for the host */
    double mxu, hbm; /* as the profile's counters say */
    double roofline, memory, compute, hbm_rate; /* of the limit that binds; of each */
    double custom_calls;                        /* of the devices' time */
};

MUST_CHECK bool overview_of(const struct profile *p, struct arena *a, struct overview *out,
                            struct err *e);
void overview_release(struct overview *o);
struct overview_percents overview_percents_of(const struct overview *o);
/* Machines and devices. A CPU has no devices of its own here, as XProf counts. */
uint32_t overview_machines(const struct profile *p);
uint32_t overview_devices(const struct overview *o);

#endif
