// The list beside the map: the same pages, reached by keyboard and by screen readers. Only the rows in sight are in the
// document, so that it holds any number of pages.
import { element, uniqueId, count } from "./panel.js";
import { MISSING, SHAPES, categoryColor, css, shapePath, valueColor } from "./colors.js";

const ROW = 42; // pixels, as in map.css
const SPARE = 6; // rows beyond those in sight

/** Returns the order of the list: hits first as they are ranked, then by title. */
export function listOrder(titles, hits) {
  const ranked = new Set(hits);
  const rest = [];
  for (let row = 0; row < titles.length; row++) if (!ranked.has(row)) rest.push(row);
  const keys = rest.map((row) => titles[row].toLowerCase());
  const places = rest.map((_, i) => i).sort((a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : a - b));
  return [...hits, ...places.map((place) => rest[place])];
}

/** Returns the rows of an order whose title or name has all the words. */
export function filteredOrder(order, titles, names, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return order;
  return order.filter((row) => {
    const own = `${titles[row]} ${names[row]}`.toLowerCase();
    return words.every((word) => own.includes(word));
  });
}

/** Makes a chip: a point as it looks on the map. */
export function chip(color, shape) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "-8 -8 16 16");
  svg.setAttribute("class", "mf-chip");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shapePath(shape, 5.6));
  path.setAttribute("fill", css(color));
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}

/** Returns the colour and shape of a row under the current colouring; `plain` where nothing is coloured. */
export function looks(coloring, row, dark, plain) {
  if (coloring.scale === "categories") {
    return { color: categoryColor(coloring.colors[row] ?? MISSING, dark), shape: coloring.shapes[row] ?? 0 };
  }
  if (coloring.scale === "sequence") {
    const value = coloring.values[row];
    return { color: valueColor(value, dark), shape: value >= 0 ? 0 : SHAPES.indexOf("ring") };
  }
  return { color: plain, shape: 0 };
}

/** Returns in words what a row's colour says. */
export function colorWords(coloring, row) {
  if (coloring.scale === "categories") {
    if (coloring.colors[row] === MISSING) return "";
    const entry = coloring.legend.find((one) => one.color === coloring.colors[row] && one.shape === coloring.shapes[row]);
    return entry ? `${coloring.title}: ${entry.text}` : "";
  }
  if (coloring.scale === "sequence") {
    const value = coloring.values[row];
    if (!(value >= 0)) return "";
    const { low, high } = coloring;
    if (typeof low === "number") return `${coloring.by}: ${(low + value * (high - low)).toFixed(2)}`;
  }
  return "";
}

export class PageList {
  /** `on` has open(row), toggle(row), selectAll(rows), clear(), point(row or -1). */
  constructor(on) {
    this.on = on;
    this.names = [];
    this.titles = [];
    this.order = [];
    this.shown = [];
    this.hits = [];
    this.selection = new Set();
    this.open = -1;
    this.at = 0; // position in `shown` of the row that has the cursor
    this.describe = () => ({});
    this.filter = element("input", {
      type: "search",
      placeholder: "Filter pages",
      "aria-label": "Filter the list of pages",
      on: { input: () => this.refilter() },
    });
    this.inner = element("div", { class: "mf-list-inner", role: "presentation" });
    this.box = element("div", {
      class: "mf-list",
      role: "listbox",
      tabindex: "0",
      "aria-multiselectable": "true",
      "aria-label": "Pages of the map",
      on: {
        scroll: () => this.render(),
        keydown: (event) => this.key(event),
        focus: () => this.on.point(this.shown[this.at] ?? -1),
        blur: () => this.on.point(-1),
        click: (event) => this.click(event),
        pointermove: (event) => this.on.point(this.rowOf(event)),
        pointerleave: () => this.on.point(-1),
      },
    }, this.inner);
    this.note = element("p", { class: "mf-list-note mf-soft" });
    this.prefix = uniqueId("mf-page");
    this.sized = new ResizeObserver(() => this.render());
    this.sized.observe(this.box);
  }

  end() {
    this.sized.disconnect();
  }

