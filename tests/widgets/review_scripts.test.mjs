// Pure functions of the scripts of families, models and probes. Run by test_review_scripts.py.
import assert from "node:assert/strict";
import test from "node:test";

const at = new URL(`file://${process.env.WIDGETS}/`);
const families = await import(new URL("families.js", at));
const merging = await import(new URL("merging.js", at));
const models = await import(new URL("models.js", at));
const twins = await import(new URL("twinmaps.js", at));
const lines = await import(new URL("twindraw.js", at));
const probes = await import(new URL("probes.js", at));
const status = await import(new URL("status.js", at));
const panel = await import(new URL("panel.js", at));

const inside = (selector) => ({ closest: (asked) => (asked.split(", ").includes(selector) ? {} : null) });
const key = (name, more = {}) => ({ key: name, ...more });

test("keys of the review answer, whatever their case; shortcuts of the browser stay its own", () => {
  const said = ["s", "D", "u", "n", " ", "b"].map((name) => families.reviewKey(key(name), inside("div")));
  assert.deepEqual(said, ["same", "different", "unsure", "skip", "skip", "back"]);
  assert.equal(families.reviewKey(key("s", { ctrlKey: true }), inside("div")), null);
  assert.equal(families.reviewKey(key("x"), inside("div")), null);
  assert.equal(families.reviewKey(key("Shift"), inside("div")), null);
});

test("what is typed into a field is no answer, and the space bar presses the button that has the focus", () => {
  for (const field of ["input", "textarea", "select"]) assert.equal(families.reviewKey(key("s"), inside(field)), null);
  assert.equal(families.reviewKey(key(" "), inside("button")), null);
  assert.equal(families.reviewKey(key("d"), inside("button")), "different");
});

test("the score says what is expected with its interval, and how many answers are left", () => {
  const score = { families: 29, inside: 63, pages: 180, estimate: 0.758, low: 0.23, high: 0.98, answers: 1, worthwhile: 14 };
  assert.equal(
    families.scoreWords(score),
    "29 families, 63 of 180 pages. Of the pairs inside, 76 % are expected to be right (90 % interval: 23 % to 98 %).",
  );
  assert.equal(families.leftWords(score), "1 answer so far; about 14 more are worthwhile.");
  assert.equal(families.leftWords({ ...score, answers: 17, worthwhile: 0 }), "17 answers so far; more would change little.");
  assert.equal(families.scoreWords({ ...score, families: 0, inside: 0 }), "0 families, 0 of 180 pages.");
  assert.equal(families.scoreWords({}) + families.leftWords({}), "");
});

test("shared words are counted over title, summary and body; what stands between words is none", () => {
  const page = { title: [["Winch brake", 1]], summary: [["old", 2], [", ", 0]], body: [["grease it", 1], ["now", 2]] };
  assert.deepEqual(families.sharedWords(page), { all: 6, equal: 4 });
});

test("lines of a diff are told apart", () => {
  const lines = ["--- a/x.md", "+++ b/x.md", "@@ -1 +1 @@", "+new", "-old", " same", "", "- item of a list"];
  const classes = lines.map((line) => merging.diffClass(line).replace("mf-diff-", ""));
  assert.deepEqual(classes, ["file", "file", "place", "new", "old", "line", "line", "old"]);
});

test("an account says in words whether something is missing", () => {
  const plan = { counts: { kept: 4, lost: 1 }, complete: false, lost: 1 };
  assert.equal(merging.accountWords(plan), "5 sentences: 4 kept, 1 lost; 1 sentence is missing and blocks the merge");
  assert.equal(merging.accountWords({ counts: { kept: 1 }, complete: true, lost: 0 }), "1 sentence: 1 kept; nothing is missing");
});

test("the notes of a plan name both sides, the links and the second page", () => {
  const near = [{ first: "One.", first_page: "a", second: "One!", second_page: "b" }];
  const notes = merging.planNotes({
    near,
    keys: [{ key: "owner", kept: "Ines", others: [["b", "Kofi"]] }],
    links: [{ name: "c", count: 2 }],
    second: { name: "a-part-2" },
    notes: ["too long"],
  });
  assert.deepEqual(notes, [
    "Almost the same, both kept: “One.” (a) and “One!” (b)",
    "Frontmatter owner: Ines stays; Kofi in b",
    "2 links rewritten in c",
    "Second page: a-part-2",
    "too long",
  ]);
});

test("how a page changed is said with what a model does not read", () => {
  const page = { overlap: 0.3, rbo: 0.256, read: { small: 0.5 } };
  assert.equal(models.changeWords(page), "30 % of its neighbours are the same; rank-biased overlap 0.26; small reads 50 % of it");
});

