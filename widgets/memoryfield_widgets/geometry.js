// Plane geometry of the map, without a document: views, lassos, hulls, the nearest point. Node runs it in the tests.
// Points are Float32Arrays of x, y, x, y. A view is {x, y, scale}: the map's point in the middle, and pixels per unit.

/** Returns the smallest box around some points: {left, bottom, right, top}; all points by default. */
export function bounds(xy, rows = null) {
  let left = Infinity;
  let bottom = Infinity;
  let right = -Infinity;
  let top = -Infinity;
  const count = rows ? rows.length : xy.length / 2;
  for (let i = 0; i < count; i++) {
    const at = 2 * (rows ? rows[i] : i);
    if (xy[at] < left) left = xy[at];
    if (xy[at] > right) right = xy[at];
    if (xy[at + 1] < bottom) bottom = xy[at + 1];
    if (xy[at + 1] > top) top = xy[at + 1];
  }
  return count ? { left, bottom, right, top } : { left: -1, bottom: -1, right: 1, top: 1 };
}

/** Returns the view that shows a box in a window of so many pixels, with a margin. */
export function fit(box, width, height, margin = 36) {
  const wide = Math.max(width - 2 * margin, 20);
  const high = Math.max(height - 2 * margin, 20);
  const spanX = Math.max(box.right - box.left, 1e-6);
  const spanY = Math.max(box.top - box.bottom, 1e-6);
  const scale = Math.min(wide / spanX, high / spanY, 1e5);
  return { x: (box.left + box.right) / 2, y: (box.bottom + box.top) / 2, scale };
}

/** Returns where a point of the map is in the window. */
export function toScreen(view, width, height, x, y) {
  return [width / 2 + (x - view.x) * view.scale, height / 2 - (y - view.y) * view.scale];
}

/** Returns which point of the map is at a place in the window. */
export function toMap(view, width, height, left, top) {
  return [view.x + (left - width / 2) / view.scale, view.y - (top - height / 2) / view.scale];
}

/** Returns the view after zooming by a factor around a place in the window; the scale stays between the limits. */
export function zoomed(view, width, height, left, top, factor, limits = [1e-3, 1e6]) {
  const scale = Math.min(Math.max(view.scale * factor, limits[0]), limits[1]);
  const [x, y] = toMap(view, width, height, left, top);
  return { x: x - (left - width / 2) / scale, y: y + (top - height / 2) / scale, scale };
}

/** Says whether a point is in a polygon (x, y, x, y, ...); inside is where a ray crosses an odd number of edges. */
export function inPolygon(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 2; i < polygon.length; j = i, i += 2) {
    const yi = polygon[i + 1];
    const yj = polygon[j + 1];
    if (yi > y !== yj > y && x < ((polygon[j] - polygon[i]) * (y - yi)) / (yj - yi) + polygon[i]) inside = !inside;
  }
  return inside;
}

/** Returns the rows of the points in a polygon, ascending. */
export function rowsInPolygon(xy, polygon) {
  if (polygon.length < 6) return [];
  const box = bounds(polygon);
  const rows = [];
  for (let row = 0, at = 0; at < xy.length; row++, at += 2) {
    const x = xy[at];
    const y = xy[at + 1];
    if (x < box.left || x > box.right || y < box.bottom || y > box.top) continue;
    if (inPolygon(polygon, x, y)) rows.push(row);
  }
  return rows;
}

/** Returns the rows of the points in a box, its edges included, ascending. */
export function rowsInBox(xy, box) {
  const rows = [];
  for (let row = 0, at = 0; at < xy.length; row++, at += 2) {
    if (xy[at] >= box.left && xy[at] <= box.right && xy[at + 1] >= box.bottom && xy[at + 1] <= box.top) rows.push(row);
  }
  return rows;
}

/** Returns a selection after another was put in its place, added to it or taken from it. */
export function combined(old, rows, how) {
  if (how === "replace") return new Set(rows);
  const made = new Set(old);
  for (const row of rows) {
    if (how === "add") made.add(row);
    else made.delete(row);
  }
  return made;
}

