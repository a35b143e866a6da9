// The editor of a page: form or raw text, preview, similar pages, and a question before anything is written.
import { element, tell, hear, watch, shell, uniqueId, count, debounced } from "./panel.js";

const TYPING_PAUSE = 250; // milliseconds without a key before the kernel hears what was typed
const FORM_FIELDS = [
  ["title", "Title", "text"],
  ["summary", "Summary", "text"],
  ["tags", "Tags", "text"],
  ["created", "Created", "text"],
];
const PREVIEW_TAGS = new Set(
  ("a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul").split(" "),
);

/**
 * Builds elements from the preview's HTML, which Python has cleaned already, by a list of what may stand there. The
 * parser makes a document without a window: nothing runs and nothing is fetched in it.
 */
export function safeNodes(html, openPage) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  const copy = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
    if (node.nodeType !== Node.ELEMENT_NODE) return null;
    const tag = node.localName;
    if (!PREVIEW_TAGS.has(tag)) return document.createTextNode(node.textContent);
    const made = document.createElement(tag);
    if (tag === "a") dressLink(made, node, openPage);
    if (tag === "ol" && /^\d{1,6}$/.test(node.getAttribute("start") ?? "")) made.setAttribute("start", node.getAttribute("start"));
    if (tag === "span" && node.hasAttribute("data-image")) {
      made.className = "mf-image";
      made.setAttribute("title", `image, not loaded: ${node.getAttribute("data-image")}`);
    }
    for (const child of node.childNodes) {
      const copied = copy(child);
      if (copied) made.append(copied);
    }
    return made;
  };
  return [...parsed.body.childNodes].map(copy).filter(Boolean);
}

function dressLink(made, node, openPage) {
  const page = node.getAttribute("data-page");
  const place = node.getAttribute("href") ?? "";
  if (page) {
    made.setAttribute("href", "#");
    made.setAttribute("title", `open the page ${page}`);
    made.addEventListener("click", (event) => {
      event.preventDefault();
      openPage(page);
    });
  } else if (/^(https?:|mailto:)/i.test(place)) {
    made.setAttribute("href", place);
    made.setAttribute("target", "_blank");
    made.setAttribute("rel", "noopener noreferrer nofollow");
  }
}

/** Returns the words for bytes and tokens, and whether something is past what is read. */
export function sizeWords(facts) {
  const parts = [];
  let over = false;
  if (Number.isFinite(facts.bytes)) {
    parts.push(`${facts.bytes.toLocaleString("en")} of ${facts.limit.toLocaleString("en")} bytes`);
    over = facts.bytes > facts.limit;
    if (over) parts.push(`${count(facts.bytes - facts.limit, "byte")} need not be embedded`);
  }
  if (Number.isFinite(facts.tokens) && Number.isFinite(facts.maxTokens)) {
    parts.push(`${facts.tokens.toLocaleString("en")} of ${facts.maxTokens.toLocaleString("en")} tokens`);
    if (facts.tokens > facts.maxTokens) {
      over = true;
      parts.push("the model does not read the rest");
    }
  } else if (Number.isFinite(facts.maxTokens)) parts.push(`the model reads ${count(facts.maxTokens, "token")}`);
  return { words: parts.join(" · "), over };
}

/** Returns rows for the lines of a diff; the sign stands beside the colour. */
export function diffRows(lines) {
  const classes = { "+": "mf-added", "-": "mf-removed", "@": "mf-place" };
  return lines.map(([kind, text]) => {
    const sign = element("span", { class: "mf-sign", text: kind === "@" ? "" : kind });
    const said = { "+": "added: ", "-": "removed: " }[kind];
    const hidden = said ? element("span", { class: "mf-hidden", text: said }) : null;
    return element("div", { class: classes[kind] ?? "" }, hidden, sign, document.createTextNode(text));
  });
}

function button(text, click, attributes = {}) {
  return element("button", { type: "button", text, on: { click }, ...attributes });
}

