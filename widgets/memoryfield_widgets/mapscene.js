// What the map looks like: its view, the card at the pointer, colours, legend, frames. Methods of MapView in map.js.
import { element, tell } from "./panel.js";
import { bounds, eased, fit, radiusOf, toMap, toScreen, zoomed } from "./geometry.js";
import { SHAPES, categoryColor, css, plainColor, valueColor } from "./colors.js";
import { chip, colorWords } from "./maplist.js";
import { drawAbove, drawBelow, placeOf } from "./mapdraw.js";

const MOVE_TIME = 750; // milliseconds of an animated change of the layout
const REACH = 14; // pixels around the pointer in which a point is hit

export const mapScene = {
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
  },

  refit() {
    const { width, height } = this.size;
    if (!width) return;
    const whole = fit(bounds(this.points.goal), width, height);
    this.home = whole.scale;
    if (this.isFitted) this.view = whole;
    this.redraw();
  },

  showAll() {
    this.isFitted = true;
    this.refit();
  },

  showRows(rows) {
    if (!rows.length) return;
    const { width, height } = this.size;
    const view = fit(bounds(this.points.goal, rows), width, height, 70);
    this.view = { ...view, scale: Math.min(view.scale, this.home * 12) };
    this.isFitted = false;
    this.redraw();
  },

  pan(dx, dy) {
    this.view = { ...this.view, x: this.view.x - dx / this.view.scale, y: this.view.y + dy / this.view.scale };
    this.isFitted = false;
    this.redraw();
  },

  zoom(factor, left = this.size.width / 2, top = this.size.height / 2) {
    const limits = [this.home / 4, this.home * 400];
    this.view = zoomed(this.view, this.size.width, this.size.height, left, top, factor, limits);
    this.isFitted = false;
    this.redraw();
  },

  /** Returns where a row is in the window. */
  at(row) {
    const [x, y] = placeOf(this.points, row, eased(this.moved));
    return toScreen(this.view, this.size.width, this.size.height, x, y);
  },

  /** Returns where a page is on the screen, by its name; null where it is not on the map. */
  screenOf(name) {
    const row = this.names.indexOf(name);
    if (row < 0) return null;
    const box = this.above.getBoundingClientRect();
    const [left, top] = this.at(row);
    return [box.left + left, box.top + top];
  },

  rowAt(left, top) {
    if (!this.grid || this.points.version < 0) return -1;
    const [x, y] = toMap(this.view, this.size.width, this.size.height, left, top);
    return this.grid.nearest(x, y, Math.max(REACH, this.radius() + 3) / this.view.scale);
  },

  radius() {
    return radiusOf(this.points.goal.length / 2, this.view.scale / this.home);
  },

  // --- hover --------------------------------------------------------------------------------------------------------------

  point(row, fromList = false) {
    if (row === this.pointed) return;
    this.pointed = row;
    this.stage.dataset.pointed = row >= 0 ? (this.names[row] ?? "") : "";
    if (row >= 0 && !this.cards.has(row)) tell(this.model, "card", { version: this.points.version, row });
    if (fromList) this.card.hidden = true;
    else this.showCard();
    this.redraw();
  },

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
  },

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
  },

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
  },

  paintLit() {
    const lit = new Uint8Array(this.points.goal.length / 2);
    for (const row of this.selection) lit[row] = 1;
    this.painter.set("lit", lit);
  },

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
  },

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = null;
      this.draw(now);
    });
  },

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
    // a canvas without anything on it would still be blended into every frame
    this.below.hidden = !this.hulls.length && !this.edges.rows.length;
    if (!this.below.hidden) drawBelow(this.below.getContext("2d"), { ...scene, hulls: this.hulls, edges: this.edges });
    if (!this.painter.draw({ ...scene, moved, radius: this.radius(), anyLit })) this.redraw();
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
  },
};