test("lines are drawn for what was chosen", () => {
  assert.deepEqual(lines.movingRows("changed", 5, [3, 1], new Set([2])), [3, 1]);
  assert.deepEqual(lines.movingRows("selected", 5, [3, 1], new Set([2])), [2]);
  assert.deepEqual(lines.movingRows("all", 3, [], new Set()), [0, 1, 2]);
  assert.deepEqual(lines.movingRows("none", 3, [1], new Set([2])), []);
  assert.deepEqual(lines.movingRows("all", lines.MOST_LINES + 1, [], new Set(), () => [7]), [7]);
  const [from, to] = [new Float32Array([0, 0, 1, 1, 2, 2, 0, 0]), new Float32Array([0, 1, 1, 1, 5, 2, 1, 0])];
  assert.deepEqual(lines.farthest(from, to, 3), [2, 0, 3]);
});

test("pages that kept their neighbours are seen on both grounds", () => {
  const light = twins.changeColor(1, false);
  const dark = twins.changeColor(1, true);
  const brightness = ([red, green, blue]) => 0.299 * red + 0.587 * green + 0.114 * blue;
  assert.ok(brightness(light) < 190 && brightness(dark) > 60, `${light} ${dark}`);
  assert.notDeepEqual(twins.changeColor(0, false), light);
  assert.deepEqual(lines.groundOf("rgb(17, 18, 19)"), [17, 18, 19]);
  assert.deepEqual(lines.groundOf("transparent"), [255, 255, 255]);
});

test("keys of the pool move, mark and save, but not from a field or on a button", () => {
  assert.deepEqual(probes.poolKey(key("j"), inside("ol")), { move: 1 });
  assert.deepEqual(probes.poolKey(key("ArrowUp"), inside("ol")), { move: -1 });
  assert.deepEqual(probes.poolKey(key("3"), inside("ol")), { toggle: 2 });
  assert.deepEqual(probes.poolKey(key("Enter"), inside("ol")), { act: "mark" });
  assert.equal(probes.poolKey(key("Enter"), inside("button")), null);
  assert.equal(probes.poolKey(key("s"), inside("input")), null);
  assert.equal(probes.poolKey(key("s", { metaKey: true }), inside("ol")), null);
  assert.equal(probes.poolKey(key("0"), inside("ol")), null);
});

test("a judgement is said in words", () => {
  const marks = { question: "When?", gold: ["a"], answerable: true };
  assert.equal(probes.judgedWords(marks, 12), "1 page of 12 in the pool answers it.");
  assert.equal(probes.judgedWords({ ...marks, gold: [], answerable: false }, 12), "No page answers it.");
  assert.equal(probes.judgedWords({ ...marks, question: "" }, 0), "");
  assert.equal(probes.probeWords({ answerable: true, gold: 0 }), "not judged");
  assert.equal(probes.probeWords({ answerable: true, gold: 2 }), "2 gold pages");
  assert.equal(probes.probeWords({ answerable: false, gold: 0 }), "no page answers it");
});

test("a job says what it does, how far it is and how long it will take", () => {
  const job = { title: "embedding pages", done: 0, total: 0, left: null };
  assert.equal(status.jobWords(job), "embedding pages");
  assert.equal(status.jobWords({ ...job, done: 40, total: 1200 }), "embedding pages, 40 of 1,200 pages");
  const late = { ...job, done: 40, total: 100, left: 59.6 };
  assert.equal(status.jobWords(late), "embedding pages, 40 of 100 pages, about 60 seconds left");
  assert.equal(status.jobWords({ ...late, done: 100, left: 0 }), "embedding pages, 100 of 100 pages"); // nothing is left
});

test("times are told as people tell them", () => {
  const told = [0.2, 1.6, 89, 91, 5399, 5401, -1, Infinity, NaN].map(panel.duration);
  assert.deepEqual(told, ["1 second", "2 seconds", "89 seconds", "2 minutes", "90 minutes", "2 hours", "", "", ""]);
});

test("what is typed quickly is told once, at last, and can be told at once or not at all", async () => {
  const told = [];
  const later = panel.debounced((text) => told.push(text), 5);
  for (const text of ["w", "wi", "win"]) later(text);
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.deepEqual(told, ["win"]);
  later("winch");
  later.now("winch!");
  later("never");
  later.stop();
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.deepEqual(told, ["win", "winch!"]);
});

test("the theme is read off any form of colour that a browser gives", () => {
  const dark = ["rgb(17, 17, 17)", "rgba(17, 17, 17, 0.9)", "color(srgb 0.1 0.1 0.1)"].map(panel.isDark);
  assert.deepEqual(dark, [true, true, true]);
  const light = ["rgb(255, 255, 255)", "rgba(0, 0, 0, 0)", "transparent", "color(srgb 0.9 0.9 0.9)"].map(panel.isDark);
  assert.deepEqual(light, [false, false, false, false]);
});
