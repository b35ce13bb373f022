// SPDX-License-Identifier: Apache-2.0
// Where the trace's rectangles go: one interface, WebGL2 and, where there is none, a 2-D canvas. Every
// rectangle is opaque and on whole device pixels, so that both draw the same picture.
export type Rgb = readonly [number, number, number]
export interface Surface {
  readonly kind: 'webgl2' | '2d'
  /** Begins a frame of this many device pixels on one background. */
  begin(width: number, height: number, back: Rgb): void
  /** Device pixels, from the upper left corner. */
  rect(x: number, y: number, w: number, h: number, color: Rgb): void
  end(): void
}

const VERTEX = `#version 300 es
layout(location=0) in uvec4 box;
layout(location=1) in vec4 color;
uniform vec2 size;
flat out vec4 fill;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1), at = (vec2(box.xy) + corner * vec2(box.zw)) / size;
  gl_Position = vec4(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0.0, 1.0);
  fill = color;
}`
const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec4 fill;
out vec4 pixel;
void main() { pixel = fill; }`
const BYTES = 12 // a box: x y w h of 16 bits, red green blue alpha of 8

function program(gl: WebGL2RenderingContext): WebGLProgram | null {
  const p = gl.createProgram()
  for (const [type, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
    const s = gl.createShader(type)
    if (!s) return null
    gl.shaderSource(s, text); gl.compileShader(s); gl.attachShader(p, s)
  }
  gl.linkProgram(p)
  return gl.getProgramParameter(p, gl.LINK_STATUS) ? p : null
}

class Gl implements Surface {
  readonly kind = 'webgl2'
  private words = new Uint16Array(4096 * (BYTES / 2))
  private n = 0
  private size: WebGLUniformLocation | null
  constructor(private gl: WebGL2RenderingContext, p: WebGLProgram) {
    gl.useProgram(p)
    this.size = gl.getUniformLocation(p, 'size')
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer())
    gl.enableVertexAttribArray(0); gl.vertexAttribIPointer(0, 4, gl.UNSIGNED_SHORT, BYTES, 0); gl.vertexAttribDivisor(0, 1)
    gl.enableVertexAttribArray(1); gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, BYTES, 8); gl.vertexAttribDivisor(1, 1)
  }
  begin(width: number, height: number, back: Rgb) {
    const gl = this.gl
    this.n = 0
    gl.viewport(0, 0, width, height); gl.uniform2f(this.size, width, height)
    gl.clearColor(back[0] / 255, back[1] / 255, back[2] / 255, 1); gl.clear(gl.COLOR_BUFFER_BIT)
  }
  rect(x: number, y: number, w: number, h: number, color: Rgb) {
    const at = this.n++ * (BYTES / 2)
    if (at + BYTES / 2 > this.words.length) { const more = new Uint16Array(this.words.length * 2); more.set(this.words); this.words = more }
    const o = this.words
    o[at] = x; o[at + 1] = y; o[at + 2] = w; o[at + 3] = h
    o[at + 4] = color[0] | color[1] << 8; o[at + 5] = color[2] | 0xff00
  }
  end() {
    const gl = this.gl
    gl.bufferData(gl.ARRAY_BUFFER, this.words.subarray(0, this.n * (BYTES / 2)), gl.STREAM_DRAW)
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.n)
  }
}

class Flat implements Surface {
  readonly kind = '2d'
  private last: Rgb | null = null
  constructor(private c: CanvasRenderingContext2D) {}
  begin(width: number, height: number, back: Rgb) { this.last = null; this.rect(0, 0, width, height, back) }
  rect(x: number, y: number, w: number, h: number, color: Rgb) {
    if (color !== this.last) { this.c.fillStyle = `rgb(${color[0]},${color[1]},${color[2]})`; this.last = color }
    this.c.fillRect(x, y, w, h)
  }
  end() {}
}

/** The best surface of a canvas that nothing was drawn on; `lost` is called when the GPU takes it away. */
export function surface(canvas: HTMLCanvasElement, plain: boolean, lost: () => void): Surface | null {
  const gl = plain ? null : canvas.getContext('webgl2', { alpha: false, antialias: false, depth: false })
  const p = gl && program(gl)
  if (gl && p) {
    canvas.addEventListener('webglcontextlost', e => { e.preventDefault(); lost() }, { once: true })
    return new Gl(gl, p)
  }
  // A canvas whose WebGL failed cannot become a 2-D one: the caller makes a new one.
  if (gl) { queueMicrotask(lost); return null }
  const c = canvas.getContext('2d', { alpha: false })
  return c && new Flat(c)
}
