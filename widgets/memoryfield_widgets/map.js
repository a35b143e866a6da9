// The map: points for pages, to look at, to search and to select from. What it knows comes by messages from map.py;
// what is done on it goes there by messages. See panel.py for why.
import { element, tell, hear, watch, shell, reducedMotion, uniqueId } from "./panel.js";
import { Grid } from "./geometry.js";
import { MISSING, plainColor } from "./colors.js";
import { makePainter } from "./paint.js";
import { PageList, colorWords, looks } from "./maplist.js";
import { TOOLS, mapActs } from "./mapacts.js";
import { mapScene } from "./mapscene.js";

const ANSWER_TIME = 5000; // milliseconds after which a silent kernel is mentioned
const NO_COLORS = { scale: "none", title: "", legend: [], by: "none" };

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

class MapView {
  constructor(model, el) {
    this.model = model;
    this.id = uniqueId("view");
    this.seq = 0;
    this.shell = shell(model, el, "map");
    this.points = { version: -1, start: new Float32Array(), goal: new Float32Array() };
    this.names = [];
    this.titles = [];
    this.coloring = NO_COLORS;
    this.selection = new Set();
    this.hits = [];
    this.open = -1;
    this.pointed = -1;
    this.labels = [];
    this.showLabels = true;
    this.hulls = [];
    this.edges = { rows: [], strength: [] };
    this.cards = new Map();
    this.view = { x: 0, y: 0, scale: 100 };
    this.home = 100;
    this.isFitted = true;
    this.moved = 1;
    this.dark = false;
    this.tool = "move";
    this.drag = null;
    this.frames = { count: 0, drawn: 0, times: [] };
    this.size = { width: 0, height: 0, ratio: 1 };
    this.build();
    this.connect();
  }

  // --- what it is made of ---------------------------------------------------------------------------------------------

