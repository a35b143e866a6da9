// Draws the points: with WebGL2 where there is one, else on a plain canvas. One painter owns one canvas.
import { css, shapePath } from "./colors.js";

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

export const DIM = 0.4; // how much is left of points that are not selected: they never vanish

/** Returns a painter for a canvas: WebGL2, or a plain one where there is none. */
export function makePainter(canvas) {
  const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, premultipliedAlpha: true });
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
    if (!this.count) return;
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
      gl.uniform1f(u.alpha, anyLit && pass === 0 ? DIM : 0.92);
      if (pass === 0 || anyLit) gl.drawArrays(gl.POINTS, 0, this.count);
    }
  }

  end() {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext(); // browsers allow only some sixteen at a time
  }
}

class PlainPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.kind = "2d";
    this.sent = {};
    this.pictures = new Map();
  }

  set(name, data) {
    this.sent[name] = data;
  }

  /** A point's picture, drawn once for each colour, shape and size. */
  picture(color, shape, radius, ground) {
    const key = `${color.join()}-${shape}-${radius.toFixed(1)}-${ground.join()}`;
    let made = this.pictures.get(key);
    if (!made) {
      if (this.pictures.size > 4000) this.pictures.clear();
      const side = Math.ceil(2 * radius * 1.3 + 4);
      made = document.createElement("canvas");
      made.width = side;
      made.height = side;
      const context = made.getContext("2d");
      const path = new Path2D(shapePath(shape, radius, side / 2, side / 2));
      context.lineWidth = 1.5;
      context.strokeStyle = css(ground);
      context.stroke(path);
      context.fillStyle = css(color);
      context.fill(path, "evenodd");
      this.pictures.set(key, made);
    }
    return made;
  }

  draw({ view, width, height, ratio, moved, radius, ground, anyLit }) {
    const { context, canvas } = this;
    const { start, goal, color, shape, size, lit } = this.sent;
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!goal) return;
    for (const pass of [0, 1]) {
      if (pass === 1 && !anyLit) continue;
      context.globalAlpha = anyLit && pass === 0 ? DIM : 0.92;
      for (let row = 0, at = 0; at < goal.length; row++, at += 2) {
        if ((lit[row] ? 1 : 0) !== pass) continue;
        const x = start[at] + (goal[at] - start[at]) * moved;
        const y = start[at + 1] + (goal[at + 1] - start[at + 1]) * moved;
        const left = (width / 2 + (x - view.x) * view.scale) * ratio;
        const top = (height / 2 - (y - view.y) * view.scale) * ratio;
        if (left < -20 || top < -20 || left > canvas.width + 20 || top > canvas.height + 20) continue;
        const own = [color[3 * row], color[3 * row + 1], color[3 * row + 2]];
        const picture = this.picture(own, shape[row], radius * ratio * size[row], ground);
        context.drawImage(picture, left - picture.width / 2, top - picture.height / 2);
      }
    }
    context.globalAlpha = 1;
  }

  end() {
    this.pictures.clear();
  }
}
