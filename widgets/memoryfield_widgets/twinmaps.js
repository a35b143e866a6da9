// Two maps of the same pages that lie over one another: one view for both, the same page lit in both, and lines that
// say where pages moved. Used by models.js.
import { element, reducedMotion } from "./panel.js";
import { Grid, bounds, combined, eased, fit, rowsInBox, toMap, toScreen, zoomed } from "./geometry.js";
import { valueColor } from "./colors.js";
import { makePainter } from "./paint.js";
import { twinDraw } from "./twindraw.js";

const NEAR_POINTER = 14; // pixels around the pointer in which a point is hit
const STILL = 5; // pixels that a pointer may move in a click
const STEP = 60; // pixels of an arrow key
const DIAMOND = 2; // number of the shape in colors.js
const FAINTEST = 0.2; // the colour of pages that did not change; below it points vanish in a light ground

/** Returns the colour of a page by the rank-biased overlap of its neighbours. */
export function changeColor(rbo, dark) {
  return valueColor(FAINTEST + (1 - FAINTEST) * (1 - rbo), dark);
}

export class TwinMaps {
  /** `point(row)` is called when the pointer is on another page (-1: none), `select(rows, open)` on a selection. */
  constructor({ point, select }) {
    this.call = { point, select };
    this.count = 0;
    this.names = [];
    this.numbered = [];
    this.selection = new Set();
    this.active = -1;
    this.pointed = -1;
    this.focus = { row: -1, near: [[], []] };
    this.mode = "changed";
    this.view = { x: 0, y: 0, scale: 200 };
    this.home = 200;
    this.isFitted = true;
    this.dark = false;
    this.moved = 1;
    this.drag = null;
    this.size = { width: 0, height: 0, ratio: 1 };
    this.sides = [0, 1].map((side) => this.makeSide(side));
    this.node = element("div", { class: "mf-twins" }, ...this.sides.map((side) => side.frame));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.sides[0].stage);
  }

  makeSide(number) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const above = element("canvas", { class: "mf-twin-above", "aria-hidden": "true" });
    const stage = element(
      "div",
      { class: "mf-twin-stage", tabindex: "0", role: "application", "aria-roledescription": "map" },
      canvas,
      above,
    );
    const title = element("h4");
    const side = { number, stage, above, title, frame: element("div", {}, title, stage) };
    side.painter = makePainter(canvas);
    side.canvas = side.painter.canvas;
    side.painter.onRestored = () => this.redraw();
    const on = (event, call, options) => stage.addEventListener(event, call, options);
    on("pointerdown", (event) => this.down(side, event));
    on("pointermove", (event) => this.move(side, event));
    on("pointerup", (event) => this.up(side, event));
    on("pointercancel", () => this.stop());
    on("pointerleave", () => !this.drag && this.point(-1));
    on("wheel", (event) => this.wheel(side, event), { passive: false });
    on("keydown", (event) => this.key(event));
    on("dblclick", () => this.showAll());
    return side;
  }

  // --- what is shown --------------------------------------------------------------------------------------------------

  setPoints({ names, titles, numbered, pair, kinds }, places, rbo) {
    const same = names.length === this.names.length && names.every((name, row) => name === this.names[row]);
    this.names = names;
    this.titles = titles;
    this.count = names.length;
    this.rows = new Map(names.map((name, row) => [name, row]));
    this.numbered = numbered.map((name) => this.rows.get(name)).filter((row) => row !== undefined);
    this.rbo = rbo;
    this.farthest = null; // rows, once their lines are asked for
    const animate = same && !reducedMotion();
    for (const side of this.sides) {
      const start = animate && side.goal ? side.goal : places[side.number];
      side.goal = places[side.number];
      side.start = start;
      side.grid = new Grid(side.goal);
      side.title.textContent = `${pair[side.number]} (${kinds[side.number]})`;
      side.stage.setAttribute(
        "aria-label",
        `Map of ${pair[side.number]}. Arrow keys move both maps, plus and minus zoom, 0 shows all, N and P go to the pages that changed most, Enter selects`,
      );
      side.painter.set("start", start);
      side.painter.set("goal", side.goal);
    }
    if (!same) {
      this.selection = new Set();
      this.active = this.pointed = -1;
      this.isFitted = true;
    }
    this.focus = { row: -1, near: [[], []] };
    this.paint();
    if (this.isFitted) this.refit();
    this.moved = animate ? 0 : 1;
    this.began = performance.now();
    this.redraw();
  }

  paint() {
    if (!this.count) return;
    const colors = new Uint8Array(3 * this.count);
    const shapes = new Uint8Array(this.count);
    const sizes = new Float32Array(this.count).fill(1);
    for (let row = 0; row < this.count; row++) colors.set(changeColor(this.rbo[row], this.dark).map(Math.round), 3 * row);
    for (const row of this.numbered) {
      shapes[row] = DIAMOND;
      sizes[row] = 1.35;
    }
    for (const { painter } of this.sides) {
      painter.set("color", colors);
      painter.set("shape", shapes);
      painter.set("size", sizes);
    }
    this.paintLit();
  }

  paintLit() {
    const lit = new Uint8Array(this.count);
    for (const row of this.selection) lit[row] = 1;
    for (const { painter } of this.sides) painter.set("lit", lit);
  }

  setSelection(names, active) {
    const rows = names.map((name) => this.rows?.get(name)).filter((row) => row !== undefined);
    this.selection = new Set(rows);
    this.active = this.rows?.get(active) ?? -1;
    this.paintLit();
    this.redraw();
  }

  /** Lights one page with lines to its neighbours in both maps; a name that is no page lights none. */
  setFocus(name, near) {
    const rowOf = (other) => this.rows?.get(other);
    const row = rowOf(name) ?? -1;
    const rows = near.map((names) => names.map(rowOf).filter((other) => other !== undefined));
    this.focus = { row, near: row < 0 ? [[], []] : rows };
    this.redraw();
  }

  setLines(mode) {
    this.mode = mode;
    this.redraw();
  }

  theme(dark) {
    this.dark = dark;
    this.paint();
    this.redraw();
  }

  // --- drawing --------------------------------------------------------------------------------------------------------

  resize() {
    const box = this.sides[0].stage.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.size = { width: this.sides[0].stage.clientWidth, height: this.sides[0].stage.clientHeight, ratio };
    for (const { canvas, above } of this.sides) {
      for (const one of [canvas, above]) {
        one.width = Math.round(this.size.width * ratio);
        one.height = Math.round(this.size.height * ratio);
      }
    }
    if (this.isFitted) this.refit();
    this.redraw();
  }

  refit() {
    if (!this.count || !this.size.width) return;
    const [a, b] = this.sides.map((side) => bounds(side.goal));
    const box = {
      left: Math.min(a.left, b.left),
      bottom: Math.min(a.bottom, b.bottom),
      right: Math.max(a.right, b.right),
      top: Math.max(a.top, b.top),
    };
    this.view = fit(box, this.size.width, this.size.height);
    this.home = this.view.scale;
  }

  showAll() {
    this.isFitted = true;
    this.refit();
    this.redraw();
  }

  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  at(side, row) {
    const { width, height } = this.size;
    const { start, goal } = side;
    const share = eased(this.moved);
    const x = start[2 * row] + (goal[2 * row] - start[2 * row]) * share;
    const y = start[2 * row + 1] + (goal[2 * row + 1] - start[2 * row + 1]) * share;
    return toScreen(this.view, width, height, x, y);
  }

  // --- what people do -------------------------------------------------------------------------------------------------

  placeIn(side, event) {
    const box = side.stage.getBoundingClientRect();
    return [event.clientX - box.left - side.stage.clientLeft, event.clientY - box.top - side.stage.clientTop];
  }

  rowAt(side, [left, top]) {
    if (!side.grid) return -1;
    const [x, y] = toMap(this.view, this.size.width, this.size.height, left, top);
    return side.grid.nearest(x, y, NEAR_POINTER / this.view.scale);
  }

  down(side, event) {
    if (event.button !== 0) return;
    const first = this.placeIn(side, event);
    this.drag = { side, first, last: first, far: false, box: event.shiftKey || event.altKey, how: event.altKey ? "remove" : "add" };
    side.stage.setPointerCapture(event.pointerId);
  }

  move(side, event) {
    const here = this.placeIn(side, event);
    if (!this.drag) {
      this.point(this.rowAt(side, here));
      return;
    }
    const { drag } = this;
    if (Math.hypot(here[0] - drag.first[0], here[1] - drag.first[1]) > STILL) drag.far = true;
    if (drag.far && !drag.box) this.pan(here[0] - drag.last[0], here[1] - drag.last[1]);
    drag.last = here;
    this.redraw();
  }

  up(side, event) {
    const { drag } = this;
    this.stop();
    if (!drag) return;
    if (!drag.far) {
      const row = this.rowAt(side, this.placeIn(side, event));
      if (drag.box && row >= 0) this.choose(combined(this.selection, [row], this.selection.has(row) ? "remove" : "add"), false);
      else this.choose(row < 0 ? [] : [row], row >= 0);
    } else if (drag.box) {
      const [a, b] = [drag.first, drag.last].map((at) => toMap(this.view, this.size.width, this.size.height, ...at));
      const box = { left: Math.min(a[0], b[0]), right: Math.max(a[0], b[0]), bottom: Math.min(a[1], b[1]), top: Math.max(a[1], b[1]) };
      this.choose(combined(this.selection, rowsInBox(side.goal, box), drag.how), false);
    }
  }

  stop() {
    this.drag = null;
    this.redraw();
  }

  choose(rows, open) {
    this.selection = new Set(rows);
    this.paintLit();
    this.redraw();
    this.call.select([...this.selection], open);
  }

  point(row) {
    if (row === this.pointed) return;
    this.pointed = row;
    this.redraw();
    this.call.point(row);
  }

  pan(right, down) {
    this.isFitted = false;
    this.view = { ...this.view, x: this.view.x - right / this.view.scale, y: this.view.y + down / this.view.scale };
    this.redraw();
  }

  zoom(factor, left = this.size.width / 2, top = this.size.height / 2) {
    this.isFitted = false;
    this.view = zoomed(this.view, this.size.width, this.size.height, left, top, factor, [this.home / 8, this.home * 400]);
    this.redraw();
  }

  wheel(side, event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(Math.exp(-Math.max(-300, Math.min(300, event.deltaY * lines)) / 400), ...this.placeIn(side, event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey) return;
    const acts = {
      ArrowLeft: () => this.pan(STEP, 0),
      ArrowRight: () => this.pan(-STEP, 0),
      ArrowUp: () => this.pan(0, STEP),
      ArrowDown: () => this.pan(0, -STEP),
      "+": () => this.zoom(1.5),
      "=": () => this.zoom(1.5),
      "-": () => this.zoom(1 / 1.5),
      0: () => this.showAll(),
      n: () => this.step(1),
      p: () => this.step(-1),
      Enter: () => this.pointed >= 0 && this.choose([this.pointed], true),
      Escape: () => this.choose([], false),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Goes to the next of the pages that changed most. */
  step(by) {
    if (!this.numbered.length) return;
    const at = this.numbered.indexOf(this.pointed);
    const next = at < 0 ? (by > 0 ? 0 : this.numbered.length - 1) : (at + by + this.numbered.length) % this.numbered.length;
    this.point(this.numbered[next]);
  }

  end() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    for (const { painter } of this.sides) painter.end();
  }
}

// The rest of the class stands in a file of its own.
Object.assign(TwinMaps.prototype, twinDraw);
