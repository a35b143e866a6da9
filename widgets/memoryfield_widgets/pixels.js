// Draws the points pixel by pixel, where no graphics card does it: a program that pretends to be one takes several times
// as long. Shapes, edges and colours are those of the shader in paint.js.
import { DIM, FULL } from "./colors.js";

const STEPS = 4; // places within a pixel, each way, that are told apart
const FINE = 8; // radii within a pixel that are told apart
const RADII = 36 * FINE; // the largest point: 11 pixels of a fine screen with two for one, half as large again
const OUTSIDE = 48; // pixels that a point's middle may lie outside of the picture
const ROOM = 100; // pixels around the picture that are drawn on but not shown, so that no point has to be cut
const HALF = 0x800080; // rounds two channels
const SLICE = 9; // milliseconds of drawing in a frame
const WHOLE = Uint32Array.from({ length: 256 }, (_, alpha) => (alpha ? (255 * 65536) / alpha : 0)); // 1 / alpha

const plusAt = (x, y) => Math.min(Math.max(x - 0.3, y - 1), Math.max(y - 0.3, x - 1));
const triangleAt = (x, y) => Math.max(y - 0.8, Math.abs(x) * 0.876 - y * 0.482 - 0.53);

/** How far a place is from the edge of each shape of colors.js with the radius 1; negative inside. */
const DISTANCES = [
  (x, y) => Math.hypot(x, y) - 1,
  (x, y) => Math.max(Math.abs(x), Math.abs(y)) - 0.84,
  (x, y) => (Math.abs(x) + Math.abs(y) - 1.15) * 0.7071,
  triangleAt,
  (x, y) => plusAt(Math.abs(x), Math.abs(y)),
  (x, y) => triangleAt(x, -y),
  (x, y) => plusAt(Math.abs(x + y) * 0.7071, Math.abs(x - y) * 0.7071),
  (x, y) => Math.abs(Math.hypot(x, y) - 0.72) - 0.28,
];

/** Returns two pairs of channels, each in sixteen bits: red with blue, and green with full alpha. */
function paired([red, green, blue]) {
  return [red | (blue << 16), green | 0xff0000];
}

function smooth(low, high, value) {
  const t = Math.min(Math.max((value - low) / (high - low), 0), 1);
  return t * t * (3 - 2 * t);
}

/** A picture of points: pixels with premultiplied colours, and some room around them so that no point is cut. */
export class Pixels {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.stride = width + 2 * ROOM;
    this.words = new Uint32Array(this.stride * (height + 2 * ROOM)); // alpha, blue, green, red from the highest byte down
    this.stamps = new Map();
  }

  /** Returns the stamps of all shapes and radii for points that let through so much of a ground, made as they are used. */
  stampsFor(alpha, ground) {
    const key = `${alpha} ${ground.join()}`;
    let made = this.stamps.get(key);
    if (!made) this.stamps.set(key, (made = new Array(DISTANCES.length * RADII * STEPS * STEPS)));
    return made;
  }

  /**
   * Returns which pixels a point changes, and how: five numbers for each. Its distance from the middle in the picture;
   * the parts of 256 that are the point's colour and what was there before; and the share of the thin edge that keeps
   * points apart, which has the colour of the ground.
   */
  stamp(shape, radius, stepX, stepY, alpha, ground) {
    const size = Math.max(radius, 1) / FINE;
    const [x, y] = [(stepX + 0.5) / STEPS, (stepY + 0.5) / STEPS];
    const reach = Math.ceil(size * 1.3 + 2);
    const made = [];
    for (let row = -reach; row <= reach; row++) {
      for (let column = -reach; column <= reach; column++) {
        const d = size * DISTANCES[shape]((column + 0.5 - x) / size, (row + 0.5 - y) / size);
        const inside = 1 - smooth(-0.6, 0.6, d);
        const cover = Math.round(256 * alpha * Math.max(inside, 0.75 * (1 - smooth(0.4, 1.6, d))));
        if (!cover) continue;
        const own = Math.round(cover * inside);
        const edge = cover - own;
        const [redBlue, greenAlpha] = paired(ground);
        made.push(row * this.stride + column, own, 256 - cover, redBlue * edge + HALF, greenAlpha * edge + HALF);
      }
    }
    return Int32Array.from(made);
  }

  clear() {
    this.words.fill(0);
  }

  /**
   * Draws points from a row on, those that are lit or those that are not (`pass` 1 or 0), onto what is there, until
   * the clock shows `end`. Returns the row to go on with, -1 where all are drawn.
   */
  draw({ start, goal, color, shape, size, lit }, { view, ratio, moved, radius, ground }, pass, alpha, from = 0, end = Infinity) {
    const { words, stride, width, height } = this;
    const stamps = this.stampsFor(alpha, ground);
    const scale = view.scale * ratio;
    const left = width / 2 - view.x * scale;
    const top = height / 2 + view.y * scale;
    const still = moved >= 1;
    const fine = radius * ratio * FINE;
    for (let row = from, at = 2 * from; at < goal.length; row++, at += 2) {
      if ((row & 1023) === 1023 && row > from && performance.now() > end) return row;
      if (lit[row] !== pass) continue;
      const x = left + scale * (still ? goal[at] : start[at] + (goal[at] - start[at]) * moved);
      const y = top - scale * (still ? goal[at + 1] : start[at + 1] + (goal[at + 1] - start[at + 1]) * moved);
      if (!(x > -OUTSIDE && y > -OUTSIDE && x < width + OUTSIDE && y < height + OUTSIDE)) continue;
      const stepX = Math.floor(x * STEPS);
      const stepY = Math.floor(y * STEPS);
      const own = Math.min(Math.round(fine * size[row]), RADII - 1);
      const key = ((shape[row] * RADII + own) * STEPS + (stepX & (STEPS - 1))) * STEPS + (stepY & (STEPS - 1));
      const stamp = (stamps[key] ??= this.stamp(shape[row], own, stepX & (STEPS - 1), stepY & (STEPS - 1), alpha, ground));
      const middle = (Math.floor(stepY / STEPS) + ROOM) * stride + Math.floor(stepX / STEPS) + ROOM;
      const redBlue = color[3 * row] | (color[3 * row + 2] << 16);
      const greenAlpha = color[3 * row + 1] | 0xff0000;
      for (let i = 0; i < stamp.length; i += 5) {
        const place = middle + stamp[i];
        const before = words[place];
        const share = stamp[i + 1];
        const rest = stamp[i + 2];
        // two channels at a time, sixteen bits for each
        const rb = stamp[i + 3] + Math.imul(redBlue, share) + Math.imul(before & 0xff00ff, rest);
        const ga = stamp[i + 4] + Math.imul(greenAlpha, share) + Math.imul((before >>> 8) & 0xff00ff, rest);
        words[place] = ((rb >>> 8) & 0xff00ff) | (ga & 0xff00ff00);
      }
    }
    return -1;
  }

  /** Writes the picture as a canvas wants it: there colours are not premultiplied. */
  into(out) {
    const { words, stride, width, height } = this;
    for (let line = 0, to = 0; line < height; line++) {
      let from = (line + ROOM) * stride + ROOM;
      for (const last = to + width; to < last; from++, to++) {
        const word = words[from];
        const alpha = word >>> 24;
        if (alpha === 0 || alpha === 255) out[to] = word;
        else {
          const by = WHOLE[alpha];
          const red = Math.min(((word & 255) * by + 32768) >>> 16, 255);
          const green = Math.min((((word >>> 8) & 255) * by + 32768) >>> 16, 255);
          const blue = Math.min((((word >>> 16) & 255) * by + 32768) >>> 16, 255);
          out[to] = (alpha << 24) | (blue << 16) | (green << 8) | red;
        }
      }
    }
  }
}

