// Pure functions of the map's scripts. Run by test_map_scripts.py:  node --test map_scripts.test.mjs
import assert from "node:assert/strict";
import test from "node:test";

const at = new URL(`file://${process.env.WIDGETS}/`);
const geometry = await import(new URL("geometry.js", at));
const colors = await import(new URL("colors.js", at));
const list = await import(new URL("maplist.js", at));
const panel = await import(new URL("panel.js", at));
const status = await import(new URL("status.js", at));
const told = await import(new URL("maptold.js", at));
const paint = await import(new URL("paint.js", at));
const pixels = await import(new URL("pixels.js", at));
const draw = await import(new URL("mapdraw.js", at));

const square = new Float32Array([0, 0, 1, 0, 1, 1, 0, 1, 0.5, 0.5]);

test("a view shows its box, and places go both ways", () => {
  const view = geometry.fit(geometry.bounds(square), 640, 480, 40);
  assert.equal(view.scale, 400);
  const [left, top] = geometry.toScreen(view, 640, 480, 1, 1);
  assert.deepEqual([left, top], [520, 40]);
  assert.deepEqual(geometry.toMap(view, 640, 480, left, top), [1, 1]);
});

test("a map of one page, or of none, has a view", () => {
  for (const xy of [new Float32Array([3, 4]), new Float32Array()]) {
    const view = geometry.fit(geometry.bounds(xy), 300, 200);
    assert.ok(Number.isFinite(view.scale) && view.scale > 0);
  }
});

test("zooming keeps what is under the pointer, and stays between its limits", () => {
  const view = { x: 0.2, y: 0.3, scale: 100 };
  const before = geometry.toMap(view, 640, 480, 100, 50);
  const after = geometry.toMap(geometry.zoomed(view, 640, 480, 100, 50, 3), 640, 480, 100, 50);
  assert.ok(Math.abs(before[0] - after[0]) < 1e-9 && Math.abs(before[1] - after[1]) < 1e-9);
  assert.equal(geometry.zoomed(view, 640, 480, 0, 0, 1e9, [10, 500]).scale, 500);
});

test("a lasso takes what is inside, also when it is no convex shape", () => {
  const arrow = [-0.2, -0.2, 1.6, -0.2, 0.4, 0.4, -0.2, 1.6];
  assert.deepEqual(geometry.rowsInPolygon(square, arrow), [0, 1, 3]);
  assert.deepEqual(geometry.rowsInPolygon(square, [0, 0, 1, 1]), []);
});

test("a box takes its edges", () => {
  assert.deepEqual(geometry.rowsInBox(square, { left: 0, bottom: 0, right: 0.5, top: 1 }), [0, 3, 4]);
});

test("selections are replaced, added to, taken from", () => {
  assert.deepEqual([...geometry.combined(new Set([1, 2]), [2, 3], "replace")], [2, 3]);
  assert.deepEqual([...geometry.combined(new Set([1, 2]), [2, 3], "add")], [1, 2, 3]);
  assert.deepEqual([...geometry.combined(new Set([1, 2]), [2, 3], "remove")], [1]);
});

test("the grid finds the same nearest point as looking at all", () => {
  let seed = 7;
  const random = () => ((seed = (seed * 16807) % 2147483647) / 2147483647);
  const xy = Float32Array.from({ length: 2000 }, random);
  const grid = new geometry.Grid(xy);
  for (let turn = 0; turn < 200; turn++) {
    const [x, y] = [random() * 1.2 - 0.1, random() * 1.2 - 0.1];
    let best = -1;
    let least = 0.05 ** 2;
    for (let row = 0; row < 1000; row++) {
      const square = (xy[2 * row] - x) ** 2 + (xy[2 * row + 1] - y) ** 2;
      if (square < least) [least, best] = [square, row];
    }
    assert.equal(grid.nearest(x, y, 0.05), best);
  }
  assert.equal(new geometry.Grid(new Float32Array()).nearest(0, 0, 1), -1);
});

