// Families: two pages side by side with keys to answer, the list of likely families, and the merge of one of them.
import { element, tell, hear, watch, shell, uniqueId, count } from "./panel.js";
import { makeDesk } from "./merging.js";

const KEYS = { s: "same", d: "different", u: "unsure", n: "skip", " ": "skip", b: "back" };
const FEW = 6; // members of a family that are listed without being asked for
const ANSWERS = { same: "the same", different: "different", unsure: "not sure" };

/** Returns the act that a key stands for, or null; `target` is where it was pressed. */
export function reviewKey(event, target) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (target?.closest?.("input, textarea, select")) return null;
  if (event.key === " " && target?.closest?.("button, summary, a")) return null; // there it presses the button
  return KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key] ?? null;
}

/** Returns what is known so far in one or two sentences. */
export function scoreWords(score) {
  if (!score || score.pages === undefined) return "";
  const share = (value) => `${Math.round(value * 100)} %`;
  const head = `${count(score.families, "family", "families")}, ${score.inside.toLocaleString("en")} of ${count(score.pages, "page")}.`;
  if (!score.families) return head;
  return `${head} Of the pairs inside, ${share(score.estimate)} are expected to be right (90 % interval: ${share(score.low)} to ${share(score.high)}).`;
}

/** Returns how many answers were given and are still worth giving. */
export function leftWords(score) {
  if (!score || score.pages === undefined) return "";
  const given = `${count(score.answers, "answer")} so far`;
  if (!score.worthwhile) return `${given}; more would change little.`;
  const left = score.worthwhile;
  return `${given}; about ${left} more ${left === 1 ? "is" : "are"} worthwhile.`;
}

/** Returns how many words a page has and how many of them are in the other one too. */
export function sharedWords(page) {
  let all = 0;
  let equal = 0;
  for (const [text, state] of [...page.title, ...page.summary, ...page.body]) {
    if (!state) continue;
    const words = text.split(/\s+/u).filter(Boolean).length;
    all += words;
    if (state === 1) equal += words;
  }
  return { all, equal };
}

function runsInto(node, runs) {
  node.replaceChildren(
    ...runs.map(([text, state]) => {
      if (state === 2) return element("mark", { class: "mf-differs", text });
      return state === 1 ? element("span", { class: "mf-equal", text }) : document.createTextNode(text);
    }),
  );
  return node;
}

function pageColumn(page, open) {
  const { all, equal } = sharedWords(page);
  return element(
    "article",
    { class: "mf-review-page", "aria-label": page.name },
    element(
      "div",
      { class: "mf-row mf-review-name mf-tight" },
      element("strong", { text: page.name }),
      element("button", { type: "button", text: "Open", "aria-label": `Open ${page.name}`, on: { click: open } }),
    ),
    element("div", {
      class: "mf-soft",
      text: `${page.dates ? `${page.dates}; ` : ""}${page.size.toLocaleString("en")} bytes; ${equal} of ${count(all, "word")} also in the other`,
    }),
    runsInto(element("div", { class: "mf-review-title", dir: "auto" }), page.title),
    runsInto(element("div", { class: "mf-review-summary", dir: "auto" }), page.summary),
    runsInto(
      element("div", {
        class: "mf-review-body",
        dir: "auto",
        tabindex: "0",
        role: "group",
        "aria-label": `Text of ${page.name}`,
      }),
      page.body,
    ),
    page.more ? element("div", { class: "mf-soft", text: `and ${count(page.more, "more character")}` }) : null,
  );
}

function reasons(title, sign, found) {
  const items = found.length
    ? found.map(([kind, text]) => element("li", {}, element("strong", { text: `${kind}: ` }), text))
    : [element("li", { class: "mf-soft", text: "nothing in particular" })];
  return element("div", {}, element("h4", { text: `${sign} ${title}` }), element("ul", {}, ...items));
}

