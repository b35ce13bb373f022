// SPDX-License-Identifier: Apache-2.0
// Arrows from causes to effects, and which event is the one before and after on the flow.
import type { Flow } from './types'

/** Back: of what led here, what began last. Forward: of what follows, what begins first. */
export function neighbour(flows: Flow[], forward: boolean): Flow | undefined {
  return flows.filter(f => f.begins_here === forward).sort((a, b) => (forward ? a.start_ps - b.start_ps : b.start_ps - a.start_ps))[0]
}

/** One arrow between two places of the canvas, its head at the second. */
export function arrow(c: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number) {
  // Effects stand right of their causes; where they do not, the curve still leaves to the right.
  const bend = Math.max(12, Math.min(80, Math.abs(x1 - x0) / 2)), head = 6
  c.beginPath(); c.moveTo(x0, y0); c.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - head, y1); c.stroke()
  c.beginPath(); c.moveTo(x1, y1); c.lineTo(x1 - head - 2, y1 - 4); c.lineTo(x1 - head - 2, y1 + 4); c.closePath(); c.fill()
}
