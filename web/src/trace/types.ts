// SPDX-License-Identifier: Apache-2.0
// What the parts of the trace view hand each other. Times are ps of the session.
import type { TraceLine } from '../api'
/** `depth` is known for what was drawn and for ends of flows, not for hits of a search. */
export interface Hit { target: string; line: number; index: number; name: string; start_ps: number; dur_ps: number; depth?: number }
export interface Flow { kind: 'launch' | 'cause' | 'async'; begins_here: boolean; line: number; index: number; name: string; start_ps: number; dur_ps: number; depth: number }
export interface Row { head: boolean; title: string; group: string; target: string; tiles: string; line: TraceLine | null; device: boolean; top: number; height: number }
export interface Box { x: number; y: number; w: number; row: Row; name: string; index: number; start: number; dur: number; count: number; depth: number }
