// The plan of a merge: what becomes of every sentence, the merged text to edit, the diff, Apply. Used by families.js.
import { element, count } from "./panel.js";

const SIGNS = { kept: "✓", equal: "=", heading: "#", dropped: "−", lost: "!" };
const MEANINGS = {
  kept: "in the merged text",
  equal: "an equal one is in it",
  heading: "heading that is not needed",
  dropped: "dropped by you",
  lost: "missing, nobody dropped it",
};

/** Returns the class of a line of a unified diff. */
export function diffClass(line) {
  if (line.startsWith("+++") || line.startsWith("---")) return "mf-diff-file";
  if (line.startsWith("@@")) return "mf-diff-place";
  if (line.startsWith("+")) return "mf-diff-new";
  if (line.startsWith("-")) return "mf-diff-old";
  return "mf-diff-line";
}

/** Returns one line that says whether every sentence is accounted for. */
export function accountWords(plan) {
  const parts = Object.entries(plan.counts).map(([state, number]) => `${number} ${state}`);
  const all = Object.values(plan.counts).reduce((sum, number) => sum + number, 0);
  const verdict = plan.complete
    ? "nothing is missing"
    : `${count(plan.lost, "sentence")} ${plan.lost === 1 ? "is" : "are"} missing and ${plan.lost === 1 ? "blocks" : "block"} the merge`;
  return `${count(all, "sentence")}: ${parts.join(", ")}; ${verdict}`;
}

/** Returns what else there is to know about a plan, a line each. */
export function planNotes(plan) {
  const notes = [];
  for (const pair of plan.near) {
    notes.push(`Almost the same, both kept: “${pair.first}” (${pair.first_page}) and “${pair.second}” (${pair.second_page})`);
  }
  for (const { key, kept, others } of plan.keys) {
    const rest = others.map(([name, value]) => `${value} in ${name}`).join(", ");
    notes.push(`Frontmatter ${key}: ${kept} stays; ${rest}`);
  }
  for (const { name, count: number } of plan.links) notes.push(`${count(number, "link")} rewritten in ${name}`);
  if (plan.second) notes.push(`Second page: ${plan.second.name}`);
  return [...notes, ...plan.notes];
}

function button(text, click, attributes = {}) {
  return element("button", { type: "button", text, on: { click }, ...attributes });
}

/**
 * Makes the desk. `send(kind, content)` talks to Python; `say` reads aloud. Returns `node` and
 * `show(plan, canWrite, focus)`, which returns whether there is a plan; `focus`: whether a new one takes the focus.
 */
