// What is drawn below and above the points of the map: hulls of families, near pairs, labels, hits, the lasso.
import { hull, toScreen, withoutOverlap } from "./geometry.js";
import { categoryColor, css } from "./colors.js";

const FINE_FROM = 2.4; // zoom from which the finer labels show
const MOST_LABELS = 28;
const HULL_PAD = 15; // pixels
const NUMBER = 9.5; // radius of the number of a hit, in pixels

/** The position of each point while it moves. */
export function placeOf(points, row, moved) {
  const { start, goal } = points;
  const at = 2 * row;
  return [start[at] + (goal[at] - start[at]) * moved, start[at + 1] + (goal[at + 1] - start[at + 1]) * moved];
}

/** Returns the outline around some places at a distance from them: the hull of a small circle around each. */
export function paddedHull(places, pad) {
  const around = [];
  for (const [x, y] of places) {
    for (let i = 0; i < 16; i++) around.push(x + pad * Math.cos((i * Math.PI) / 8), y + pad * Math.sin((i * Math.PI) / 8));
  }
  return hull(around, around.slice(0, around.length / 2).keys());
}

/** Draws hulls and pairs, below the points. `at(row)` gives a point's place in the window. */
export function drawBelow(context, { width, height, ratio, hulls, edges, at, dark, textColor }) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.lineJoin = "round";
  context.lineCap = "round";
  if (hulls.length) {
    for (const { rows, color } of hulls) {
      const outline = paddedHull(rows.map(at), HULL_PAD);
      const path = new Path2D();
      for (let i = 0; i < outline.length; i += 2) path.lineTo(outline[i], outline[i + 1]);
      path.closePath();
      context.strokeStyle = context.fillStyle = css(categoryColor(color, dark));
      context.globalAlpha = dark ? 0.2 : 0.13;
      context.fill(path);
      context.globalAlpha = 0.75;
      context.lineWidth = 1.5;
      context.stroke(path);
    }
    context.globalAlpha = 1;
  }
  if (edges.rows.length) {
    context.strokeStyle = textColor;
    context.lineWidth = 1.4;
    for (let i = 0; i < edges.rows.length; i += 2) {
      const [x1, y1] = at(edges.rows[i]);
      const [x2, y2] = at(edges.rows[i + 1]);
      context.globalAlpha = 0.25 + 0.6 * edges.strength[i / 2];
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

/** Chooses which labels show at a zoom: the coarse ones from afar, the finer ones nearby. */
export function labelsAt(labels, zoom) {
  const level = zoom >= FINE_FROM ? 2 : 1;
  const own = labels.filter((label) => label.level === level);
  return own.length ? own : labels.filter((label) => label.level === 1);
}

const WORD_PICTURES = new Map(); // pictures of labels: drawing one anew in each frame takes longer than all the points

/** Returns the picture of a label with a halo, and its width in pixels of the page. */
function wordPicture(text, size, ratio, { ground, textColor, font }) {
  const key = [text, size.toFixed(1), ratio, ground, textColor].join("|");
  let made = WORD_PICTURES.get(key);
  if (!made) {
    if (WORD_PICTURES.size > 400) WORD_PICTURES.clear();
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("2d");
    const face = `600 ${size}px ${font}`;
    context.font = face;
    const width = context.measureText(text).width;
    canvas.width = Math.ceil((width + 8) * ratio);
    canvas.height = Math.ceil((size * 1.5 + 8) * ratio);
    context.scale(ratio, ratio);
    context.font = face;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = ground;
    context.globalAlpha = 0.85; // the points below a word can still be seen
    const [x, y] = [canvas.width / ratio / 2, canvas.height / ratio / 2];
    context.strokeText(text, x, y);
    context.globalAlpha = 1;
    context.fillStyle = textColor;
    context.fillText(text, x, y);
    made = { canvas, width };
    WORD_PICTURES.set(key, made);
  }
  return made;
}

/** Returns the height at which a label covers no number of a hit: its own, or a little above or below, if one of them is free. */
export function clearOf({ left, width, height }, y, numbers) {
  const room = NUMBER + height / 2;
  const isFree = (there) =>
    numbers.every(([x, at]) => x < left - NUMBER || x > left + width + NUMBER || Math.abs(at - there) >= room);
  return [y, y - 12, y + 12, y - 24, y + 24].find(isFree) ?? y;
}

/** Draws labels, numbers of hits, rings and the lasso, above the points. */
export function drawAbove(context, scene) {
  const { width, height, ratio, view, zoom, labels, hits, at, open, pointed, shape, radius } = scene;
  const { ground, textColor, accent, onAccent } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textAlign = "center";
  context.textBaseline = "middle";

  const boxes = [];
  const numbers = hits.map(at);
  for (const label of labelsAt(labels, zoom)) {
    const size = label.level === 1 ? Math.min(16, 11.5 + Math.log2(1 + label.size) * 0.75) : 12;
    const [x, y] = toScreen(view, width, height, label.x, label.y);
    if (x < -80 || y < -20 || x > width + 80 || y > height + 20) continue;
    const picture = wordPicture(label.text, size, ratio, scene);
    const wide = picture.width;
    // a label stays in the window
    const middle = Math.min(Math.max(x, wide / 2 + 6), Math.max(width - wide / 2 - 6, wide / 2 + 6));
    const box = { left: middle - wide / 2, width: wide, height: size, canvas: picture.canvas };
    const clear = clearOf(box, y, numbers);
    boxes.push({ ...box, top: clear - size / 2, y: clear });
  }
  const kept = withoutOverlap(boxes, 5).slice(0, MOST_LABELS);
  for (const i of kept) {
    const { canvas, left, width: wide, y } = boxes[i];
    const [w, h] = [canvas.width / ratio, canvas.height / ratio];
    // on whole pixels, or the letters blur
    const whole = (place) => Math.round(place * ratio) / ratio;
    context.drawImage(canvas, whole(left + wide / 2 - w / 2), whole(y - h / 2), w, h);
  }

  const ring = (row, size, color, wide) => {
    const [x, y] = at(row);
    context.beginPath();
    context.arc(x, y, size, 0, 2 * Math.PI);
    context.lineWidth = wide + 2.5;
    context.strokeStyle = ground;
    context.stroke();
    context.lineWidth = wide;
    context.strokeStyle = color;
    context.stroke();
  };
  if (open >= 0) ring(open, radius + 6, accent, 2.5);

  // the best hit is drawn last, so that its number is on top
  for (let i = hits.length - 1; i >= 0; i--) {
    const [x, y] = at(hits[i]);
    const text = String(i + 1);
    context.beginPath();
    context.arc(x, y, text.length > 1 ? NUMBER + 1.5 : NUMBER, 0, 2 * Math.PI);
    context.fillStyle = accent;
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = ground;
    context.stroke();
    context.font = `700 11.5px ${scene.font}`;
    context.fillStyle = onAccent;
    context.fillText(text, x, y + 0.5);
  }
  if (pointed >= 0) ring(pointed, radius + (hits.includes(pointed) ? 8 : 4), textColor, 2);

  if (shape && shape.points.length >= 4) {
    context.beginPath();
    if (shape.kind === "box") {
      const [x1, y1] = shape.points;
      const [x2, y2] = shape.points.slice(-2);
      context.rect(Math.min(x1, x2), Math.min(y1, y2), Math.abs(x2 - x1), Math.abs(y2 - y1));
    } else {
      context.moveTo(shape.points[0], shape.points[1]);
      for (let i = 2; i < shape.points.length; i += 2) context.lineTo(shape.points[i], shape.points[i + 1]);
      context.closePath();
    }
    context.globalAlpha = 0.14;
    context.fillStyle = accent;
    context.fill("evenodd");
    context.globalAlpha = 1;
    context.lineWidth = 1.6;
    context.strokeStyle = accent;
    context.setLineDash(shape.how === "remove" ? [3, 4] : [7, 3]);
    context.stroke();
    context.setLineDash([]);
  }
}