function makeReview({ send, say }) {
  const question = element("h3", { text: "Looking for families" });
  const place = element("span", { class: "mf-soft" });
  const pages = element("div", { class: "mf-review-pages" });
  const evidence = element("div", { class: "mf-review-evidence" });
  const likely = element("p");
  let pair = null;

  const act = (what) => {
    if (what === "skip" || what === "back") send(what);
    else if (pair) send("answer", { said: what, pair });
  };
  const keyed = (text, key, what, title) =>
    element(
      "button",
      { type: "button", title, "aria-keyshortcuts": key, "data-act": what, on: { click: () => act(what) } },
      text,
      element("kbd", { text: key, "aria-hidden": "true" }),
    );
  const buttons = [
    keyed("Same", "S", "same", "They belong together"),
    keyed("Different", "D", "different", "They do not belong together"),
    keyed("Unsure", "U", "unsure", "Do not ask again now"),
    keyed("Skip", "N", "skip", "Ask later (also the space bar)"),
    keyed("Back", "B", "back", "Return to the question before"),
  ];
  const legend = element(
    "span",
    { class: "mf-review-legend mf-soft" },
    element("span", { class: "mf-equal", text: "in both" }),
    element("mark", { class: "mf-differs", text: "only here" }),
  );
  const bar = element(
    "div",
    { class: "mf-row mf-review-bar", role: "group", "aria-label": "Your answer" },
    ...buttons,
    place,
    legend,
  );
  const root = element(
    "div",
    {
      class: "mf-review",
      tabindex: "0",
      role: "group",
      "aria-label": "Review of pairs. Keys: S same, D different, U unsure, N or space skip, B back",
    },
    question,
    bar,
    likely,
    pages,
    evidence,
  );
  root.addEventListener("keydown", (event) => {
    const what = reviewKey(event, event.target);
    if (!what || event.repeat) return;
    event.preventDefault();
    const button = buttons.find((one) => one.dataset.act === what);
    if (!button.disabled) act(what);
  });

  function show(content) {
    pair = content.pages.length ? content.pages.map((page) => page.name) : null;
    const held = root.contains(document.activeElement) && document.activeElement !== root;
    for (const button of buttons) {
      const what = button.dataset.act;
      button.disabled = what === "back" ? !content.back : what === "skip" ? !pair && !content.gone : !pair;
      if (what in ANSWERS) button.setAttribute("aria-pressed", String(content.answer === what));
    }
    place.textContent = pair ? `Question ${content.number}` : "";
    pages.replaceChildren(
      ...content.pages.map((page) => pageColumn(page, () => send("open", { name: page.name }))),
    );
    evidence.hidden = likely.hidden = !pair;
    if (pair) {
      question.textContent = "Do these two pages say the same?";
      const said = content.answer ? `Your answer: ${ANSWERS[content.answer]}. ` : "";
      const odds = content.probability === null ? "" : `${Math.round(content.probability * 100)} % likely of one family; `;
      likely.textContent = `${said}${odds}they stand ${content.together ? "in one family" : "apart"} now. Cosine ${content.cosine.toFixed(2)}; their neighbours usually have ${content.usual.toFixed(2)}.`;
      evidence.replaceChildren(reasons("For", "+", content.for), reasons("Against", "−", content.against));
      say(`Question ${content.number}: ${pair.join(" and ")}. ${likely.textContent}`);
    } else if (content.gone) {
      question.textContent = content.gone;
      say(content.gone);
    } else {
      question.textContent = content.waiting ? "Looking for families" : "No question is left";
      if (!content.waiting) say(question.textContent);
    }
    // a button that went, or that can no longer be pressed, must not take the keys with it
    const now = document.activeElement;
    if (held && (!root.contains(now) || now.disabled)) root.focus({ preventScroll: true });
  }
  return { node: root, show };
}

function makeList({ send }) {
  const note = element("p", { class: "mf-soft" });
  const chosen = element("button", { type: "button", on: { click: () => send("plan", { names: selected }) } });
  const list = element("ol", { class: "mf-groups" });
  const root = element("div", {}, element("div", { class: "mf-row" }, chosen), list, note);
  let selected = [];

  function member(group, at) {
    const name = group.members[at];
    return element(
      "li",
      {},
      element("button", { type: "button", class: "mf-link", text: name, on: { click: () => send("open", { name }) } }),
      element("span", { class: "mf-soft", dir: "auto", text: group.titles[at] }),
      name === group.medoid && group.size > 2 ? element("small", { text: "nearest to all others" }) : null,
    );
  }

  function members(group) {
    const all = group.members.map((_, at) => member(group, at));
    if (group.size > group.members.length) {
      all.push(element("li", { class: "mf-soft", text: `and ${group.size - group.members.length} more` }));
    }
    const first = element("ul", {}, ...all.slice(0, FEW));
    if (all.length <= FEW) return [first];
    const rest = element("ul", {}, ...all.slice(FEW));
    return [first, element("details", {}, element("summary", { text: `${group.size - FEW} more pages` }), rest)];
  }

  function show(groups, score, canWrite) {
    list.replaceChildren(
      ...groups.map((group) =>
        element(
          "li",
          {},
          element(
            "div",
            { class: "mf-row mf-group-head mf-tight" },
            element("strong", { text: count(group.size, "page") }),
            element("span", { text: `${Math.round(group.probability * 100)} % likely` }),
            element("span", { class: "mf-soft", text: `cohesion ${group.cohesion.toFixed(2)}; ${group.why}` }),
            group.automatic ? null : element("span", { class: "mf-look", text: "⚠ look first" }),
            element("span", { class: "mf-grow" }),
            element("button", {
              type: "button",
              text: "Select",
              "aria-label": `Select the ${group.size} pages around ${group.medoid}`,
              on: { click: () => send("select", { names: group.members }) },
            }),
            element("button", {
              type: "button",
              text: "Plan the merge",
              disabled: !canWrite || group.size > group.members.length,
              "aria-label": `Plan the merge of the ${group.size} pages around ${group.medoid}`,
              on: { click: () => send("plan", { names: group.members }) },
            }),
          ),
          ...members(group),
        ),
      ),
    );
    const hidden = (score.families ?? 0) - groups.length;
    const parts = [];
    if (hidden > 0) parts.push(`and ${count(hidden, "more family", "more families")}`);
    if (!canWrite) parts.push("This field is read only: nothing can be merged here.");
    if (score.families === 0) parts.push("No two pages seem to say the same.");
    note.textContent = parts.join(" ");
  }
  function choose(names, canWrite) {
    selected = names;
    chosen.hidden = names.length < 2 || !canWrite;
    chosen.textContent = `Merge the ${names.length} selected pages`;
  }
  return { node: root, show, choose };
}