test("a hull goes around its points", () => {
  const around = geometry.hull(square, [0, 1, 2, 3, 4]);
  assert.equal(around.length, 8);
  assert.ok(!around.includes(0.5));
  const padded = draw.paddedHull([[0, 0]], 10);
  assert.equal(padded.length, 32);
});

test("labels that overlap give way to those before them", () => {
  const label = (left, top) => ({ left, top, width: 50, height: 12 });
  assert.deepEqual(geometry.withoutOverlap([label(0, 0), label(40, 4), label(80, 0), label(0, 30)]), [0, 2, 3]);
});

test("labels: coarse from afar, fine nearby, and never none", () => {
  const coarse = { level: 1 };
  const fine = { level: 2 };
  assert.deepEqual(draw.labelsAt([coarse, fine], 1), [coarse]);
  assert.deepEqual(draw.labelsAt([coarse, fine], 5), [fine]);
  assert.deepEqual(draw.labelsAt([coarse], 5), [coarse]);
});

test("colours: high values stand out, missing ones are grey, categories differ", () => {
  const light = (color) => 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2];
  assert.ok(light(colors.valueColor(1, false)) < light(colors.valueColor(0, false)));
  assert.ok(light(colors.valueColor(1, true)) > light(colors.valueColor(0, true)));
  assert.deepEqual(colors.valueColor(NaN, false), colors.categoryColor(colors.MISSING, false));
  for (const dark of [false, true]) {
    const all = Array.from({ length: 8 }, (_, i) => colors.css(colors.categoryColor(i, dark)));
    assert.equal(new Set(all).size, 8);
  }
  const paths = colors.SHAPES.map((_, i) => colors.shapePath(i, 5));
  assert.equal(new Set(paths).size, colors.SHAPES.length);
  assert.ok(paths.every((path) => /^M[-\d.e ]+[aL]/.test(path)));
});

test("the list: hits first, then titles; a filter wants all words", () => {
  const titles = ["Winch", "anchor", "Rope and winch"];
  const names = ["w", "a", "r"];
  const order = list.listOrder(titles, [2]);
  assert.deepEqual(order, [2, 1, 0]);
  assert.deepEqual(list.filteredOrder(order, titles, names, "winch"), [2, 0]);
  assert.deepEqual(list.filteredOrder(order, titles, names, "WINCH rope"), [2]);
  assert.deepEqual(list.filteredOrder(order, titles, names, " "), order);
});

test("what a colour says in words", () => {
  const coloring = {
    scale: "categories",
    title: "status",
    colors: new Uint8Array([0, 255]),
    shapes: new Uint8Array([1, 0]),
    legend: [{ text: "done", color: 0, shape: 1 }],
  };
  assert.equal(list.colorWords(coloring, 0), "status: done");
  assert.equal(list.colorWords(coloring, 1), "");
  const scale = { scale: "sequence", by: "similarity", values: new Float32Array([0.5, NaN]), low: 0.2, high: 0.6 };
  assert.equal(list.colorWords(scale, 0), "similarity: 0.40");
  assert.equal(list.colorWords(scale, 1), "");
});

test("the script of the map has a panel to show", async () => {
  assert.equal(typeof (await import(new URL("map.js", at))).default.render, "function");
});

test("a movement begins where a page was, and a new page where it ends", () => {
  const goal = new Float32Array([9, 9, 8, 8]);
  assert.deepEqual([...told.startOf(goal, new Float32Array([1, 2]), new Int32Array([-1, 0]))], [9, 9, 1, 2]);
  assert.deepEqual([...told.startOf(goal, new Float32Array([1, 2, 3, 4]), null)], [1, 2, 3, 4]);
  assert.equal(geometry.eased(0), 0);
  assert.equal(geometry.eased(1), 1);
});