/** Returns the convex hull of some points as x, y, x, y, counterclockwise (Andrew's monotone chain). */
export function hull(xy, rows) {
  const points = [...rows].map((row) => [xy[2 * row], xy[2 * row + 1]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (points.length < 3) return points.flat();
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (ordered) => {
    const chain = [];
    for (const point of ordered) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    chain.pop();
    return chain;
  };
  return [...half(points), ...half(points.reverse())].flat();
}

/** Finds the point nearest to a place: the points sorted into the cells of a grid. */
export class Grid {
  constructor(xy) {
    this.xy = xy;
    const count = xy.length / 2;
    this.box = bounds(xy);
    this.side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(count / 2))));
    this.width = Math.max(this.box.right - this.box.left, 1e-6) / this.side;
    this.height = Math.max(this.box.top - this.box.bottom, 1e-6) / this.side;
    const cells = this.side * this.side;
    this.start = new Uint32Array(cells + 1);
    const cellOf = new Uint32Array(count);
    for (let row = 0; row < count; row++) {
      cellOf[row] = this.column(xy[2 * row]) + this.side * this.line(xy[2 * row + 1]);
      this.start[cellOf[row] + 1] += 1;
    }
    for (let cell = 0; cell < cells; cell++) this.start[cell + 1] += this.start[cell];
    const next = this.start.slice(0, cells);
    this.rows = new Uint32Array(count);
    for (let row = 0; row < count; row++) this.rows[next[cellOf[row]]++] = row;
  }

  column(x) {
    return Math.min(this.side - 1, Math.max(0, Math.floor((x - this.box.left) / this.width)));
  }

  line(y) {
    return Math.min(this.side - 1, Math.max(0, Math.floor((y - this.box.bottom) / this.height)));
  }

  /** Returns the row of the nearest point within a distance, or -1. */
  nearest(x, y, within) {
    let best = -1;
    let least = within * within;
    const right = this.column(x + within);
    const top = this.line(y + within);
    for (let line = this.line(y - within); line <= top; line++) {
      for (let column = this.column(x - within); column <= right; column++) {
        const cell = column + this.side * line;
        for (let i = this.start[cell]; i < this.start[cell + 1]; i++) {
          const row = this.rows[i];
          const dx = this.xy[2 * row] - x;
          const dy = this.xy[2 * row + 1] - y;
          const square = dx * dx + dy * dy;
          if (square < least || (square === least && best >= 0 && row > best)) {
            least = square;
            best = row; // of points at one place the one that is drawn last, so on top
          }
        }
      }
    }
    return best;
  }
}

/**
 * Chooses the labels that fit: in the order given, each where it overlaps none before it. A label is
 * {left, top, width, height}; returns their positions in the list.
 */
export function withoutOverlap(labels, gap = 4) {
  const kept = [];
  for (let i = 0; i < labels.length; i++) {
    const a = labels[i];
    const free = kept.every((j) => {
      const b = labels[j];
      return (
        a.left > b.left + b.width + gap ||
        b.left > a.left + a.width + gap ||
        a.top > b.top + b.height + gap ||
        b.top > a.top + a.height + gap
      );
    });
    if (free) kept.push(i);
  }
  return kept;
}

/** Returns the radius of a point in pixels: smaller where there are many, a little larger when zoomed in. */
export function radiusOf(count, zoom) {
  const base = Math.min(6.5, Math.max(1.8, 9.4 - 1.75 * Math.log10(Math.max(count, 10))));
  return Math.min(11, base * Math.max(zoom, 0.2) ** 0.3);
}

/** Returns how far a movement is after a share of its time: slow, quick, slow. */
export function eased(share) {
  const t = Math.min(Math.max(share, 0), 1);
  return t < 0.5 ? 4 * t * t * t : 1 - (-2 * t + 2) ** 3 / 2;
}