/** Makes tabs; returns their `node`, and `go(name)`. */
function makeTabs(panes) {
  const names = Object.keys(panes);
  const tabs = {};
  const list = element("div", { role: "tablist", class: "mf-tabs", "aria-label": "Views" });
  const node = element("div", {}, list);
  const go = (name) => {
    for (const other of names) {
      tabs[other].setAttribute("aria-selected", String(other === name));
      tabs[other].tabIndex = other === name ? 0 : -1;
      panes[other].node.parentElement.hidden = other !== name;
    }
  };
  for (const name of names) {
    const id = uniqueId();
    tabs[name] = element("button", {
      type: "button",
      role: "tab",
      id,
      "aria-controls": `${id}-pane`,
      text: panes[name].title,
      on: { click: () => go(name) },
    });
    list.append(tabs[name]);
    node.append(element("div", { role: "tabpanel", id: `${id}-pane`, "aria-labelledby": id }, panes[name].node));
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const open = names.filter((name) => !tabs[name].disabled);
    const at = open.findIndex((name) => tabs[name] === document.activeElement);
    const next = open[(at + step + open.length) % open.length];
    go(next);
    tabs[next].focus();
    event.preventDefault();
  });
  go(names[0]);
  return { node, tabs, go };
}

export default {
  render({ model, el }) {
    const { root, say, onEnd, end } = shell(model, el, "families");
    const send = (kind, content) => tell(model, kind, content);
    const review = makeReview({ send, say });
    const list = makeList({ send });
    const desk = makeDesk({ send, say });
    const { node, tabs, go } = makeTabs({
      review: { title: "Review pairs", node: review.node },
      list: { title: "Families", node: list.node },
      merge: { title: "Merge", node: desk.node },
    });
    const score = element("p", { class: "mf-score" });
    const left = element("p", { class: "mf-score" });
    const find = element("button", { type: "button", text: "Look again", on: { click: () => send("find") } });
    const banner = element("div", { class: "mf-banner mf-heed mf-is-good", role: "status" });
    root.append(element("div", { class: "mf-families-head" }, element("div", {}, score, left), find), banner, node);

    const canWrite = () => model.get("can_write");
    let groups = [];
    const redraw = () => {
      const known = model.get("score");
      score.textContent = scoreWords(known) || { finding: "Looking for families…", failed: "No families yet." }[model.get("stage")] || "";
      left.textContent = leftWords(known);
      tabs.list.textContent = known.families === undefined ? "Families" : `Families (${known.families})`;
      list.show(groups, known, canWrite());
    };
    for (const trait of ["score", "stage", "can_write"]) {
      model.on(`change:${trait}`, redraw);
      onEnd(() => model.off(`change:${trait}`, redraw));
    }
    redraw();
    onEnd(watch(model, "chosen", (names) => list.choose(names, canWrite())));

    const undo = element("button", { type: "button", text: "Undo", on: { click: () => send("undo") } });
    onEnd(
      watch(model, "merged", ({ text, step }) => {
        banner.hidden = !text;
        const had = document.activeElement === undo;
        banner.replaceChildren(text ? `${text}. ` : "", ...(step === null || step === undefined ? [] : [undo]));
        if (had && !undo.isConnected) tabs.list.focus();
      }),
    );

    let planned = false;
    tabs.merge.disabled = true;
    onEnd(
      hear(model, {
        groups: (content) => {
          groups = content.groups;
          redraw();
        },
        pair: review.show,
        plan: ({ plan }) => {
          const inside = root.contains(document.activeElement);
          if (plan?.survivor && !planned) {
            tabs.merge.disabled = false;
            go("merge"); // before it is drawn: what is hidden takes no focus
          }
          const has = desk.show(plan, canWrite(), inside);
          if (!has && planned) {
            tabs.merge.disabled = true;
            go("list");
            if (inside) (undo.isConnected ? undo : tabs.list).focus();
          }
          planned = has;
        },
      }),
    );
    send("hello");
    return end;
  },
};
