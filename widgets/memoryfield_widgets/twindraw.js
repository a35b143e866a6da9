// What is drawn on two linked maps: points, lines, numbers, rings. Methods of TwinMaps in twinmaps.js.
import { eased, radiusOf, withoutOverlap } from "./geometry.js";
import { css } from "./colors.js";

const TRAVEL = 700; // milliseconds of a movement to another layout

export const MOST_LINES = 3000; // more would be a grey ground, and slow

/** Returns the rows that moved farthest, the farthest first. */
export function farthest(from, to, most) {
  const square = (row) => (to[2 * row] - from[2 * row]) ** 2 + (to[2 * row + 1] - from[2 * row + 1]) ** 2;
  const far = Float64Array.from({ length: to.length / 2 }, (_, row) => square(row));
  return [...far.keys()].sort((a, b) => far[b] - far[a] || a - b).slice(0, most);
}

/** Returns the rows whose movement is drawn; `all` are so many at most, those that moved farthest. */
export function movingRows(mode, count, numbered, selection, moved = () => []) {
  if (mode === "all") return count > MOST_LINES ? moved() : [...Array(count).keys()];
  if (mode === "selected") return [...selection];
  return mode === "changed" ? numbered : [];
}

/** Returns the numbers of a CSS colour from 0 to 255; white for one that is not understood. */
export function groundOf(color) {
  const found = (color.match(/[\d.]+/g) ?? []).map(Number);
  return found.length >= 3 ? found.slice(0, 3) : [255, 255, 255];
}

/** Returns where the numbers of pages are written: beside their points, those that are changed most first. */
export function besideOf([x, y], radius) {
  return [x + radius + 7, y - radius - 5];
}

export const twinDraw = {
  draw() {
    if (!this.count || !this.size.width) return;
    if (this.moved < 1) {
      this.moved = Math.min((performance.now() - this.began) / TRAVEL, 1);
      if (this.moved < 1) this.redraw();
    }
    const { width, height, ratio } = this.size;
    const style = getComputedStyle(this.node);
    const value = (name) => style.getPropertyValue(name).trim();
    const ground = groundOf(getComputedStyle(this.sides[0].stage).backgroundColor);
    const radius = radiusOf(this.count, this.view.scale / this.home);
    const look = { text: style.color, accent: value("--mf-accent"), soft: value("--mf-text-2"), ground: css(ground), radius };
    for (const side of this.sides) {
      const isWhole = side.painter.draw({
        view: this.view,
        width,
        height,
        ratio,
        moved: eased(this.moved),
        radius,
        ground,
        anyLit: this.selection.size > 0,
      });
      if (!isWhole) this.redraw();
      this.drawAbove(side, look);
    }
  },

  drawAbove(side, look) {
    const { width, height, ratio } = this.size;
    const context = side.above.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.lineCap = "round";
    if (side.number === 1) this.drawMoves(context, look);
    this.drawNear(context, side, look);
    this.drawNumbers(context, side, look);
    this.drawRings(context, side, look);
    if (this.drag?.box && this.drag.side === side) this.drawBox(context, look);
  },

  /** Lines on the second map from where the first has a page to where it is here. */
  drawMoves(context, look) {
    const [first, second] = this.sides;
    const moved = () => (this.farthest ??= farthest(first.goal, second.goal, MOST_LINES));
    const rows = movingRows(this.mode, this.count, this.numbered, this.selection, moved);
    context.strokeStyle = context.fillStyle = look.soft;
    context.lineWidth = 1.2;
    context.globalAlpha = rows.length > 60 ? 0.3 : 0.8;
    for (const row of rows) {
      const from = this.at(first, row);
      const to = this.at(second, row);
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.stroke();
      context.beginPath();
      context.arc(...from, 2.2, 0, 2 * Math.PI); // hollow: where it comes from
      context.stroke();
    }
    context.globalAlpha = 1;
  },

  drawNear(context, side, look) {
    const { row, near } = this.focus;
    if (row < 0) return;
    const from = this.at(side, row);
    context.strokeStyle = look.accent;
    context.lineWidth = 1.8;
    for (const other of near[side.number]) {
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...this.at(side, other));
      context.stroke();
    }
  },

  drawNumbers(context, side, look) {
    context.font = `600 11px ${getComputedStyle(this.node).fontFamily}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const places = this.numbered.map((row) => besideOf(this.at(side, row), look.radius));
    const boxes = places.map(([x, y], i) => ({ left: x - 4 * String(i + 1).length, top: y - 6, width: 8 * String(i + 1).length, height: 12 }));
    for (const i of withoutOverlap(boxes, 0)) {
      const [x, y] = places[i];
      context.lineWidth = 3.5;
      context.strokeStyle = look.ground;
      context.strokeText(String(i + 1), x, y);
      context.fillStyle = look.text;
      context.fillText(String(i + 1), x, y);
    }
  },

  drawRings(context, side, look) {
    const ring = (row, size, color) => {
      if (row < 0) return;
      context.beginPath();
      context.arc(...this.at(side, row), size, 0, 2 * Math.PI);
      context.lineWidth = 4.5;
      context.strokeStyle = look.ground;
      context.stroke();
      context.lineWidth = 2.2;
      context.strokeStyle = color;
      context.stroke();
    };
    ring(this.active, look.radius + 7, look.accent);
    if (this.focus.row !== this.active) ring(this.focus.row, look.radius + 5, look.accent);
    ring(this.pointed, look.radius + 4, look.text);
  },

  drawBox(context, look) {
    const { first, last } = this.drag;
    context.strokeStyle = look.accent;
    context.setLineDash([6, 3]);
    context.lineWidth = 1.5;
    context.strokeRect(first[0], first[1], last[0] - first[0], last[1] - first[1]);
    context.setLineDash([]);
  },
};