  build() {
    const { root } = this.shell;
    this.canvas = element("canvas", { class: "mf-map-points", "aria-hidden": "true" });
    this.below = element("canvas", { class: "mf-map-below", "aria-hidden": "true" });
    this.above = element("canvas", { class: "mf-map-above", "aria-hidden": "true" });
    this.card = element("div", { class: "mf-card", hidden: true, "aria-hidden": "true" });
    this.legend = element("details", {
      class: "mf-legend",
      open: true,
      hidden: true,
      on: { click: () => (this.choseLegend = true) },
    });
    this.hint = element("p", { class: "mf-map-hint", hidden: true });
    this.empty = element("p", { class: "mf-map-empty", text: "Placing the pages…" });
    const help = element("p", {
      class: "mf-hidden",
      id: uniqueId("mf-help"),
      text:
        "Arrow keys move the map, plus and minus zoom, 0 shows all, V L and B choose move, lasso and box, " +
        "Escape clears the selection. The list beside the map reaches every page.",
    });
    this.stage = element(
      "div",
      {
        class: "mf-map-stage",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "map",
        "aria-label": "Map of the pages",
        "aria-describedby": help.id,
      },
      this.below,
      this.canvas,
      this.above,
      this.legend,
      this.zoomBar(),
      this.card,
      this.hint,
      this.empty,
    );
    this.painter = makePainter(this.canvas);
    this.canvas = this.painter.canvas;
    this.painter.onRestored = () => this.redraw();

    this.tools = TOOLS.map(([tool, text, title]) =>
      element("button", {
        type: "button",
        text,
        title,
        "aria-pressed": String(tool === this.tool),
        on: { click: () => this.choose(tool) },
      }),
    );
    this.colorBy = element("select", {
      on: { change: () => tell(this.model, "color", { by: this.colorBy.value }) },
    });
    this.layoutBy = element("select", {
      on: { change: () => tell(this.model, "layout", { method: this.layoutBy.value }) },
    });
    const toggle = (text, title, what) =>
      element("button", {
        type: "button",
        text,
        title,
        "data-shows": what,
        "aria-pressed": "false",
        on: {
          click: (event) => {
            const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
            tell(this.model, "show", { what, on });
          },
        },
      });
    this.toggles = [
      toggle("Families", "Outline the families of pages that say the same", "families"),
      toggle("Near pairs", "Join the pages whose vectors are nearest", "pairs"),
      toggle("Labels", "Name the dense regions by their words", "labels"),
    ];
    const button = (text, title, click) => element("button", { type: "button", text, title, on: { click } });
    const group = (label, ...children) =>
      element("div", { class: "mf-row", role: "group", "aria-label": label }, ...children);
    const bar = element(
      "div",
      { class: "mf-map-bar mf-row" },
      group("Tool", ...this.tools),
      group("Show", ...this.toggles),
      element("label", { class: "mf-row" }, "Colour", this.colorBy),
      element("label", { class: "mf-row" }, "Layout", this.layoutBy),
    );
    this.list = new PageList({
      open: (row) => this.openPage(row),
      toggle: (row) => this.select([row], this.selection.has(row) ? "remove" : "add"),
      selectAll: (rows) => this.select(rows, "replace"),
      clear: () => this.select([], "replace"),
      point: (row) => this.point(row, true),
    });
    this.list.describe = (row) => ({
      look: this.coloring.scale === "none" ? null : looks(this.coloring, row, this.dark, plainColor(this.dark)),
      words: colorWords(this.coloring, row),
    });
    this.chosen = element("span", { class: "mf-chosen" });
    this.clearButton = button("Clear", "Select nothing (key Escape)", () => this.select([], "replace"));
    this.zoomButton = button("Zoom", "Zoom in on the selected pages", () => this.showRows([...this.selection]));
    this.clearButton.hidden = this.zoomButton.hidden = true;
    const side = element(
      "div",
      { class: "mf-map-side" },
      this.list.filter,
      this.list.box,
      this.list.note,
      element("div", { class: "mf-row mf-map-foot" }, this.chosen, this.zoomButton, this.clearButton),
    );
    this.caption = element("p", { class: "mf-map-caption mf-soft" });
    root.append(bar, element("div", { class: "mf-map-body" }, this.stage, side), this.caption, help);
    root.memorymap = this; // for tests, and for the curious
  }

  zoomBar() {
    const button = (text, label, title, click) =>
      element("button", { type: "button", text, title, "aria-label": label, on: { click } });
    return element(
      "div",
      { class: "mf-zoom", role: "group", "aria-label": "Zoom" },
      button("+", "Zoom in", "Zoom in (key +)", () => this.zoom(1.5)),
      button("−", "Zoom out", "Zoom out (key −)", () => this.zoom(1 / 1.5)),
      button("All", "Show all", "Show the whole map (key 0)", () => this.showAll()),
    );
  }

  connect() {
    const { onEnd, onTheme } = this.shell;
    onEnd(
      hear(this.model, {
        points: (content, buffers) => this.setPoints(content, buffers),
        texts: (content) => this.setTexts(content),
        colors: (content, buffers) => this.setColors(content, buffers),
        selection: (content, buffers) => this.setSelection(content, buffers),
        hits: (content) => this.setHits(content),
        active: (content) => this.setOpen(content),
        labels: (content) => this.mine(content) && ((this.labels = content.labels), this.redraw()),
        hulls: (content) => this.mine(content) && ((this.hulls = content.groups), this.redraw()),
        pairs: (content, buffers) => this.setPairs(content, buffers),
        card: (content) => this.setCard(content),
        options: (content) => (this.answered(), this.setOptions(content)),
        empty: (content) => this.setEmpty(content.text),
        zoom: (content) => this.mine(content) && this.showRows(content.rows),
      }),
    );
    onEnd(watch(this.model, "height", (height) => this.shell.root.style.setProperty("--mf-map-height", `${height}px`)));
    onTheme((dark) => {
      this.dark = dark;
      this.readTheme();
      this.paintColors();
      this.drawLegend();
      this.list.render();
    });
    const sized = new ResizeObserver(() => this.resize());
    sized.observe(this.stage);
    onEnd(() => sized.disconnect());
    onEnd(() => this.list.end());
    onEnd(() => this.painter.end());
    onEnd(() => cancelAnimationFrame(this.frame));
    this.listen();
    this.still();
    this.expectAnswer();
    tell(this.model, "hello", { view: this.id });
    onEnd(() => {
      clearTimeout(this.waiting);
      clearTimeout(this.hintTimer);
      tell(this.model, "bye", { view: this.id });
    });
  }