/**
 * A painter for a canvas without WebGL. Where there are more points than can be drawn in a frame, they are drawn in
 * slices, and until they all are, the last whole picture moves and grows with the view.
 */
export class PlainPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.kind = "2d";
    this.sent = {};
    this.whole = null; // the last whole picture: a canvas, and the view that it shows
    this.task = null; // what is being drawn
    this.shown = null; // the scene that is on the canvas as it should be
  }

  set(name, data) {
    this.sent[name] = data;
    this.task = this.shown = null;
  }

  /** Draws for a while; returns whether the picture is whole now. `slice`: milliseconds. */
  draw(scene, slice = SLICE) {
    const { canvas, context } = this;
    const { goal } = this.sent;
    if (!goal?.length) {
      context.clearRect(0, 0, canvas.width, canvas.height);
      this.whole = this.shown = null;
      return true;
    }
    if (this.pixels?.width !== canvas.width || this.pixels.height !== canvas.height) {
      this.pixels = new Pixels(canvas.width, canvas.height);
      this.image = new ImageData(canvas.width, canvas.height);
      this.whole = this.task = this.shown = null;
    }
    if (this.shown && isSame(this.shown, scene)) return true;
    this.task ??= this.begin(scene);
    const { task } = this;
    const end = this.whole ? performance.now() + slice : Infinity; // the first picture appears at once
    while (task.pass < 2) {
      const skipped = task.pass === 1 && !task.scene.anyLit;
      const alpha = task.scene.anyLit && task.pass === 0 ? DIM : FULL;
      const next = skipped ? -1 : this.pixels.draw(this.sent, task.scene, task.pass, alpha, task.row, end);
      if (next >= 0) {
        task.row = next;
        break;
      }
      task.row = 0;
      task.pass += 1;
    }
    if (task.pass === 2) this.finish(task);
    this.show(scene.view, scene.ratio);
    this.shown = task.pass === 2 && isSame(task.scene, scene) ? scene : null;
    return this.shown !== null;
  }

  begin(scene) {
    this.pixels.clear();
    return { scene, pass: 0, row: 0 };
  }

  finish({ scene }) {
    const { width, height } = this.canvas;
    if (this.whole?.canvas.width !== width || this.whole.canvas.height !== height) {
      this.whole = { canvas: Object.assign(document.createElement("canvas"), { width, height }) };
    }
    this.pixels.into(new Uint32Array(this.image.data.buffer));
    this.whole.canvas.getContext("2d").putImageData(this.image, 0, 0);
    this.whole.view = scene.view;
    this.task = null;
  }

  /** Shows the last whole picture as it lies in a view. */
  show(view, ratio) {
    const { context, canvas, whole } = this;
    const { width, height } = canvas;
    const grown = view.scale / whole.view.scale;
    const left = width / 2 + ((whole.view.x - view.x) * view.scale * ratio - (width / 2) * grown);
    const top = height / 2 - ((whole.view.y - view.y) * view.scale * ratio + (height / 2) * grown);
    context.clearRect(0, 0, width, height);
    context.drawImage(whole.canvas, left, top, width * grown, height * grown);
  }

  end() {
    this.pixels = this.image = this.whole = this.task = null;
  }
}

/** Says whether two scenes show their points alike. */
function isSame(one, other) {
  const { view: a } = one;
  const { view: b } = other;
  const sameView = a.x === b.x && a.y === b.y && a.scale === b.scale;
  const sameGround = one.ground.join() === other.ground.join();
  return sameView && sameGround && one.moved === other.moved && one.radius === other.radius && one.anyLit === other.anyLit;
}
