// What Python tells the map: points, texts, colours, the selection and the rest. Methods of MapView in map.js.
import { element, reducedMotion } from "./panel.js";
import { Grid } from "./geometry.js";
import { MISSING } from "./colors.js";

export const NO_COLORS = { scale: "none", title: "", legend: [], by: "none" };

/** Turns a buffer of a message into a typed array; a message's buffer may start anywhere. */
export function typed(Kind, view) {
  return new Kind(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

/** Returns the moved coordinates of an earlier layout in the order of a new one; new rows start where they end. */
export function startOf(goal, earlier, from) {
  const start = new Float32Array(goal);
  for (let row = 0; row < goal.length / 2; row++) {
    const old = from ? from[row] : row;
    if (old >= 0 && 2 * old + 1 < earlier.length) {
      start[2 * row] = earlier[2 * old];
      start[2 * row + 1] = earlier[2 * old + 1];
    }
  }
  return start;
}

/** Returns a colouring for the rows of a new layout, until its own comes: pages keep their colours, new ones have none. */
export function carried(coloring, from) {
  const taken = (values, missing) => values.constructor.from(from, (old) => (old >= 0 ? (values[old] ?? missing) : missing));
  if (coloring.scale === "categories") {
    return { ...coloring, colors: taken(coloring.colors, MISSING), shapes: taken(coloring.shapes, 0) };
  }
  return coloring.scale === "sequence" ? { ...coloring, values: taken(coloring.values, NaN) } : coloring;
}

export const mapTold = {
  mine(content) {
    return content.version === this.points.version;
  },

  setPoints(content, buffers) {
    if (content.version === this.points.version) return; // another view said hello
    const goal = typed(Float32Array, buffers[0]);
    const from = buffers[1]?.byteLength ? typed(Int32Array, buffers[1]) : null;
    const first = this.points.version < 0;
    const earlier = this.current();
    const animate = content.animate && !first && goal.length && !reducedMotion();
    const renamed = from !== null;
    this.points.version = content.version;
    this.cards.clear();
    this.pointed = -1;
    if (renamed || first) {
      this.names = [];
      this.titles = [];
      this.selection = new Set();
      this.hits = [];
      this.open = -1;
    }
    this.labels = [];
    this.hulls = [];
    this.edges = { rows: [], strength: [] };
    this.coloring = first ? NO_COLORS : renamed ? carried(this.coloring, from) : this.coloring;
    this.place(goal, animate ? startOf(goal, earlier, from) : null, content.kept && !first);
    this.caption.textContent = content.caption;
    this.setEmpty(content.count ? "" : "No pages to show.");
    this.shell.root.dataset.count = content.count;
    this.shell.root.dataset.method = content.method;
    this.shell.say(content.caption);
    this.drawLegend();
    this.list.render();
  },

  /** Puts the points in place; from `start` they move there. */
  place(goal, start = null, keepView = false) {
    this.points.goal = goal;
    this.points.start = start ?? goal;
    this.moved = start ? 0 : 1;
    this.grid = new Grid(goal);
    const rows = goal.length / 2;
    for (const name of ["start", "goal"]) this.painter.set(name, this.points[name]);
    this.painter.set("size", new Float32Array(rows).fill(1));
    this.painter.set("shape", new Uint8Array(rows));
    this.paintColors();
    this.paintLit();
    if (!keepView) {
      this.isFitted = true;
      this.refit();
    }
    if (start) this.began = performance.now();
    this.redraw();
  },

  /** Returns where the points are now, also in the middle of a movement. */
  current() {
    const { start, goal } = this.points;
    if (this.moved >= 1) return goal;
    return goal.map((value, i) => start[i] + (value - start[i]) * this.moved);
  },

  setTexts(content) {
    if (!this.mine(content)) return;
    if (content.start === 0) {
      this.names = [];
      this.titles = [];
    }
    if (content.start !== this.names.length) return;
    this.names = this.names.concat(content.names);
    this.titles = this.titles.concat(content.titles);
    if (content.last) this.list.setTexts(this.names, this.titles);
  },

  setColors(content, buffers) {
    if (!this.mine(content)) return;
    const coloring = { ...NO_COLORS, ...content };
    if (content.scale === "categories") {
      coloring.colors = typed(Uint8Array, buffers[0]);
      coloring.shapes = typed(Uint8Array, buffers[1]);
    } else if (content.scale === "sequence") coloring.values = typed(Float32Array, buffers[0]);
    this.coloring = coloring;
    this.shell.root.dataset.color = content.by;
    this.paintColors();
    this.drawLegend();
    this.list.render();
  },

  setSelection(content, buffers) {
    // my own newer selection is on its way: this answers an older one
    if (!this.mine(content) || (content.view === this.id && content.seq < this.seq)) return;
    this.answered();
    const rows = typed(Int32Array, buffers[0]);
    const isSame = rows.length === this.selection.size && rows.every((row) => this.selection.has(row));
    if (!isSame) this.showSelection(new Set(rows));
    this.shell.root.dataset.answered = `${content.view}:${content.seq}`;
  },

  setHits(content) {
    if (!this.mine(content)) return;
    this.hits = content.rows;
    this.list.setHits(content.rows);
    this.shell.root.dataset.hits = content.rows.length;
    this.redraw();
  },

  setOpen(content) {
    if (!this.mine(content)) return;
    this.open = content.row;
    this.list.open = content.row;
    if (content.row >= 0) this.list.show(content.row);
    this.list.render();
    this.redraw();
  },

  setPairs(content, buffers) {
    if (!this.mine(content)) return;
    this.edges = { rows: typed(Int32Array, buffers[0]), strength: typed(Float32Array, buffers[1]) };
    this.redraw();
  },

  setOptions(content) {
    const fill = (select, choices, chosen) => {
      select.replaceChildren(...choices.map(([value, text]) => element("option", { value, text })));
      select.value = chosen;
    };
    fill(this.colorBy, content.colors, content.color);
    fill(this.layoutBy, content.layouts, content.layout);
    for (const button of this.toggles) {
      button.setAttribute("aria-pressed", String(content.shown.includes(button.dataset.shows)));
    }
    this.showLabels = content.shown.includes("labels");
    this.redraw();
  },

  setEmpty(text) {
    this.empty.textContent = text;
    this.empty.hidden = !text;
  },

  setCard(content) {
    if (!this.mine(content)) return;
    this.cards.set(content.row, content);
    if (content.row === this.pointed) this.showCard();
  },
};
