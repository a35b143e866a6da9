// The map: points for pages, to look at, to search and to select from. What it knows comes by messages from map.py;
// what is done on it goes there by messages. See panel.py for why.
import { element, tell, hear, watch, shell, uniqueId } from "./panel.js";
import { plainColor } from "./colors.js";
import { makePainter } from "./paint.js";
import { PageList, colorWords, looks } from "./maplist.js";
import { TOOLS, mapActs } from "./mapacts.js";
import { mapScene } from "./mapscene.js";
import { NO_COLORS, mapTold, typed } from "./maptold.js";

const ANSWER_TIME = 5000; // milliseconds after which a silent kernel is mentioned

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
}

// The rest of the class stands in three files: what Python tells, what people do, and what is drawn.
Object.assign(MapView.prototype, mapTold, mapActs, mapScene);

export default {
  render({ model, el }) {
    const view = new MapView(model, el);
    return view.shell.end;
  },
};
