// What people do on the map: tools, drags, clicks, the wheel, keys, selections. Methods of MapView in map.js.
import { tell } from "./panel.js";
import { bounds, combined, rowsInBox, rowsInPolygon, toMap } from "./geometry.js";

const CLICK = 5; // pixels that a pointer may move in a click
const PAN = 60; // pixels of an arrow key
export const TOOLS = [
  ["move", "Move", "Drag to move the map, wheel to zoom (key V)"],
  ["lasso", "Lasso", "Draw around pages to select them; Shift adds, Alt removes (key L)"],
  ["box", "Box", "Drag a box to select pages; Shift adds, Alt removes (key B)"],
];

export const mapActs = {
  choose(tool) {
    this.tool = tool;
    this.tools.forEach((button, i) => button.setAttribute("aria-pressed", String(TOOLS[i][0] === tool)));
    this.stage.dataset.tool = tool;
  },

  placeIn(event) {
    const box = this.stage.getBoundingClientRect();
    return [event.clientX - box.left - this.stage.clientLeft, event.clientY - box.top - this.stage.clientTop];
  },

  down(event) {
    if (event.target !== this.above || event.button > 1) return;
    const [left, top] = this.placeIn(event);
    const how = event.shiftKey ? "add" : event.altKey ? "remove" : "replace";
    const tool = event.button === 1 ? "move" : this.tool;
    this.drag = { tool, how, last: [left, top], first: [left, top], points: [left, top], far: false };
    this.stage.setPointerCapture(event.pointerId);
    this.stage.focus({ preventScroll: true, focusVisible: false });
    event.preventDefault();
  },

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
  },

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
  },

  click(left, top, drag) {
    const row = this.rowAt(left, top);
    if (row < 0) {
      if (drag.tool !== "move" && drag.how === "replace") this.select([], "replace");
    } else if (drag.how === "replace") this.openPage(row);
    else this.select([row], drag.how);
  },

  stop() {
    this.drag = null;
    delete this.stage.dataset.dragging;
    this.redraw();
  },

  wheel(event) {
    // the page scrolls on over a map that nobody has touched yet
    if (document.activeElement !== this.stage && !event.ctrlKey && !event.metaKey) {
      this.hint.textContent = "Click the map, or hold Ctrl, to zoom with the wheel.";
      this.hint.hidden = false;
      clearTimeout(this.hintTimer);
      this.hintTimer = setTimeout(() => {
        this.hint.hidden = true;
        this.hintTimer = null;
      }, 1600);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const unit = event.deltaMode === 1 ? 30 : 1;
    const [left, top] = this.placeIn(event);
    this.zoom(Math.exp(-Math.max(-120, Math.min(120, event.deltaY * unit)) * 0.0026), left, top);
  },

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
  },

  openPage(row) {
    this.open = row;
    this.list.open = row;
    this.list.render();
    this.redraw();
    tell(this.model, "open", { version: this.points.version, row });
  },

  /** Selects on the spot and tells Python, which answers with what then is selected. */
  select(rows, how) {
    this.showSelection(combined(this.selection, rows, how));
    this.seq += 1;
    const content = { kind: "select", view: this.id, seq: this.seq, how, version: this.points.version };
    this.expectAnswer();
    this.model.send(content, undefined, [Int32Array.from(rows).buffer]);
  },

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
  },
};