test("a message's buffer may begin anywhere", () => {
  const bytes = new Uint8Array(13);
  new DataView(bytes.buffer).setFloat32(5, 1.5, true);
  assert.deepEqual([...told.typed(Float32Array, new DataView(bytes.buffer, 5, 8))], [1.5, 0]);
});

test("points are smaller where there are many, and never vanish", () => {
  assert.ok(geometry.radiusOf(100, 1) > geometry.radiusOf(100_000, 1));
  assert.ok(geometry.radiusOf(10_000_000, 0.01) > 1);
});

test("words of the status line", () => {
  assert.equal(panel.duration(0.2), "1 second");
  assert.equal(panel.duration(119), "2 minutes");
  assert.equal(panel.duration(NaN), "");
  assert.equal(panel.count(1, "page"), "1 page");
  assert.equal(panel.count(1200, "page"), "1,200 pages");
  const job = { title: "embedding", done: 5, total: 10, left: 12.2 };
  assert.equal(status.jobWords(job), "embedding, 5 of 10 pages, about 12 seconds left");
  assert.equal(status.jobWords({ title: "saving", done: 0, total: 0, left: null }), "saving");
});

test("dark grounds are told from light ones", () => {
  assert.ok(panel.isDark("rgb(17, 19, 22)"));
  assert.ok(!panel.isDark("rgb(255, 255, 255)"));
  assert.ok(!panel.isDark("rgba(0, 0, 0, 0)"));
  assert.ok(panel.isDark("color(srgb 0.1 0.1 0.1)"));
});