  setTexts(names, titles) {
    this.names = names;
    this.titles = titles;
    this.reorder();
  }

  setHits(rows) {
    this.hits = rows;
    this.at = 0;
    this.box.scrollTop = 0;
    this.reorder();
  }

  reorder() {
    this.order = listOrder(this.titles, this.hits.filter((row) => row < this.titles.length));
    this.refilter();
  }

  refilter() {
    const cursor = this.shown[this.at];
    this.shown = filteredOrder(this.order, this.titles, this.names, this.filter.value);
    this.at = Math.max(0, this.shown.indexOf(cursor));
    this.note.textContent = this.shown.length
      ? ""
      : this.names.length
        ? "No page has these words."
        : "";
    this.note.hidden = !this.note.textContent;
    this.render();
  }

  /** Draws the rows in sight. */
  render() {
    this.inner.style.height = `${this.shown.length * ROW}px`;
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - SPARE);
    const last = Math.min(this.shown.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + SPARE);
    const made = [];
    for (let place = first; place < last; place++) made.push(this.option(place));
    this.inner.replaceChildren(...made);
    if (this.shown.length) this.box.setAttribute("aria-activedescendant", `${this.prefix}-${this.shown[this.at]}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  option(place) {
    const row = this.shown[place];
    const rank = this.hits.indexOf(row) + 1;
    const { look, words } = this.describe(row);
    const selected = this.selection.has(row);
    return element(
      "div",
      {
        id: `${this.prefix}-${row}`,
        class: `mf-option${place === this.at ? " mf-at" : ""}${row === this.open ? " mf-open" : ""}`,
        role: "option",
        "aria-selected": String(selected),
        "aria-setsize": this.shown.length,
        "aria-posinset": place + 1,
        "data-row": row,
        "data-name": this.names[row],
        style: { top: `${place * ROW}px` },
      },
      element("span", { class: "mf-tick", "aria-hidden": "true", text: selected ? "✓" : "" }),
      look ? chip(look.color, look.shape) : null,
      element(
        "span",
        { class: "mf-option-text" },
        element(
          "span",
          { class: "mf-option-title" },
          rank ? element("b", { class: "mf-rank", text: String(rank), "aria-label": `hit ${rank}:` }) : null,
          this.titles[row] || this.names[row],
        ),
        element("span", { class: "mf-option-name mf-soft" }, words ? `${words} · ${this.names[row]}` : this.names[row]),
      ),
      row === this.open ? element("span", { class: "mf-hidden", text: ", open" }) : null,
    );
  }

  rowOf(event) {
    const option = event.target.closest?.("[data-row]");
    return option ? Number(option.dataset.row) : -1;
  }

  click(event) {
    const row = this.rowOf(event);
    if (row < 0) return;
    this.at = this.shown.indexOf(row);
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) this.on.toggle(row);
    else this.on.open(row);
    this.render();
  }

  /** Moves the cursor to a place and scrolls there. */
  moveTo(place) {
    if (!this.shown.length) return;
    this.at = Math.min(Math.max(place, 0), this.shown.length - 1);
    const top = this.at * ROW;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + ROW - this.box.clientHeight;
    }
    this.render();
  }

  /** Brings a row into sight and puts the cursor there. */
  show(row) {
    const place = this.shown.indexOf(row);
    if (place >= 0) this.moveTo(place);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const row = this.shown[this.at];
    if (event.key in moves) {
      this.moveTo(this.at + moves[event.key]);
      if (event.shiftKey && row !== undefined) this.on.toggle(this.shown[this.at]);
      this.on.point(this.shown[this.at] ?? -1);
    } else if (event.key === "Enter" && row !== undefined) this.on.open(row);
    else if (event.key === " " && row !== undefined) this.on.toggle(row);
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) this.on.selectAll([...this.shown]);
    else if (event.key === "Escape") this.on.clear();
    else if (event.key === "/" && !event.ctrlKey) this.filter.focus();
    else return;
    event.preventDefault();
  }

  /** Says in words what is selected. */
  words() {
    return this.selection.size ? `${count(this.selection.size, "page")} selected` : "";
  }
}
