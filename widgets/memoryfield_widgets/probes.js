// Probes: a question, the pool of what all retrievers found in an order that says nothing, marks for what answers it.
import { element, tell, hear, watch, shell, uniqueId, count } from "./panel.js";

const MOVES = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
const ACTS = { g: "mark", Enter: "mark", " ": "mark", t: "text", o: "open", x: "none", s: "save", n: "new" };

/** Returns what a key does in the pool: {move}, {toggle: place}, {act}, or null. */
export function poolKey(event, target) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (target?.closest?.("input, textarea, select")) return null;
  if ((event.key === "Enter" || event.key === " ") && target?.closest?.("button, summary")) return null;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key in MOVES) return { move: MOVES[key] };
  if (/^[1-9]$/.test(key)) return { toggle: Number(key) - 1 };
  return key in ACTS ? { act: ACTS[key] } : null;
}

/** Returns the state of a judgement in words. */
export function judgedWords(marks, found) {
  if (!marks.question) return "";
  if (!marks.answerable) return "No page answers it.";
  const gold = count(marks.gold.length, "page");
  return `${gold} of ${found} in the pool ${marks.gold.length === 1 ? "answers" : "answer"} it.`;
}

/** Returns one line for a saved probe. */
export function probeWords(row) {
  if (!row.answerable) return "no page answers it";
  return row.gold ? count(row.gold, "gold page") : "not judged";
}