  listen() {
    const { stage } = this;
    const on = (event, call, options) => stage.addEventListener(event, call, options);
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.hover(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", () => this.stop());
    on("pointerleave", () => !this.drag && this.point(-1));
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("keydown", (event) => this.key(event));
    on("dblclick", (event) => event.target === this.above && this.showAll());
    on("contextmenu", (event) => event.altKey && event.preventDefault());
  }

  /** Coarse points from the saved state: shown until the kernel answers, and where there is none. */
  still() {
    const bytes = this.model.get("still");
    if (!bytes?.byteLength || this.points.version >= 0) return;
    const coarse = typed(Uint16Array, bytes);
    this.place(Float32Array.from(coarse, (v) => (v / 65535) * 2 - 1));
  }

  /** Says so if the kernel stays silent: it may be busy, gone, or another one than the map was made in. */
  expectAnswer() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.hint.textContent = "No answer from the kernel yet. It is busy, or this cell has to be run again.";
      this.hint.hidden = false;
    }, ANSWER_TIME);
  }

  answered() {
    clearTimeout(this.waiting);
    this.waiting = null;
    if (!this.hintTimer) this.hint.hidden = true;
  }

  mine(content) {
    return content.version === this.points.version;
  }

  // --- what Python says ---------------------------------------------------------------------------------------------

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
  }

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
  }

  /** Returns where the points are now, also in the middle of a movement. */
  current() {
    const { start, goal } = this.points;
    if (this.moved >= 1) return goal;
    return goal.map((value, i) => start[i] + (value - start[i]) * this.moved);
  }

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
  }

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
  }

  setSelection(content, buffers) {
    // my own newer selection is on its way: this answers an older one
    if (!this.mine(content) || (content.view === this.id && content.seq < this.seq)) return;
    this.answered();
    const rows = typed(Int32Array, buffers[0]);
    const isSame = rows.length === this.selection.size && rows.every((row) => this.selection.has(row));
    if (!isSame) this.showSelection(new Set(rows));
    this.shell.root.dataset.answered = `${content.view}:${content.seq}`;
  }

  setHits(content) {
    if (!this.mine(content)) return;
    this.hits = content.rows;
    this.list.setHits(content.rows);
    this.shell.root.dataset.hits = content.rows.length;
    this.redraw();
  }

  setOpen(content) {
    if (!this.mine(content)) return;
    this.open = content.row;
    this.list.open = content.row;
    if (content.row >= 0) this.list.show(content.row);
    this.list.render();
    this.redraw();
  }

  setPairs(content, buffers) {
    if (!this.mine(content)) return;
    this.edges = { rows: typed(Int32Array, buffers[0]), strength: typed(Float32Array, buffers[1]) };
    this.redraw();
  }

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
  }

  setEmpty(text) {
    this.empty.textContent = text;
    this.empty.hidden = !text;
  }

  setCard(content) {
    if (!this.mine(content)) return;
    this.cards.set(content.row, content);
    if (content.row === this.pointed) this.showCard();
  }
}

// The rest of the class stands in two files of its own: what people do, and what is drawn.
Object.assign(MapView.prototype, mapActs, mapScene);

export default {
  render({ model, el }) {
    const view = new MapView(model, el);
    return view.shell.end;
  },
};