export default {
  render({ model, el }) {
    const { root, say, onEnd, end } = shell(model, el, "editor");
    const view = uniqueId("view");
    let number = 0; // of the last message about typing
    let shown = { open: false };

    // --- what there is ----------------------------------------------------------------------------------------------
    const name = element("h3", { class: "mf-name" });
    const dirty = element("span", { class: "mf-dirty", role: "status" });
    const modes = element("div", { class: "mf-modes", role: "group", "aria-label": "View" });
    const modeButtons = [
      ["form", "Form"],
      ["raw", "Raw"],
    ].map(([mode, text]) => button(text, () => tell(model, "mode", { ...typed(), mode }), { "data-mode": mode, "aria-pressed": "false" }));
    modes.append(...modeButtons);
    const save = button("Save…", () => send("save"), { class: "mf-primary", title: "Shows the diff first (Ctrl+S)" });
    const revert = button("Revert", () => send("revert"));
    const rename = button("Rename…", () => askRename());
    const remove = button("Delete…", () => askDelete());
    const fresh = button("New page", () => tell(model, "new"));
    const undo = button("Undo", () => tell(model, "undo"), { title: "Take back the last step of the field's history" });
    const redo = button("Redo", () => tell(model, "redo"), { title: "Do again what was undone last" });
    const bar = element("div", { class: "mf-bar", role: "toolbar", "aria-label": "Page" }, save, revert, modes, rename, remove);
    const fieldBar = element("div", { class: "mf-bar", role: "toolbar", "aria-label": "Field" }, fresh, undo, redo);
    const drafts = element("div", { class: "mf-drafts mf-row" });
    const head = element("div", { class: "mf-top" }, element("div", { class: "mf-row" }, name, dirty), fieldBar);

    const ask = element("div", { class: "mf-question", role: "dialog", "aria-label": "Question", hidden: true });
    const why = element("p", { class: "mf-heed", hidden: true });
    const problem = element("p", { class: "mf-heed mf-is-bad", role: "alert", hidden: true });
    const elsewhere = element("p", { class: "mf-heed", role: "alert", hidden: true });

    const inputs = {};
    const form = element("div", { class: "mf-form" });
    for (const [key, label, type] of FORM_FIELDS) {
      const id = uniqueId(`mf-${key}`);
      inputs[key] = element("input", { id, type, autocomplete: "off" });
      form.append(element("div", { class: `mf-field mf-field-${key}` }, element("label", { for: id, text: label }), inputs[key]));
    }
    inputs.tags.placeholder = "commas between";
    const fixed = element("p", { class: "mf-fixed" });
    const body = element("textarea", { "aria-label": "Text, Markdown", spellcheck: "true" });
    const raw = element("textarea", { "aria-label": "Raw page", spellcheck: "false", class: "mf-rawtext" });
    const preview = element("div", { class: "mf-preview", role: "document", tabindex: 0, "aria-label": "Preview" });
    const texts = element("div", { class: "mf-texts" }, body, raw, preview);
    const meter = element("meter", { min: 0, "aria-label": "Bytes used" });
    const size = element("span", { class: "mf-size" });
    const similarWords = element("p", { class: "mf-soft" });
    const similarList = element("ul", { "aria-label": "Similar pages" });
    const embed = button("Embed the field now", () => tell(model, "embed"), { hidden: true });
    const similar = element("div", { class: "mf-similar" }, element("h4", { text: "Similar pages" }), similarWords, embed, similarList);
    const steps = element("ol", { class: "mf-steps mf-tight" });
    const history = element("details", { class: "mf-history" }, element("summary", { text: "History of the field" }), steps);
    const nothing = element("p", { class: "mf-nothing mf-soft" });
    const foot = element("div", { class: "mf-foot mf-row" }, meter, size);
    const page = element("div", { class: "mf-page" }, bar, why, problem, elsewhere, form, fixed, texts, foot, similar);
    root.append(head, drafts, ask, nothing, page, history);

    // --- what is typed ----------------------------------------------------------------------------------------------
    const typed = () => {
      number += 1;
      const form = {};
      for (const key of Object.keys(inputs)) if (!inputs[key].disabled) form[key] = inputs[key].value;
      return { view, number, name: shown.name, form, body: body.value, raw: raw.value };
    };
    let waiting = false;
    const later = debounced(() => {
      waiting = false;
      tell(model, "typed", typed());
    }, TYPING_PAUSE);
    onEnd(() => waiting && later.now());
    const send = (kind) => {
      later.stop();
      waiting = false;
      tell(model, kind, typed());
    };
    for (const control of [...Object.values(inputs), body, raw]) {
      control.addEventListener("input", () => {
        waiting = true;
        dirty.textContent = "Not saved";
        later();
      });
    }
    root.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s") {
        event.preventDefault();
        if (shown.open && !save.disabled) send("save");
      }
    });
    const look = () => document.visibilityState === "visible" && tell(model, "look");
    window.addEventListener("focus", look);
    onEnd(() => window.removeEventListener("focus", look));

    // --- questions --------------------------------------------------------------------------------------------------
    let back = null;
    const close = () => {
      ask.hidden = true;
      ask.replaceChildren();
      if (back?.isConnected) back.focus();
      back = null;
    };
    const question = (label, ...parts) => {
      if (ask.hidden) back = root.contains(document.activeElement) ? document.activeElement : null;
      ask.setAttribute("aria-label", label);
      ask.replaceChildren(element("h4", { text: label }), ...parts);
      ask.hidden = false;
      (ask.querySelector("[data-first]") ?? ask.querySelector("button"))?.focus();
      ask.scrollIntoView({ block: "nearest" });
    };
    ask.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
    });
    const cancel = () => button("Cancel", close);
    const answers = (...buttons) => element("div", { class: "mf-row" }, ...buttons);
    const diffBox = (lines) => element("div", { class: "mf-diff", tabindex: 0, role: "document", "aria-label": "Changes" }, ...diffRows(lines));

    const askSave = (content) => {
      const go = () => {
        close();
        tell(model, "apply", { sha256: content.sha256 });
      };
      const label = content.isNew ? `Create the page ${content.name}?` : `Save ${content.name}?`;
      question(label, diffBox(content.diff), answers(button("Save", go, { class: "mf-primary", "data-first": true }), cancel()));
      say(`${label} ${count(content.diff.filter(([kind]) => kind === "+" || kind === "-").length, "changed line")}`);
    };
    const askRename = () => {
      const input = element("input", { type: "text", "aria-label": "New name", value: shown.name, "data-first": true });
      const go = () => {
        close();
        tell(model, "rename", { to: input.value });
      };
      input.addEventListener("keydown", (event) => event.key === "Enter" && go());
      question(`Rename ${shown.name}`, element("p", { text: "Links to it in other pages follow." }), input, answers(button("Rename", go, { class: "mf-primary" }), cancel()));
      input.select();
    };
    const askDelete = () => {
      const go = () => {
        close();
        tell(model, "delete", { name: shown.name });
      };
      const words = element("p", { text: "The page goes, with what was not saved of it. Undo brings back what was saved." });
      question(`Delete ${shown.name}?`, words, answers(button("Delete", go, { class: "mf-danger" }), cancel()));
    };
    const askConflict = (content) => {
      const settle = (take) => () => {
        close();
        tell(model, "settle", { take, sha256: content.sha256 });
      };
      const pane = (label, text) =>
        element("div", {}, element("h5", { text: label }), element("pre", { tabindex: 0, "aria-label": label, text }));
      const words = content.gone
        ? "Someone deleted this page while you wrote. Your text is still here."
        : "Someone changed this page while you wrote. Nothing is written before you choose.";
      const both = element("div", { class: "mf-both" }, content.gone ? null : pane("On disk now", content.theirs), pane("Yours", content.mine));
      const buttons = [button(content.gone ? "Write mine again" : "Write mine over it", settle("mine"))];
      buttons.push(button(content.gone ? "Let it go" : "Take the one on disk", settle("theirs")), button("Go on writing", close, { "data-first": true }));
      const parts = [element("p", { text: words }), both];
      if (!content.gone) parts.push(element("h5", { text: "What yours would change" }), diffBox(content.diff));
      question(`${content.name} was changed elsewhere`, ...parts, answers(...buttons));
      say(words);
    };

    // --- what the kernel says ---------------------------------------------------------------------------------------
    const load = (content) => {
      const same = shown.open && content.open && shown.name === content.name && shown.mode === content.mode;
      const late = same && (waiting || (content.heard?.[view] ?? 0) < number); // typing is on its way: keep it
      if (!same) {
        later.stop();
        waiting = false;
        close();
      }
      shown = { ...content, open: Boolean(content.open) };
      page.hidden = !shown.open;
      nothing.hidden = shown.open;
      nothing.textContent = shown.readOnly ? "No page is open. Choose one in the search or on the map." : "No page is open. Choose one in the search or on the map, or begin a new one.";
      for (const control of [fresh, undo, redo]) control.disabled = shown.readOnly;
      name.textContent = !shown.open ? "" : shown.name || "New page";
      showDrafts();
      if (!shown.open) return;
      const locked = Boolean(shown.why);
      const isRaw = shown.mode === "raw";
      why.hidden = !locked;
      why.textContent = shown.why;
      form.hidden = fixed.hidden = body.hidden = isRaw;
      raw.hidden = !isRaw;
      modeButtons.forEach((one) => {
        one.setAttribute("aria-pressed", String(one.dataset.mode === shown.mode));
        one.disabled = !shown.name;
      });
      for (const [key, input] of Object.entries(inputs)) {
        const structured = shown.locked.includes(key);
        input.readOnly = locked;
        input.disabled = structured;
        input.title = structured ? "This key holds more than one line or a structure: edit it in the raw view" : "";
        if (!late && input.value !== shown.form[key]) input.value = shown.form[key];
      }
      for (const [control, text] of [
        [body, shown.body],
        [raw, shown.raw],
      ]) {
        control.readOnly = locked;
        if (late || control.value === text) continue;
        const at = [control.selectionStart, control.selectionEnd];
        control.value = text;
        if (same) control.setSelectionRange(...at);
        else control.scrollTop = 0;
      }
      for (const control of [save, revert]) control.disabled = locked;
      for (const control of [rename, remove]) control.disabled = locked || !shown.name;
      if (!same && !shown.name && root.contains(document.activeElement)) inputs.title.focus();
      const facts = [
        ["Updated", shown.updated],
        ["uuid", shown.uuid],
      ].filter(([, value]) => value);
      fixed.replaceChildren(...facts.map(([key, value]) => element("span", {}, `${key} `, element("code", { text: value }))));
    };
    onEnd(
      hear(model, {
        load,
        preview({ html, cut }) {
          preview.replaceChildren(...safeNodes(html, (to) => tell(model, "open", { name: to })));
          if (cut) preview.append(element("p", { class: "mf-soft", text: "The rest is not previewed." }));
        },
        confirm: askSave,
        conflict: askConflict,
      }),
    );
    onEnd(
      watch(model, "facts", (facts) => {
        if (!waiting) dirty.textContent = facts.dirty ? "Not saved" : "";
        const { words, over } = sizeWords(facts);
        size.textContent = words;
        size.classList.toggle("mf-over", over);
        meter.max = facts.limit || 1;
        meter.high = over ? 0 : meter.max; // the bar is of another colour once it is full
        meter.optimum = 0;
        meter.value = Math.min(facts.bytes ?? 0, meter.max);
        problem.textContent = facts.problem ?? "";
        problem.hidden = !facts.problem;
        elsewhere.hidden = !facts.elsewhere;
        elsewhere.textContent =
          facts.elsewhere === "gone"
            ? "This page was deleted elsewhere. Save offers to write your text again."
            : "This page was changed elsewhere since you opened it. Save shows both versions.";
        if (!facts.elsewhere) elsewhere.textContent = "";
      }),
    );
    onEnd(
      watch(model, "similar", (found) => {
        similarWords.textContent = found.words ?? "";
        similarWords.hidden = !found.words;
        embed.hidden = !found.embed;
        similarList.replaceChildren(
          ...(found.rows ?? []).map((row) => {
            const open = button(row.title, () => tell(model, "open", { name: row.name }), { class: "mf-link", title: row.name });
            return element("li", {}, open, element("span", { class: "mf-soft", text: ` ${row.closeness.toFixed(2)}, ${row.reason}` }));
          }),
        );
      }),
    );
    const showDrafts = () => {
        const names = model.get("drafts").filter((one) => !shown.open || one !== shown.name);
        const others = names.map((one) => button(one || "new page", () => tell(model, "open", { name: one }), { class: "mf-link" }));
        drafts.replaceChildren(element("span", { class: "mf-soft", text: "Not saved yet:" }), ...others);
        drafts.hidden = others.length === 0;
    };
    onEnd(watch(model, "drafts", showDrafts));
    onEnd(
      watch(model, "steps", (list) => {
        steps.replaceChildren(
          ...list.map((step) => {
            const when = new Date(step.time);
            const moment = Number.isNaN(when.valueOf()) ? step.time : when.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
            const text = element("span", { text: `${step.said}: ${step.pages}` });
            const state = step.state === "done" ? moment : `${moment}, ${step.state}`;
            const go =
              step.state === "undone"
                ? button("Redo", () => tell(model, "redo", { step: step.id }), { "aria-label": `Redo step ${step.id}` })
                : button("Undo", () => tell(model, "undo", { step: step.id }), { "aria-label": `Undo step ${step.id}`, disabled: step.state !== "done" });
            return element("li", { value: step.id }, text, element("span", { class: "mf-soft", text: state }), go);
          }),
        );
        history.hidden = list.length === 0;
      }),
    );
    load({ open: false, readOnly: false });
    tell(model, "hello");
    return end;
  },
};
