// Draws the points: with WebGL2 where a graphics card does it, else pixel by pixel. One painter owns one canvas.
import { DIM, FULL } from "./colors.js";
import { PlainPainter } from "./pixels.js";

const VERTEX = `#version 300 es
in vec2 start;
in vec2 goal;
in vec3 color;
in float shape;
in float size;
in float lit;
uniform vec2 middle;
uniform vec2 perPixel;
uniform float scale;
uniform float moved;
uniform float radius;
uniform float pass;
out vec3 vColor;
flat out int vShape;
out float vRadius;
out float vSide;
void main() {
  vec2 at = (mix(start, goal, moved) - middle) * scale * perPixel;
  // two passes: what is dim first, what is lit on top of it
  gl_Position = abs(lit - pass) < 0.5 ? vec4(at, 0.0, 1.0) : vec4(4.0, 4.0, 0.0, 1.0);
  vRadius = radius * size;
  vColor = color;
  vShape = int(shape + 0.5);
  // circles and rings need less room than what has corners: fewer pixels to look at
  vSide = 2.0 * vRadius * (vShape == 0 || vShape == 7 ? 1.0 : 1.3) + 4.0;
  gl_PointSize = vSide;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec3 vColor;
flat in int vShape;
in float vRadius;
in float vSide;
uniform vec3 ground;
uniform float alpha;
uniform float pixel;
out vec4 result;
float plusAt(vec2 p) {
  return min(max(p.x - 0.3, p.y - 1.0), max(p.y - 0.3, p.x - 1.0));
}
float triangleAt(vec2 p) {
  return max(p.y - 0.8, abs(p.x) * 0.876 - p.y * 0.482 - 0.53);
}
void main() {
  vec2 p = (gl_PointCoord - 0.5) * vSide / vRadius;
  float d;
  if (vShape == 1) d = max(abs(p.x), abs(p.y)) - 0.84;
  else if (vShape == 2) d = (abs(p.x) + abs(p.y) - 1.15) * 0.7071;
  else if (vShape == 3) d = triangleAt(p);
  else if (vShape == 4) d = plusAt(abs(p));
  else if (vShape == 5) d = triangleAt(vec2(p.x, -p.y));
  else if (vShape == 6) d = plusAt(abs(vec2(p.x + p.y, p.x - p.y) * 0.7071));
  else if (vShape == 7) d = abs(length(p) - 0.72) - 0.28;
  else d = length(p) - 1.0;
  d *= vRadius; // in pixels of the canvas
  float inside = 1.0 - smoothstep(-0.6 * pixel, 0.6 * pixel, d);
  float halo = 1.0 - smoothstep(0.4 * pixel, 1.6 * pixel, d);
  if (halo <= 0.0) discard;
  // a thin edge in the colour of the ground keeps points apart where they lie on one another
  float cover = max(inside, 0.75 * halo) * alpha;
  result = vec4(mix(ground, vColor, inside) * cover, cover);
}`;

const WANTED = { alpha: true, antialias: false, premultipliedAlpha: true, failIfMajorPerformanceCaveat: true };
let hasCard = null; // asked once: each context that is made takes the place of one that shows something

/** Says whether a name of what draws is that of a program that does a graphics card's work, slowly. */
export function isProgram(renderer) {
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
}

function cardDraws() {
  const gl = document.createElement("canvas").getContext("webgl2", WANTED);
  if (!gl) return false;
  const names = gl.getExtension("WEBGL_debug_renderer_info");
  const renderer = gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return !isProgram(String(renderer));
}

/**
 * Returns a painter for a canvas: WebGL2 where a graphics card does the work, else a plain one. Its `draw(scene)` says
 * whether the picture is whole; if not, it wants to be called again.
 */
export function makePainter(canvas) {
  hasCard ??= cardDraws();
  const gl = hasCard ? canvas.getContext("webgl2", WANTED) : null;
  if (gl) {
    try {
      return new GlPainter(canvas, gl);
    } catch (error) {
      console.warn("memoryfield map: drawing without WebGL:", error);
      const plain = canvas.cloneNode(); // a canvas that once had WebGL gives no other context
      canvas.replaceWith(plain);
      return new PlainPainter(plain);
    }
  }
  return new PlainPainter(canvas);
}

function compiled(gl, kind, source) {
  const shader = gl.createShader(kind);
  gl.shaderSource(shader, source);
  gl.compileShader(shader);
  if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader) ?? "no shader");
  return shader;
}

class GlPainter {
  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.kind = "webgl2";
    this.count = 0;
    this.sent = {};
    this.setUp();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.setUp();
      for (const [name, data] of Object.entries(this.sent)) this.set(name, data);
      this.onRestored?.();
    });
  }

  setUp() {
    const { gl } = this;
    const program = gl.createProgram();
    gl.attachShader(program, compiled(gl, gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, compiled(gl, gl.FRAGMENT_SHADER, FRAGMENT));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) ?? "no program");
    this.program = program;
    this.array = gl.createVertexArray();
    this.buffers = {};
    this.places = {};
    for (const name of ["start", "goal", "color", "shape", "size", "lit"]) {
      this.places[name] = gl.getAttribLocation(program, name);
      this.buffers[name] = gl.createBuffer();
    }
    this.uniforms = {};
    for (const name of ["middle", "perPixel", "scale", "moved", "radius", "pass", "ground", "alpha", "pixel"]) {
      this.uniforms[name] = gl.getUniformLocation(program, name);
    }
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** Hands over one attribute of all points: start, goal (Float32), color (Uint8, three each), shape, size, lit. */
  set(name, data) {
    const { gl } = this;
    this.sent[name] = data;
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
    const width = { start: 2, goal: 2, color: 3 }[name] ?? 1;
    const bytes = data instanceof Uint8Array;
    gl.enableVertexAttribArray(this.places[name]);
    gl.vertexAttribPointer(this.places[name], width, bytes ? gl.UNSIGNED_BYTE : gl.FLOAT, name === "color", 0, 0);
    if (name === "goal") this.count = data.length / 2;
  }

  draw({ view, width, height, ratio, moved, radius, ground, anyLit }) {
    const { gl, uniforms: u } = this;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.count) return true;
    gl.useProgram(this.program);
    gl.bindVertexArray(this.array);
    gl.uniform2f(u.middle, view.x, view.y);
    gl.uniform2f(u.perPixel, 2 / width, 2 / height);
    gl.uniform1f(u.scale, view.scale);
    gl.uniform1f(u.moved, moved);
    gl.uniform1f(u.radius, radius * ratio);
    gl.uniform1f(u.pixel, 1);
    gl.uniform3f(u.ground, ground[0] / 255, ground[1] / 255, ground[2] / 255);
    for (const pass of [0, 1]) {
      gl.uniform1f(u.pass, pass);
      gl.uniform1f(u.alpha, anyLit && pass === 0 ? DIM : FULL);
      if (pass === 0 || anyLit) gl.drawArrays(gl.POINTS, 0, this.count);
    }
    return true;
  }

  end() {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext(); // browsers allow only some sixteen at a time
  }
}