test("points stand out from the ground, also those that say little and those that are not selected", () => {
  const linear = (part) => (part / 255 <= 0.04045 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const contrast = (color, ground) => {
    const [low, high] = [luminance(color), luminance(ground)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const grounds = [
    [false, [255, 255, 255]],
    [true, [17, 17, 17]], // of JupyterLab's dark themes, and of the cells' outputs in them
    [true, [33, 33, 33]],
  ];
  for (const [dark, ground] of grounds) {
    const shown = [colors.plainColor(dark), colors.valueColor(NaN, dark), colors.categoryColor(colors.MISSING, dark)];
    for (let i = 0; i < 8; i++) shown.push(colors.categoryColor(i, dark));
    for (let i = 0; i <= 40; i++) shown.push(colors.valueColor(i / 40, dark));
    for (const color of shown) {
      const dim = color.map((part, i) => ground[i] + colors.DIM * (part - ground[i]));
      assert.ok(contrast(color, ground) >= 2.2, `${color} on ${ground}: ${contrast(color, ground)}`);
      assert.ok(contrast(dim, ground) >= 1.3, `dimmed ${color} on ${ground}: ${contrast(dim, ground)}`);
    }
  }
});

test("pages keep their colours while a changed field waits for its own", () => {
  const values = { scale: "sequence", values: new Float32Array([0.25, 0.5, 1]) };
  assert.deepEqual([...told.carried(values, new Int32Array([2, -1, 0])).values], [1, NaN, 0.25]);
  const groups = { scale: "categories", colors: new Uint8Array([3, 4]), shapes: new Uint8Array([1, 2]) };
  const after = told.carried(groups, new Int32Array([-1, 1, 0]));
  assert.deepEqual([[...after.colors], [...after.shapes]], [[colors.MISSING, 4, 3], [0, 2, 1]]);
  assert.equal(told.carried({ scale: "none" }, new Int32Array([0])).scale, "none");
});

test("a label makes room for the numbers of hits, where there is room", () => {
  const box = { left: 100, width: 60, height: 14 };
  assert.equal(draw.clearOf(box, 50, []), 50);
  assert.equal(draw.clearOf(box, 50, [[300, 50]]), 50);
  const moved = draw.clearOf(box, 50, [[120, 51]]);
  assert.ok(Math.abs(moved - 51) >= 16.5 && Math.abs(moved - 50) <= 24);
  const everywhere = Array.from({ length: 20 }, (_, i) => [130, 10 * i]);
  assert.equal(draw.clearOf(box, 50, everywhere), 50);
});

function drawn(points, { anyLit = false, slice = Infinity } = {}, width = 60, height = 40) {
  const count = points.goal.length / 2;
  const made = new pixels.Pixels(width, height);
  const sent = {
    start: points.goal,
    color: new Uint8Array(3 * count).fill(200),
    shape: new Uint8Array(count),
    size: new Float32Array(count).fill(1),
    lit: new Uint8Array(count),
    ...points,
  };
  const scene = { view: { x: 0, y: 0, scale: 10 }, ratio: 1, moved: 1, radius: 4, ground: [255, 255, 255] };
  let row = 0;
  let turns = 0;
  do {
    row = made.draw(sent, scene, 0, anyLit ? colors.DIM : colors.FULL, row, slice === Infinity ? slice : performance.now() - 1);
    turns += 1;
  } while (row >= 0);
  if (anyLit) made.draw(sent, scene, 1, colors.FULL);
  const out = new Uint32Array(width * height);
  made.into(out);
  const at = (x, y) => [0, 8, 16, 24].map((shift) => (out[y * width + x] >>> shift) & 255);
  return { out, at, turns };
}

test("a point drawn pixel by pixel has its colour, a thin edge, and nothing around it", () => {
  const { at } = drawn({ goal: new Float32Array([0.05, -0.05]), color: new Uint8Array([10, 120, 230]) });
  const [red, green, blue, alpha] = at(30, 20);
  assert.ok(Math.abs(red - 10) < 3 && Math.abs(green - 120) < 3 && Math.abs(blue - 230) < 3);
  assert.ok(Math.abs(alpha / 255 - colors.FULL) < 0.01);
  assert.ok(at(35, 20)[0] > 240 && at(35, 20)[3] > 50); // the edge has the colour of the ground
  assert.deepEqual(at(38, 20), [0, 0, 0, 0]);
});

test("points that stick out at the edge are cut, others are not drawn, wherever they are", () => {
  const far = [3, 0, -3.3, 0, 0, 2.2, 0, -2.2, 1e9, 0, NaN, 0, 0, -Infinity, 4e4, -4e4];
  const { out, at } = drawn({ goal: new Float32Array(far) });
  assert.ok(at(59, 20)[3] > 200 && at(0, 20)[3] > 0 && at(30, 0)[3] > 0 && at(30, 39)[3] > 0);
  assert.equal(at(30, 20)[3], 0);
  assert.ok(out.some((word) => word === 0));
});

test("points drawn in slices make the same picture as at once", () => {
  let seed = 5;
  const random = () => ((seed = (seed * 16807) % 2147483647) / 2147483647);
  const goal = Float32Array.from({ length: 9000 }, () => 6 * random() - 3);
  const shape = Uint8Array.from({ length: 4500 }, (_, i) => i % 8);
  const [whole, slices] = [drawn({ goal, shape }), drawn({ goal, shape }, { slice: 0 })];
  assert.equal(whole.turns, 1);
  assert.ok(slices.turns > 3);
  assert.deepEqual(slices.out, whole.out);
});

test("points that are not selected are dim, and lie below those that are", () => {
  const points = { goal: new Float32Array([0, 0, 0, 0, 2, 0]), lit: new Uint8Array([1, 0, 0]) };
  const { at } = drawn({ ...points, color: new Uint8Array([9, 9, 9, 250, 0, 0, 9, 9, 9]) }, { anyLit: true });
  assert.ok(at(30, 20)[0] < 40);
  assert.ok(Math.abs(at(50, 20)[3] / 255 - colors.DIM) < 0.01);
});

test("a program that does a graphics card's work is known by its name", () => {
  for (const name of ["ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)))", "llvmpipe (LLVM 17, 256 bits)"]) {
    assert.ok(paint.isProgram(name));
  }
  assert.ok(!paint.isProgram("ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6)"));
});
