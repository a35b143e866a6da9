// The search: a combobox whose list is always there, settings, and words for every outcome.
import { element, tell, watch, shell, uniqueId, count, debounced } from "./panel.js";

const PAUSE = 150; // milliseconds without a key before a search begins
const RETRIEVER_WORDS = { hybrid: "Meaning and words", vector: "Meaning", keyword: "Words", rrf: "Both, by rank" };
const EMPTY_WORDS = {
  idle: "Type a question. The pages that answer it appear while you type.",
  waiting: "Searching…",
  empty: "Nothing saved yet. Write a first page, then there is something to find.",
  gate: "Nothing good enough.",
  nothing: "Nothing found.",
};

/** Returns which option is active after a key: an index, or -1 for none; null where the key is not about the list. */
export function nextOption(key, at, length) {
  if (length === 0) return key === "ArrowDown" || key === "ArrowUp" ? -1 : null;
  if (key === "ArrowDown") return at + 1 >= length ? 0 : at + 1;
  if (key === "ArrowUp") return at <= 0 ? length - 1 : at - 1;
  if (key === "PageDown") return Math.min(length - 1, Math.max(at, 0) + 5);
  if (key === "PageUp") return Math.max(0, at - 5);
  return null;
}

/** Remembers what was sent, so that a late echo of it does not overwrite what was typed since. */
export function echoes() {
  const sent = [];
  return {
    send(text) {
      sent.push(text);
      if (sent.length > 50) sent.shift();
    },
    /** Says whether a value from Python is news, and not the echo of what was typed here. */
    isNews(text) {
      const at = sent.lastIndexOf(text);
      if (at < 0) return true;
      sent.splice(0, at + 1);
      return false;
    },
  };
}

/** Returns nodes of pieces of text, the marked ones in <mark>. */
export function markedText(pieces) {
  return pieces.map(([text, marked]) => (marked ? element("mark", { text }) : document.createTextNode(text)));
}

function field(label, control, hint) {
  const id = uniqueId("mf-set");
  control.id = id;
  const problem = element("span", { class: "mf-bad", id: `${id}-bad`, role: "alert", hidden: true });
  control.setAttribute("aria-describedby", `${id}-bad`);
  const parts = [element("label", { for: id, text: label }), control, problem];
  if (hint) control.setAttribute("placeholder", hint);
  return {
    box: element("div", { class: "mf-setting" }, ...parts),
    control,
    trouble(words) {
      problem.hidden = !words;
      problem.textContent = words ?? "";
      control.setAttribute("aria-invalid", words ? "true" : "false");
    },
  };
}

function choice(label, options) {
  return field(label, element("select", {}, ...options.map(([value, text]) => element("option", { value, text }))));
}

