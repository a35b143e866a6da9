// The map: points for pages, to look at, to search and to select from. What it knows comes by messages from map.py;
// what is done on it goes there by messages. See panel.py for why.
import { element, tell, hear, watch, shell, reducedMotion, count, uniqueId } from "./panel.js";
import { Grid, bounds, combined, eased, fit, radiusOf, rowsInBox, rowsInPolygon, toMap, toScreen, zoomed } from "./geometry.js";
import { categoryColor, css, plainColor, valueColor, SHAPES } from "./colors.js";
import { makePainter } from "./paint.js";
import { PageList, chip, colorWords, looks } from "./maplist.js";
import { drawAbove, drawBelow, placeOf } from "./mapdraw.js";

const MOVE_TIME = 750; // milliseconds of an animated change of the layout
const CLICK = 5; // pixels that a pointer may move in a click
const REACH = 14; // pixels around the pointer in which a point is hit
const PAN = 60; // pixels of an arrow key
const TOOLS = [
  ["move", "Move", "Drag to move the map, wheel to zoom (key V)"],
  ["lasso", "Lasso", "Draw around pages to select them; Shift adds, Alt removes (key L)"],
  ["box", "Box", "Drag a box to select pages; Shift adds, Alt removes (key B)"],
];
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
        options: (content) => this.setOptions(content),
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
    tell(this.model, "hello", { view: this.id });
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
    this.coloring = renamed || first ? NO_COLORS : this.coloring;
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

  // --- what people do -----------------------------------------------------------------------------------------------

  choose(tool) {
    this.tool = tool;
    this.tools.forEach((button, i) => button.setAttribute("aria-pressed", String(TOOLS[i][0] === tool)));
    this.stage.dataset.tool = tool;
  }

  placeIn(event) {
    const box = this.stage.getBoundingClientRect();
    return [event.clientX - box.left - this.stage.clientLeft, event.clientY - box.top - this.stage.clientTop];
  }

  down(event) {
    if (event.target !== this.above || event.button > 1) return;
    const [left, top] = this.placeIn(event);
    const how = event.shiftKey ? "add" : event.altKey ? "remove" : "replace";
    const tool = event.button === 1 ? "move" : this.tool;
    this.drag = { tool, how, last: [left, top], first: [left, top], points: [left, top], far: false };
    this.stage.setPointerCapture(event.pointerId);
    this.stage.focus({ preventScroll: true, focusVisible: false });
    event.preventDefault();
  }

  hover(event) {
    const [left, top] = this.placeIn(event);
    const { drag } = this;
    if (!drag) {
      this.point(event.target === this.above ? this.rowAt(left, top) : -1);
      return;
    }
    if (!drag.far && Math.hypot(left - drag.first[0], top - drag.first[1]) < CLICK) return;
    drag.far = true;
    this.point(-1);
    if (drag.tool === "move") {
      this.pan(left - drag.last[0], top - drag.last[1]);
      this.stage.dataset.dragging = "true";
    } else {
      for (const step of event.getCoalescedEvents?.() ?? []) drag.points.push(...this.placeIn(step));
      drag.points.push(left, top);
      this.redraw();
    }
    drag.last = [left, top];
  }

  up(event) {
    const { drag } = this;
    if (!drag) return;
    this.stop();
    const [left, top] = this.placeIn(event);
    if (!drag.far) this.click(left, top, drag);
    else if (drag.tool !== "move") {
      drag.points.push(left, top);
      const { width, height } = this.size;
      const polygon = [];
      for (let i = 0; i < drag.points.length; i += 2) {
        polygon.push(...toMap(this.view, width, height, drag.points[i], drag.points[i + 1]));
      }
      const xy = this.points.goal;
      const rows =
        drag.tool === "box"
          ? rowsInBox(xy, bounds([...polygon.slice(0, 2), ...polygon.slice(-2)]))
          : rowsInPolygon(xy, polygon);
      this.select(rows, drag.how);
    }
  }

  click(left, top, drag) {
    const row = this.rowAt(left, top);
    if (row < 0) {
      if (drag.tool !== "move" && drag.how === "replace") this.select([], "replace");
    } else if (drag.how === "replace") this.openPage(row);
    else this.select([row], drag.how);
  }

  stop() {
    this.drag = null;
    delete this.stage.dataset.dragging;
    this.redraw();
  }

  wheel(event) {
    // the page scrolls on over a map that nobody has touched yet
    if (document.activeElement !== this.stage && !event.ctrlKey && !event.metaKey) {
      this.hint.textContent = "Click the map, or hold Ctrl, to zoom with the wheel.";
      this.hint.hidden = false;
      clearTimeout(this.hintTimer);
      this.hintTimer = setTimeout(() => (this.hint.hidden = true), 1600);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const unit = event.deltaMode === 1 ? 30 : 1;
    const [left, top] = this.placeIn(event);
    this.zoom(Math.exp(-Math.max(-120, Math.min(120, event.deltaY * unit)) * 0.0026), left, top);
  }

  key(event) {
    if (event.target !== this.stage || ((event.ctrlKey || event.metaKey) && event.key !== "a")) return;
    const acts = {
      ArrowLeft: () => this.pan(PAN, 0),
      ArrowRight: () => this.pan(-PAN, 0),
      ArrowUp: () => this.pan(0, PAN),
      ArrowDown: () => this.pan(0, -PAN),
      "+": () => this.zoom(1.5),
      "=": () => this.zoom(1.5),
      "-": () => this.zoom(1 / 1.5),
      0: () => this.showAll(),
      v: () => this.choose("move"),
      l: () => this.choose("lasso"),
      b: () => this.choose("box"),
      a: () => (event.ctrlKey || event.metaKey) && this.select([...this.names.keys()], "replace"),
      Escape: () => (this.drag ? this.stop() : this.select([], "replace")),
    };
    const act = acts[event.key] ?? acts[event.key.toLowerCase()];
    if (!act) return;
    act();
    event.preventDefault();
  }

  openPage(row) {
    this.open = row;
    this.list.open = row;
    this.list.render();
    this.redraw();
    tell(this.model, "open", { version: this.points.version, row });
  }

  /** Selects on the spot and tells Python, which answers with what then is selected. */
  select(rows, how) {
    this.showSelection(combined(this.selection, rows, how));
    this.seq += 1;
    const content = { kind: "select", view: this.id, seq: this.seq, how, version: this.points.version };
    this.model.send(content, undefined, [Int32Array.from(rows).buffer]);
  }

  showSelection(selection) {
    this.selection = selection;
    this.list.selection = selection;
    this.chosen.textContent = this.list.words();
    this.clearButton.hidden = this.zoomButton.hidden = selection.size === 0;
    this.shell.root.dataset.selected = selection.size;
    this.shell.say(this.list.words() || "nothing selected");
    this.paintLit();
    this.list.render();
    this.redraw();
  }

  // --- the view ---------------------------------------------------------------------------------------------------------

  resize() {
    const width = this.stage.clientWidth;
    const height = this.stage.clientHeight;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (!width || !height) return;
    // in a small map the legend would cover the points
    if (!this.choseLegend) this.legend.open = width >= 560;
    this.size = { width, height, ratio };
    for (const canvas of [this.canvas, this.below, this.above]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.refit();
    this.draw(performance.now()); // now: a canvas that changed its size is empty
  }

  refit() {
    const { width, height } = this.size;
    if (!width) return;
    const whole = fit(bounds(this.points.goal), width, height);
    this.home = whole.scale;
    if (this.isFitted) this.view = whole;
    this.redraw();
  }

  showAll() {
    this.isFitted = true;
    this.refit();
  }

  showRows(rows) {
    if (!rows.length) return;
    const { width, height } = this.size;
    const view = fit(bounds(this.points.goal, rows), width, height, 70);
    this.view = { ...view, scale: Math.min(view.scale, this.home * 12) };
    this.isFitted = false;
    this.redraw();
  }

  pan(dx, dy) {
    this.view = { ...this.view, x: this.view.x - dx / this.view.scale, y: this.view.y + dy / this.view.scale };
    this.isFitted = false;
    this.redraw();
  }

  zoom(factor, left = this.size.width / 2, top = this.size.height / 2) {
    const limits = [this.home / 4, this.home * 400];
    this.view = zoomed(this.view, this.size.width, this.size.height, left, top, factor, limits);
    this.isFitted = false;
    this.redraw();
  }

  /** Returns where a row is in the window. */
  at(row) {
    const [x, y] = placeOf(this.points, row, eased(this.moved));
    return toScreen(this.view, this.size.width, this.size.height, x, y);
  }

  /** Returns where a page is on the screen, by its name; null where it is not on the map. */
  screenOf(name) {
    const row = this.names.indexOf(name);
    if (row < 0) return null;
    const box = this.above.getBoundingClientRect();
    const [left, top] = this.at(row);
    return [box.left + left, box.top + top];
  }

  rowAt(left, top) {
    if (!this.grid || this.points.version < 0) return -1;
    const [x, y] = toMap(this.view, this.size.width, this.size.height, left, top);
    return this.grid.nearest(x, y, Math.max(REACH, this.radius() + 3) / this.view.scale);
  }

  radius() {
    return radiusOf(this.points.goal.length / 2, this.view.scale / this.home);
  }

  // --- hover --------------------------------------------------------------------------------------------------------------

  point(row, fromList = false) {
    if (row === this.pointed) return;
    this.pointed = row;
    this.stage.dataset.pointed = row >= 0 ? (this.names[row] ?? "") : "";
    if (row >= 0 && !this.cards.has(row)) tell(this.model, "card", { version: this.points.version, row });
    if (fromList) this.card.hidden = true;
    else this.showCard();
    this.redraw();
  }

  showCard() {
    const row = this.pointed;
    this.card.hidden = row < 0;
    if (row < 0) return;
    const more = this.cards.get(row);
    const rank = this.hits.indexOf(row) + 1;
    const words = colorWords(this.coloring, row);
    const line = (label, text) =>
      text ? element("div", {}, element("span", { class: "mf-soft", text: `${label} ` }), text) : null;
    this.card.replaceChildren(
      element("strong", { text: this.titles[row] ?? "" }),
      element("div", { class: "mf-card-name mf-soft", text: this.names[row] ?? "" }),
      more?.summary ? element("p", { text: more.summary }) : "",
      line("created", more?.created) ?? "",
      line("updated", more?.updated) ?? "",
      line("family", more?.family) ?? "",
      line("bytes", more?.bytes) ?? "",
      line("hit", rank ? String(rank) : "") ?? "",
      words ? element("div", { class: "mf-soft", text: words }) : "",
    );
    const [left, top] = this.at(row);
    const { width, height } = this.size;
    const { offsetWidth: wide, offsetHeight: high } = this.card;
    const x = left + 16 + wide > width ? Math.max(4, left - 16 - wide) : left + 16;
    const y = Math.min(Math.max(4, top - high / 2), Math.max(4, height - high - 4));
    this.card.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }

  // --- drawing -----------------------------------------------------------------------------------------------------------

  readTheme() {
    const style = getComputedStyle(this.shell.root);
    const read = (name) => style.getPropertyValue(name).trim();
    const ground = (getComputedStyle(this.stage).backgroundColor.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
    this.colors = {
      ground: ground.slice(0, 3),
      textColor: this.dark ? "#f0f2f5" : "#1b1e23",
      accent: read("--mf-accent"),
      onAccent: read("--mf-on-accent"),
      font: style.fontFamily || "sans-serif",
    };
  }

  paintColors() {
    const rows = this.points.goal.length / 2;
    const color = new Uint8Array(3 * rows);
    const shape = new Uint8Array(rows);
    const size = new Float32Array(rows).fill(1);
    const { coloring, dark } = this;
    const plain = plainColor(dark);
    const table = new Map(); // colours of categories, made once
    for (let row = 0; row < rows; row++) {
      let own = plain;
      if (coloring.scale === "categories") {
        const category = coloring.colors[row];
        own = table.get(category);
        if (!own) table.set(category, (own = categoryColor(category, dark)));
        shape[row] = coloring.shapes[row];
        size[row] = category === 255 ? 0.8 : 1;
      } else if (coloring.scale === "sequence") {
        const value = coloring.values[row];
        own = valueColor(value, dark);
        shape[row] = value >= 0 ? 0 : SHAPES.indexOf("ring");
        size[row] = value >= 0 ? 0.75 + 0.75 * value : 0.7; // the size says the same as the colour
      }
      color.set(own, 3 * row);
    }
    this.painter.set("color", color);
    this.painter.set("shape", shape);
    this.painter.set("size", size);
    this.redraw();
  }

  paintLit() {
    const lit = new Uint8Array(this.points.goal.length / 2);
    for (const row of this.selection) lit[row] = 1;
    this.painter.set("lit", lit);
  }

  drawLegend() {
    const { coloring, dark } = this;
    this.legend.hidden = coloring.scale === "none" || !this.points.goal.length;
    if (this.legend.hidden) return;
    const isOpen = this.legend.open;
    const body = [];
    if (coloring.scale === "categories") {
      body.push(
        element(
          "ul",
          {},
          ...coloring.legend.map((entry) =>
            element(
              "li",
              {},
              chip(categoryColor(entry.color, dark), entry.shape),
              element("span", { text: entry.text, title: entry.text }),
              element("span", { class: "mf-soft", text: entry.count.toLocaleString("en") }),
            ),
          ),
        ),
      );
    } else {
      const steps = Array.from({ length: 9 }, (_, i) => css(valueColor(i / 8, dark)));
      body.push(
        element("div", { class: "mf-ramp", style: { background: `linear-gradient(to right, ${steps.join(", ")})` } }),
        element(
          "div",
          { class: "mf-ramp-ends" },
          element("span", { text: coloring.low_text }),
          element("span", { text: coloring.high_text }),
        ),
      );
      if (coloring.missing) body.push(element("p", { class: "mf-soft", text: coloring.missing }));
    }
    this.legend.replaceChildren(element("summary", { text: coloring.title }), ...body);
    this.legend.open = isOpen;
  }

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = null;
      this.draw(now);
    });
  }

  draw(now) {
    const { width, height, ratio } = this.size;
    if (!width) return;
    if (!this.colors) this.readTheme();
    if (this.moved < 1) {
      this.moved = Math.min(1, (now - this.began) / MOVE_TIME);
      this.redraw();
    }
    const moved = eased(this.moved);
    const at = (row) => this.at(row);
    const anyLit = this.selection.size > 0;
    const scene = { ...this.colors, width, height, ratio, view: this.view, at, dark: this.dark };
    drawBelow(this.below.getContext("2d"), { ...scene, hulls: this.hulls, edges: this.edges });
    this.painter.draw({ ...scene, moved, radius: this.radius(), anyLit });
    drawAbove(this.above.getContext("2d"), {
      ...scene,
      ground: css(this.colors.ground),
      zoom: this.view.scale / this.home,
      labels: this.showLabels && this.moved >= 1 ? this.labels : [],
      hits: this.hits.slice(0, 50),
      open: this.open,
      pointed: this.pointed,
      radius: this.radius(),
      shape: this.drag?.far && this.drag.tool !== "move" ? { ...this.drag, kind: this.drag.tool } : null,
    });
    this.frames.drawn += 1;
    this.shell.root.dataset.painted = this.points.version;
  }
}

export default {
  render({ model, el }) {
    const view = new MapView(model, el);
    return view.shell.end;
  },
};