export default {
  render({ model, el }) {
    const { root, say, onEnd, end } = shell(model, el, "probes");
    const send = (kind, content) => tell(model, kind, content);
    let marks = { id: "", question: "", gold: [], answerable: true, category: "" };
    let pages = [];
    let at = 0; // the page that the keys act on
    const opened = new Set(); // whose text is shown

    // the question
    const question = element("input", {
      type: "text",
      class: "mf-probes-question",
      placeholder: "What would somebody ask, weeks later and in other words?",
      maxlength: "2000",
      autocomplete: "off",
    });
    const ask = element("button", { type: "submit", class: "mf-primary", text: "Look up" });
    const form = element(
      "form",
      { class: "mf-probes-form" },
      element("label", {}, "Question ", question),
      ask,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send("ask", { question: question.value });
    });
    const listId = uniqueId();
    const category = element("input", { type: "text", list: listId, maxlength: "200", size: "14", autocomplete: "off" });
    const known = element("datalist", { id: listId });
    category.addEventListener("change", () => send("set", { category: category.value }));
    const none = element("input", { type: "checkbox" });
    none.addEventListener("change", () => send("set", { answerable: !none.checked }));
    const facts = element(
      "div",
      { class: "mf-row" },
      element("label", {}, "Category ", category),
      known,
      element("label", { class: "mf-probes-none" }, none, " No page answers it", element("kbd", { text: "X", "aria-hidden": "true" })),
    );

    // the pool
    const state = element("p", { class: "mf-probes-state", role: "status" });
    const note = element("p", { class: "mf-probes-note mf-heed" });
    const pool = element("ol", {
      class: "mf-pool",
      tabindex: "0",
      "aria-label":
        "Pages to judge. Keys: J and K or arrows move, G or 1 to 9 mark, T shows the text, X no page answers it, S save, N new",
    });
    const add = element("input", { type: "text", size: "22", placeholder: "name of another page", "aria-label": "Name of another page that answers it" });
    const addForm = element("form", { class: "mf-row" }, add, element("button", { type: "submit", text: "Add as gold" }));
    addForm.addEventListener("submit", (event) => {
      event.preventDefault();
      if (add.value.trim()) send("add", { name: add.value });
      add.value = "";
    });
    const save = element(
      "button",
      { type: "button", class: "mf-primary", "aria-keyshortcuts": "S", on: { click: () => send("save") } },
      "Save and ask another",
      element("kbd", { text: "S", "aria-hidden": "true" }),
    );
    const fresh = element(
      "button",
      { type: "button", "aria-keyshortcuts": "N", title: "What was not saved is forgotten", on: { click: () => send("new") } },
      "Start over",
      element("kbd", { text: "N", "aria-hidden": "true" }),
    );
    const judge = element("div", { class: "mf-judge" }, state, note, pool, addForm, element("div", { class: "mf-row" }, save, fresh));

    function change() {
      for (const [place, item] of [...pool.children].entries()) {
        const gold = marks.gold.includes(pages[place].name);
        item.classList.toggle("mf-gold", gold);
        item.querySelector(".mf-mark").setAttribute("aria-pressed", String(gold));
        item.querySelector(".mf-star").textContent = gold ? "★ gold" : "☆";
      }
      none.checked = !marks.answerable;
      if (document.activeElement !== category) category.value = marks.category;
      state.textContent = model.get("asking") ? "Asking all retrievers…" : judgedWords(marks, pages.length);
      judge.hidden = !marks.question;
      facts.hidden = !marks.question;
      save.disabled = !marks.question || (marks.answerable && !marks.gold.length);
      save.firstChild.textContent = marks.id ? `Save ${marks.id} again` : "Save and ask another";
      for (const item of saved.querySelectorAll("li")) item.classList.toggle("mf-current", item.dataset.id === marks.id);
    }

    function toggle(place) {
      const page = pages[place];
      if (!page) return;
      const gold = !marks.gold.includes(page.name);
      send("mark", { name: page.name, gold });
      say(gold ? `${page.title}: answers it` : `${page.title}: mark taken away`);
    }

    function showText(place) {
      const details = pool.children[place]?.querySelector("details");
      if (details) details.open = !details.open;
    }

    function go(place) {
      if (!pages.length) return;
      at = Math.max(0, Math.min(place, pages.length - 1));
      for (const [number, item] of [...pool.children].entries()) {
        item.classList.toggle("mf-at", number === at);
        if (number === at) item.setAttribute("aria-current", "true");
        else item.removeAttribute("aria-current");
      }
      pool.children[at].scrollIntoView({ block: "nearest" });
    }

    function item(page, place) {
      const text = element("div", { class: "mf-pool-text", dir: "auto", text: page.text + (page.more ? ` … and ${count(page.more, "more character")}` : "") });
      const details = element("details", { open: opened.has(page.name) }, element("summary", { text: "Text" }), text);
      details.addEventListener("toggle", () => (details.open ? opened.add(page.name) : opened.delete(page.name)));
      return element(
        "li",
        { on: { click: () => go(place) } },
        element(
          "div",
          { class: "mf-row" },
          element(
            "button",
            { type: "button", class: "mf-mark", "aria-label": `${page.title} answers it`, on: { click: () => toggle(place) } },
            element("span", { class: "mf-star", "aria-hidden": "true" }),
          ),
          element("strong", { dir: "auto", text: page.title }),
          element("span", { class: "mf-soft", text: page.dates ? `${page.name}; ${page.dates}` : page.name }),
        ),
        page.summary ? element("div", { dir: "auto", class: "mf-pool-summary", text: page.summary }) : null,
        details,
      );
    }

    function show(content) {
      const other = content.question !== marks.question || content.id !== marks.id;
      const hadFocus = pool.contains(document.activeElement);
      marks = content;
      pages = content.pages;
      if (other) opened.clear();
      if (document.activeElement !== question || content.question === "" || content.id) question.value = content.question;
      note.textContent = content.note;
      note.hidden = !content.note;
      pool.replaceChildren(...pages.map(item));
      change();
      if (pages.length) {
        go(other ? 0 : at);
        if (root.contains(document.activeElement) || hadFocus) {
          if (document.activeElement === question || hadFocus || document.activeElement === ask) pool.focus();
        }
        say(`${count(pages.length, "page")} to judge`);
      } else if (content.question === "" && (hadFocus || root.contains(document.activeElement))) question.focus();
    }

    judge.addEventListener("keydown", (event) => {
      const found = poolKey(event, event.target);
      if (!found) return;
      event.preventDefault();
      if (found.move) go(at + found.move);
      else if (found.toggle !== undefined) {
        go(found.toggle);
        toggle(found.toggle);
      } else if (found.act === "mark") toggle(at);
      else if (found.act === "text") showText(at);
      else if (found.act === "open" && pages[at]) send("open", { name: pages[at].name });
      else if (found.act === "none") send("set", { answerable: !marks.answerable });
      else if (found.act === "save" && !save.disabled) {
        pool.focus(); // the button may be disabled next, and then it would lose the focus
        send("save");
      } else if (found.act === "new") {
        pool.focus();
        send("new");
      }
    });

    // what is saved
    const saved = element("ol", { class: "mf-saved", "aria-label": "Saved probes", tabindex: "0" });
    const heading = element("h3", {});
    const file = element("div", { class: "mf-soft mf-probes-file" });
    const next = element("button", { type: "button", text: "Judge the next", on: { click: () => send("next") } });
    function rows(list) {
      const bare = list.filter((row) => row.answerable && !row.gold).length;
      heading.textContent = `${count(list.length, "probe")} saved`;
      next.hidden = !bare;
      next.textContent = `Judge the next of ${bare} without gold`;
      saved.replaceChildren(
        ...list.map((row) =>
          element(
            "li",
            { "data-id": row.id },
            element("button", {
              type: "button",
              class: "mf-link",
              dir: "auto",
              text: row.question,
              on: { click: () => send("load", { id: row.id }) },
            }),
            element(
              "div",
              { class: "mf-row mf-soft" },
              element("span", { text: `${row.id}: ${probeWords(row)}${row.category ? `; ${row.category}` : ""}` }),
              element("button", {
                type: "button",
                class: "mf-link",
                text: "Delete",
                "aria-label": `Delete ${row.id}`,
                on: { click: (event) => sure(event.currentTarget, row.id) },
              }),
            ),
          ),
        ),
      );
      change();
    }
    function sure(button, id) {
      if (button.dataset.sure) send("delete", { id });
      else {
        button.dataset.sure = "true";
        button.textContent = "Really delete?";
        button.setAttribute("aria-label", `Really delete ${id}?`);
        button.addEventListener(
          "blur",
          () => {
            delete button.dataset.sure;
            button.textContent = "Delete";
            button.setAttribute("aria-label", `Delete ${id}`);
          },
          { once: true },
        );
      }
    }

    root.append(
      element(
        "div",
        { class: "mf-probes-columns" },
        element("div", {}, form, facts, judge),
        element("section", { class: "mf-probes-saved", "aria-label": "Saved probes" }, heading, file, next, saved),
      ),
    );
    onEnd(watch(model, "rows", rows));
    onEnd(watch(model, "file", (path) => (file.textContent = path)));
    onEnd(watch(model, "asking", change));
    onEnd(
      watch(model, "categories", (names) => known.replaceChildren(...names.map((value) => element("option", { value })))),
    );
    onEnd(
      hear(model, {
        pool: show,
        marks: (content) => {
          marks = { ...marks, ...content };
          change();
        },
      }),
    );
    send("hello");
    return end;
  },
};