export function makeDesk({ send, say }) {
  const heading = element("h3", { tabindex: "-1", class: "mf-desk-title" });
  const stale = element("div", { role: "alert" });
  const facts = element("div", { class: "mf-soft" });
  const pages = element("fieldset", { class: "mf-desk-pages" });
  const conflicts = element("div");
  const notes = element("ul", { class: "mf-desk-notes" });
  const accountLine = element("p", { class: "mf-desk-account" });
  const filter = element("select", { "aria-label": "Which sentences are listed" });
  const rows = element("tbody");
  const more = element("p", { class: "mf-soft" });
  const table = element(
    "table",
    { class: "mf-desk-table mf-tight" },
    element("caption", { class: "mf-hidden", text: "What becomes of each sentence" }),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        ...["State", "Sentence", ""].map((text) =>
          element("th", { scope: "col" }, text || element("span", { class: "mf-hidden", text: "Action" })),
        ),
      ),
    ),
    rows,
  );
  const text = element("textarea", { "aria-label": "Merged text, Markdown", spellcheck: "false", rows: "14" });
  const title = element("input", { type: "text" });
  const summary = element("input", { type: "text" });
  const tags = element("input", { type: "text", placeholder: "commas between" });
  const tagsRow = element("label", { class: "mf-desk-key" }, "Tags ", tags);
  const typed = { body: text, title, summary, tags }; // by what the plan calls it
  const shownAs = {}; // a field may show a text otherwise than it was given, without its line breaks for instance
  const put = (key) => {
    typed[key].value = plan[key] ?? "";
    shownAs[key] = typed[key].value;
  };
  const changed = () => Object.keys(typed).filter((key) => typed[key].value !== shownAs[key]);
  const take = button("Take over this text", () =>
    send("body", Object.fromEntries(changed().map((key) => [key, typed[key].value]))),
  );
  const discard = button("Discard my changes", () => {
    for (const key of Object.keys(typed)) put(key);
    edited();
    text.focus();
  });
  const dirtyNote = element("span", { class: "mf-desk-dirty", role: "status" });
  const second = element("details", { class: "mf-desk-second" });
  const diff = element("div", { class: "mf-diff", role: "group", tabindex: "0", "aria-label": "Diff of all pages" });
  const apply = button(
    "Apply the merge",
    () => {
      if (root.hasAttribute("aria-busy")) return;
      root.setAttribute("aria-busy", "true"); // not disabled: it would lose the focus
      send("apply");
    },
    { class: "mf-primary" },
  );
  const accept = button("Accept the text as it is", () => send("accept"));
  const split = button("Split in two pages", () => send("split"));
  const again = button("Make a new plan", () => send("again"));
  const leave = button("Leave without merging", () => send("leave"));
  const why = element("span", { class: "mf-soft" });
  const root = element(
    "div",
    { class: "mf-desk" },
    heading,
    stale,
    facts,
    pages,
    conflicts,
    notes,
    element(
      "div",
      { class: "mf-desk-columns" },
      element(
        "section",
        { "aria-label": "Account of the sentences" },
        element("h4", { text: "Every sentence" }),
        accountLine,
        element("div", { class: "mf-row" }, filter),
        element("div", { class: "mf-desk-scroll", tabindex: "0", role: "group", "aria-label": "Sentences" }, table, more),
      ),
      element(
        "section",
        { "aria-label": "Merged text" },
        element("h4", { text: "Merged text" }),
        element("label", { class: "mf-desk-key" }, "Title ", title),
        element("label", { class: "mf-desk-key" }, "Summary ", summary),
        tagsRow,
        text,
        element("div", { class: "mf-row" }, take, discard, dirtyNote),
        second,
      ),
    ),
    element("section", { "aria-label": "Diff" }, element("h4", { text: "What changes on disk" }), diff),
    element("div", { class: "mf-row mf-desk-end" }, apply, accept, split, again, leave, why),
  );

  let plan = null;
  let canWrite = true;


  function edited() {
    const dirty = plan !== null && changed().length > 0;
    take.disabled = discard.disabled = !dirty;
    dirtyNote.textContent = dirty ? "Take over or discard your text before anything else" : "";
    // another change would make a new text under the one that is being typed
    for (const node of root.querySelectorAll("[data-waits]")) node.disabled = dirty;
    accept.disabled = split.disabled = dirty;
    apply.disabled = dirty || !canWrite || !plan?.complete || Boolean(plan?.stale);
    why.textContent = !canWrite
      ? "This field is read only: a merge can be looked at, not applied"
      : plan?.stale
        ? "The plan is out of date"
        : plan && !plan.complete
          ? "Sentences are missing: drop them, put them back, or accept the text"
          : "";
  }
  for (const field of Object.values(typed)) field.addEventListener("input", edited);
  filter.addEventListener("change", list);

  function sentenceRow(entry) {
    const where = entry.state === "equal" ? `as in ${entry.where}` : `under ${entry.where}`;
    const drop = () => send("drop", { id: entry.id });
    return element(
      "tr",
      { class: `mf-state-${entry.state}` },
      element("td", { class: "mf-desk-state", text: `${SIGNS[entry.state]} ${entry.state}`, title: MEANINGS[entry.state] }),
      element(
        "td",
        { dir: "auto" },
        element("span", { text: entry.text }),
        entry.where ? element("small", { text: where }) : null,
        entry.near ? element("small", { text: `resembles: ${entry.near}` }) : null,
      ),
      element(
        "td",
        {},
        entry.drop ? button("Drop", drop, { "aria-label": `Drop: ${entry.text.slice(0, 80)}`, "data-waits": true }) : null,
      ),
    );
  }

  function list() {
    const wanted = filter.value;
    const shown = plan.account.filter((entry) => wanted === "all" || entry.state === wanted);
    rows.replaceChildren(
      ...shown.flatMap((entry, at) => {
        const row = sentenceRow(entry);
        if (at > 0 && shown[at - 1].page === entry.page) return [row];
        const page = element("th", { scope: "rowgroup", colspan: "3", text: entry.page });
        return [element("tr", { class: "mf-desk-group" }, page), row];
      }),
    );
    more.textContent = plan.more ? `and ${count(plan.more, "more sentence")}` : "";
    edited();
  }

  function showPages() {
    pages.replaceChildren(
      element("legend", {
        text: plan.edited ? "Which page stays (another one makes a new plan, without your changes)" : "Which page stays",
      }),
      ...plan.pages.map((page) =>
        element(
          "label",
          {},
          element("input", {
            type: "radio",
            name: `mf-stays-${root.dataset.id}`,
            checked: page.stays,
            "data-waits": true,
            on: { change: () => send("plan", { names: plan.pages.map((p) => p.name), into: page.name }) },
          }),
          element("strong", { text: page.name }),
          element("span", { text: page.title, dir: "auto" }),
          element("span", { class: "mf-soft", text: `${page.size.toLocaleString("en")} bytes; ${page.counts}` }),
          element("span", { class: "mf-desk-fate", text: page.stays ? "stays" : "goes" }),
        ),
      ),
    );
  }

  function showConflicts() {
    const sides = [
      ["first", "Keep the first"],
      ["second", "Keep the second"],
      ["both", "Keep both"],
    ];
    conflicts.replaceChildren(
      ...plan.conflicts.map((pair, number) =>
        element(
          "div",
          { class: "mf-desk-conflict mf-heed", role: "group", "aria-label": `Contradiction ${number + 1}` },
          element("strong", { text: "≠ These contradict each other" }),
          element("p", { dir: "auto" }, element("em", { text: `${pair.first_page}: ` }), pair.first),
          element("p", { dir: "auto" }, element("em", { text: `${pair.second_page}: ` }), pair.second),
          element(
            "div",
            { class: "mf-row" },
            ...sides.map(([keep, words]) =>
              button(words, () => send("resolve", { number, keep }), { "data-waits": true }),
            ),
          ),
        ),
      ),
    );
  }

  function showSecond() {
    second.hidden = !plan.second;
    if (!plan.second) return;
    second.replaceChildren(
      element("summary", { text: `Second page: ${plan.second.title}` }),
      element("div", { class: "mf-desk-body", dir: "auto", text: plan.second.body }),
    );
  }

  function show(next, writable, focus = false) {
    const before = plan;
    const held = root.contains(document.activeElement) ? document.activeElement : null;
    root.removeAttribute("aria-busy");
    canWrite = writable;
    plan = next && next.survivor ? next : null;
    if (!plan) return false;
    root.dataset.id ??= String(Math.random()).slice(2);
    heading.textContent = `Merge ${count(plan.pages.length, "page")} into ${plan.survivor}`;
    facts.textContent = `${plan.why}; the result has ${plan.size.toLocaleString("en")} bytes${
      plan.over ? `, ${plan.over.toLocaleString("en")} past the 8,192 that are embedded` : ""
    }`;
    stale.replaceChildren(
      ...(plan.stale
        ? [
            element(
              "div",
              { class: "mf-desk-stale mf-heed" },
              element("strong", { text: "Out of date: " }),
              `${plan.stale}. `,
              button("Make a new plan", () => send("again")),
            ),
          ]
        : []),
    );
    showPages();
    showConflicts();
    const lines = planNotes(plan);
    notes.replaceChildren(...lines.map((line) => element("li", { text: line, dir: "auto" })));
    notes.hidden = lines.length === 0;
    accountLine.textContent = accountWords(plan);
    accountLine.classList.toggle("mf-bad", !plan.complete);
    const chosen = filter.value || "all";
    filter.replaceChildren(
      element("option", { value: "all", text: "all sentences" }),
      ...Object.entries(plan.counts).map(([state, number]) =>
        element("option", { value: state, text: `${state} (${number}): ${MEANINGS[state]}` }),
      ),
    );
    filter.value = chosen in plan.counts ? chosen : "all";
    // what is being typed stays while the plan says what it said before; else it was taken over, or is a new plan's
    for (const key of Object.keys(typed)) {
      if (before?.survivor !== plan.survivor || before[key] !== plan[key]) put(key);
    }
    tagsRow.hidden = plan.tags === null; // no plain list: its lines stand in the diff
    showSecond();
    diff.replaceChildren(
      ...plan.diff.map((line) => element("div", { class: diffClass(line), text: line || " " })),
      ...(plan.diff_more ? [element("div", { text: `and ${count(plan.diff_more, "more line")}` })] : []),
    );
    accept.hidden = plan.complete;
    split.hidden = !plan.over || Boolean(plan.second);
    list();
    if (before === null) {
      if (focus) heading.focus();
    } else if (held && !held.isConnected) {
      heading.focus({ preventScroll: true }); // its button went with its sentence
    }
    say(`${heading.textContent}. ${accountLine.textContent}`); // what is stale is an alert, which speaks for itself
    return true;
  }

  return { node: root, show };
}