export default {
  render({ model, el }) {
    const { root, say, onEnd, end } = shell(model, el, "search");
    const listId = uniqueId("mf-hits");
    const echo = echoes();
    let rows = [];
    let options = [];
    let at = -1;

    const input = element("input", {
      type: "text",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      "aria-autocomplete": "list",
      "aria-haspopup": "listbox",
      "aria-expanded": "false",
      "aria-controls": listId,
      "aria-label": "Question",
      placeholder: "Ask the field a question",
    });
    const clear = element("button", { type: "button", class: "mf-clear", "aria-label": "Clear the question", text: "×" });
    const more = element("button", { type: "button", "aria-expanded": "false", text: "Settings" });
    const select = element("button", {
      type: "button",
      text: "Select all",
      "aria-label": "Select all on the map",
      hidden: true,
    });
    const bar = element("div", { class: "mf-ask" }, element("div", { class: "mf-input" }, input, clear), more);

    const retriever = choice("Look for", Object.entries(RETRIEVER_WORDS));
    const modelChoice = choice("Model", [["", "the field's own"]]);
    const recipe = choice("Recipe", [
      ["", "the field's own"],
      ["page", "page"],
      ["content", "content"],
      ["passages", "passages"],
    ]);
    const most = field("Most pages", element("input", { type: "number", min: 1, max: 50, step: 1 }));
    const where = field("Where", element("input", { type: "text" }), "tags=ci, status=done");
    const since = field("Since", element("input", { type: "text" }), "2025-03-01");
    const until = field("Until", element("input", { type: "text" }), "2025-12");
    const gate = field("Nothing rather than a poor answer (gate)", element("input", { type: "checkbox" }));
    gate.box.classList.add("mf-gate");
    const controls = { retriever, model: modelChoice, recipe, k: most, where, since, until, gate };
    const settings = element("div", { class: "mf-settings", hidden: true, role: "group", "aria-label": "Settings" });
    settings.append(...Object.values(controls).map((one) => one.box));

    const heading = element("p", { class: "mf-heading mf-soft" });
    const head = element("div", { class: "mf-head" }, heading, select);
    const list = element("ul", { role: "listbox", id: listId, "aria-label": "Pages found" });
    const notes = element("p", { class: "mf-notes mf-soft" });
    root.append(bar, settings, head, list, notes);

    const ask = debounced(() => {
      echo.send(input.value);
      tell(model, "ask", { query: input.value });
    }, PAUSE);
    onEnd(() => ask.stop());

    const point = (to) => {
      at = to;
      options.forEach((option, number) => option.classList.toggle("mf-at", number === at));
      if (at < 0) input.removeAttribute("aria-activedescendant");
      else {
        input.setAttribute("aria-activedescendant", options[at].id);
        options[at].scrollIntoView({ block: "nearest" });
      }
    };
    const open = (row, add = false) => tell(model, "open", { name: row.name, add });
    const empty = () => {
      input.value = "";
      ask.now();
      input.focus();
    };

    input.addEventListener("input", () => {
      point(-1);
      clear.hidden = !input.value;
      if (input.value.trim()) ask();
      else ask.now();
    });
    input.addEventListener("keydown", (event) => {
      if (event.isComposing || event.ctrlKey || event.metaKey) return;
      if (event.key === "Enter") {
        event.preventDefault();
        if (at >= 0) open(rows[at], event.shiftKey);
        else ask.now();
      } else if (event.key === "Escape") {
        event.preventDefault();
        if (at >= 0) point(-1);
        else if (input.value) empty();
      } else if (!event.altKey) {
        const to = nextOption(event.key, at, rows.length);
        if (to === null) return;
        event.preventDefault();
        point(to);
      }
    });
    clear.addEventListener("click", empty);
    more.addEventListener("click", () => {
      settings.hidden = !settings.hidden;
      more.setAttribute("aria-expanded", String(!settings.hidden));
      if (!settings.hidden) retriever.control.focus();
    });
    settings.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      more.click();
      more.focus();
    });
    select.addEventListener("click", () => tell(model, "select"));
    for (const [name, { control }] of Object.entries(controls)) {
      control.addEventListener("change", () => {
        const value = control.type === "checkbox" ? control.checked : name === "k" ? Number(control.value) : control.value;
        tell(model, "set", { name, value });
      });
    }

    onEnd(
      watch(model, "query", (text) => {
        if (echo.isNews(text) && text !== input.value) {
          ask.stop();
          input.value = text;
        }
        clear.hidden = !input.value;
      }),
    );
    onEnd(
      watch(model, "models", (models) => {
        const chosen = model.get("settings").model ?? "";
        const made = [element("option", { value: "", text: "the field's own" })];
        for (const one of models) {
          const text = one.ready ? one.code : `${one.code} (not ready: ${one.note})`;
          made.push(element("option", { value: one.code, text, disabled: !one.ready && one.code !== chosen }));
        }
        if (chosen && !models.some((one) => one.code === chosen)) {
          made.push(element("option", { value: chosen, text: chosen }));
        }
        modelChoice.control.replaceChildren(...made);
        modelChoice.control.value = chosen;
      }),
    );
    onEnd(
      watch(model, "settings", (given) => {
        for (const [name, { control }] of Object.entries(controls)) {
          if (control.type === "checkbox") control.checked = Boolean(given[name]);
          if (control.type === "checkbox") continue;
          const value = String(given[name] ?? "");
          if (name === "model" && ![...control.options].some((option) => option.value === value)) {
            control.append(element("option", { value, text: value }));
          }
          if (control.value !== value) control.value = value;
        }
        const set = ["where", "since", "until", "gate"].filter((name) => given[name]);
        more.textContent = set.length ? `Settings (${count(set.length, "filter")})` : "Settings";
      }),
    );
    onEnd(
      watch(model, "trouble", (trouble) => {
        for (const [name, control] of Object.entries(controls)) control.trouble(trouble[name]);
      }),
    );
    const mark = () => {
      const active = model.get("active");
      const selected = new Set(model.get("selected"));
      rows.forEach((row, number) => {
        options[number].setAttribute("aria-selected", String(row.name === active));
        options[number].classList.toggle("mf-picked", selected.has(row.name));
      });
    };
    onEnd(
      watch(model, "outcome", (outcome) => {
        const pointed = rows[at]?.name;
        rows = outcome.rows ?? [];
        options = rows.map((row) => {
          const title = element("span", { class: "mf-title", text: row.title });
          const line = element("span", { class: "mf-line" }, element("b", { class: "mf-number", text: row.rank }), title);
          line.append(element("span", { class: "mf-score", text: row.score, title: row.why }));
          const text = element("span", { class: "mf-text" }, ...markedText(row.text));
          const why = element("span", { class: "mf-why", text: `${row.name} · ${row.why}` });
          return element("li", { role: "option", id: uniqueId("mf-hit"), "data-name": row.name }, line, text, why);
        });
        list.replaceChildren(...options);
        list.hidden = rows.length === 0;
        input.setAttribute("aria-expanded", String(rows.length > 0));
        point(rows.findIndex((row) => row.name === pointed));
        mark();
        select.hidden = rows.length === 0;
        root.dataset.kind = outcome.kind ?? "idle";
        const words = EMPTY_WORDS[outcome.kind] ?? "";
        heading.textContent = rows.length ? outcome.heading : [words, outcome.heading].filter(Boolean).join(" ");
        notes.textContent = (outcome.notes ?? []).join("; ");
        notes.hidden = !notes.textContent;
        if (outcome.kind !== "idle" && outcome.kind !== "waiting") say(heading.textContent);
      }),
    );
    for (const trait of ["active", "selected"]) onEnd(watch(model, trait, mark));
    onEnd(watch(model, "searching", (on) => list.setAttribute("aria-busy", String(on))));
    onEnd(watch(model, "searching", (on) => root.classList.toggle("mf-working", on)));
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays in the question
    list.addEventListener("click", (event) => {
      const number = options.indexOf(event.target.closest("li"));
      if (number < 0) return;
      point(number);
      open(rows[number], event.shiftKey);
    });
    tell(model, "hello");
    return end;
  },
};
