// Models: what is compared, two maps that are linked, the pages that changed most, and what the figures say.
import { element, tell, hear, watch, shell, count, uniqueId } from "./panel.js";
import { MOST_LINES } from "./twindraw.js";
import { TwinMaps } from "./twinmaps.js";

const LINES = [
  ["changed", "of the pages that changed most"],
  ["selected", "of the selected pages"],
  ["all", "of all pages"],
  ["none", "none"],
];

/** Returns how one page changed, in words. */
export function changeWords(page) {
  const kept = `${Math.round(page.overlap * 100)} % of its neighbours are the same; rank-biased overlap ${page.rbo.toFixed(2)}`;
  const read = Object.entries(page.read).map(([label, share]) => `${label} reads ${Math.round(share * 100)} % of it`);
  return [kept, ...read].join("; ");
}

/** Returns what was chosen to be compared. */
export function chosenIn(form) {
  const checked = (name) => [...form.querySelectorAll(`input[name="${name}"]:checked`)].map((box) => box.value);
  return { models: checked("model"), recipes: checked("recipe"), dimensions: form.querySelector("[name=dimensions]").value };
}

function floats(view) {
  return new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

function tableNode(table) {
  const cell = (tag, text, at, more = {}) => element(tag, { text, class: table.right[at] ? "mf-right" : null, ...more });
  return element(
    "figure",
    { class: "mf-figures" },
    element("figcaption", { text: table.heading }),
    table.rows.length
      ? element(
          "div",
          { class: "mf-figures-scroll", tabindex: "0", role: "group", "aria-label": table.heading },
          element(
            "table",
            {},
            element("thead", {}, element("tr", {}, ...table.columns.map((text, at) => cell("th", text, at, { scope: "col" })))),
            element("tbody", {}, ...table.rows.map((row) => element("tr", {}, ...row.map((text, at) => cell("td", text, at))))),
          ),
        )
      : null,
    ...[...(table.more ? [`and ${table.more} more`] : []), ...table.notes].map((text) =>
      element("p", { class: "mf-soft", text }),
    ),
  );
}

export default {
  render({ model, el }) {
    const { root, say, onTheme, onEnd, end } = shell(model, el, "models");
    const send = (kind, content) => tell(model, kind, content);

    // what is compared
    const boxes = element("fieldset", {}, element("legend", { text: "Models" }));
    const recipes = element("fieldset", {}, element("legend", { text: "Recipes" }));
    const dimensions = element("input", { type: "text", name: "dimensions", size: "14", placeholder: "768, 256, 64" });
    const compare = element("button", { type: "submit", class: "mf-primary", text: "Compare" });
    const form = element(
      "form",
      { class: "mf-models-form" },
      boxes,
      recipes,
      element("label", { title: "For models that were trained to be cut" }, "Dimensions ", dimensions),
      compare,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send("compare", chosenIn(form));
    });
    const setup = element("details", { class: "mf-models-setup" }, element("summary", { text: "What is compared" }), form);
    const stale = element("p", { class: "mf-models-stale mf-heed", text: "Pages changed since this was compared. ", hidden: true });
    const stage = element("p", { class: "mf-soft", role: "status" });

    // the maps
    const names = [];
    let titles = [];
    const caption = element("p", { class: "mf-models-caption", "aria-live": "polite" });
    const twins = new TwinMaps({
      point(row) {
        const name = names[row];
        caption.textContent = name === undefined ? "" : `${titles[row]} (${name})`;
        nameOnce(name);
        ask(name ?? "");
      },
      select(rows, open) {
        send("select", { names: rows.map((row) => names[row]), open });
      },
    });
    onEnd(() => twins.end());
    onTheme((dark) => twins.theme(dark));
    let looked = null;
    /** Hides the line that names a page from eyes while the heading below it names the same one. */
    function nameOnce(name) {
      caption.classList.toggle("mf-hidden", looked !== null && name === looked);
    }
    let waiting = null;
    /** Asks how both spaces see a page, once the pointer rests on it. */
    function ask(name) {
      clearTimeout(waiting);
      waiting = setTimeout(() => name && send("look", { name }), 120);
    }
    onEnd(() => clearTimeout(waiting));

    const first = element("select", { "aria-label": "First space, on the left" });
    const second = element("select", { "aria-label": "Second space, on the right" });
    const pairChosen = (changed, other) => {
      if (changed.value === other.value) {
        const before = model.get("shown_pair");
        other.value = before.find((label) => label !== changed.value) ?? other.value;
      }
      send("pair", { first: first.value, second: second.value });
    };
    first.addEventListener("change", () => pairChosen(first, second));
    second.addEventListener("change", () => pairChosen(second, first));
    const lines = element("select", { id: uniqueId() }, ...LINES.map(([value, text]) => element("option", { value, text })));
    lines.addEventListener("change", () => twins.setLines(lines.value));
    const method = element(
      "select",
      { id: uniqueId() },
      element("option", { value: "pca", text: "PCA" }),
      element("option", { value: "umap", text: "UMAP" }),
    );
    method.addEventListener("change", () => send("method", { method: method.value }));
    const zoomButton = (text, label, click) => element("button", { type: "button", text, "aria-label": label, on: { click } });
    const bar = element(
      "div",
      { class: "mf-row mf-models-bar" },
      first,
      element("span", { text: "and" }),
      second,
      element("label", { for: method.id, text: "Layout" }),
      method,
      element("label", { for: lines.id, text: "Lines" }),
      lines,
      zoomButton("+", "Zoom in", () => twins.zoom(1.5)),
      zoomButton("−", "Zoom out", () => twins.zoom(1 / 1.5)),
      element("button", { type: "button", text: "Show all", on: { click: () => twins.showAll() } }),
    );
    const legend = element(
      "div",
      { class: "mf-row mf-soft mf-models-legend" },
      element("span", { text: "Neighbours the same" }),
      element("span", { class: "mf-ramp", "aria-hidden": "true" }),
      element("span", { text: "all others; numbers and diamonds: changed most; Shift and drag selects" }),
    );

    // the pages that changed most
    const look = element("div", { class: "mf-models-look" });
    const list = element("ol", { class: "mf-changed" });
    const side = element(
      "section",
      { "aria-label": "Pages that changed most" },
      element("h3", { text: "Changed most" }),
      list,
    );
    const open = (name) => send("select", { names: [name], open: true });

    function neighbours(page) {
      const pair = model.get("shown_pair");
      return element(
        "div",
        { class: "mf-near" },
        ...page.near.map((near, at) =>
          element(
            "div",
            {},
            element("div", { class: "mf-soft", text: `nearest in ${pair[at] ?? ""}` }),
            element(
              "ul",
              {},
              ...near.map(([name, cosine]) => {
                const both = page.near[1 - at].some(([other]) => other === name);
                return element(
                  "li",
                  {},
                  element("button", { type: "button", class: "mf-link", text: name, on: { click: () => open(name) } }),
                  element("span", { class: "mf-soft", text: `${cosine.toFixed(2)}${both ? ", in both" : ""}` }),
                );
              }),
            ),
            page.words[at].length ? element("div", { class: "mf-soft", text: `shared words: ${page.words[at].join(", ")}` }) : null,
          ),
        ),
      );
    }

    function lookAt(page) {
      looked = page?.name ?? null;
      nameOnce(names[twins.pointed]);
      twins.setFocus(page?.name, page ? page.near.map((near) => near.map(([name]) => name)) : [[], []]);
      look.replaceChildren(
        ...(page
          ? [
              element("h4", { dir: "auto", text: page.title }),
              element("p", { class: "mf-soft", text: `${page.name}: ${changeWords(page)}` }),
              neighbours(page),
            ]
          : []),
      );
    }

    function showChanged(rows) {
      list.replaceChildren(
        ...rows.map((page) =>
          element(
            "li",
            { on: { pointerenter: () => twins.point(twins.rows?.get(page.name) ?? -1) } },
            element("button", {
              type: "button",
              class: "mf-link",
              dir: "auto",
              text: page.title,
              on: { click: () => open(page.name), focus: () => twins.point(twins.rows?.get(page.name) ?? -1) },
            }),
            element("div", { class: "mf-soft", text: changeWords(page) }),
          ),
        ),
      );
    }

    const view = element(
      "div",
      { class: "mf-models-view" },
      bar,
      element("div", { class: "mf-models-columns" }, element("div", {}, twins.node, legend, caption, look), side),
    );
    const tables = element("div", { class: "mf-models-tables" });
    root.append(setup, stale, stage, view, tables);

    onEnd(
      watch(model, "choices", (choices) => {
        const held = new Set(chosenIn(form).models);
        const box = (name, item, text, title) =>
          element(
            "label",
            { title },
            element("input", { type: "checkbox", name, value: item.code, checked: item.chosen || (held.has(item.code) && name === "model") }),
            text,
          );
        boxes.replaceChildren(
          boxes.firstChild,
          ...choices.models.map((item) => box("model", item, ` ${item.code}${item.ready ? "" : " (not ready)"}`, item.note)),
        );
        recipes.replaceChildren(recipes.firstChild, ...choices.recipes.map((item) => box("recipe", item, ` ${item.code}`, "")));
        if (document.activeElement !== dimensions) dimensions.value = choices.dimensions;
      }),
    );
    onEnd(
      watch(model, "stage", (now) => {
        stage.textContent = { idle: "Choose what to compare.", working: "Comparing…", failed: "Nothing compared yet.", ready: "" }[now] ?? "";
        stage.hidden = !stage.textContent;
        setup.open = now === "idle" || now === "failed";
        compare.textContent = now === "working" ? "Compare anew" : "Compare";
      }),
    );
    onEnd(watch(model, "stale", (is) => (stale.hidden = !is)));
    stale.append(
      element("button", { type: "button", text: "Compare again", on: { click: () => send("compare", chosenIn(form)) } }),
    );
    onEnd(
      watch(model, "shown_pair", (pair) => {
        view.hidden = pair.length < 2;
        const labels = model.get("labels");
        for (const [at, select] of [first, second].entries()) {
          select.replaceChildren(...labels.map((text) => element("option", { value: text, text })));
          select.value = pair[at] ?? "";
        }
        lookAt(null);
      }),
    );
    onEnd(watch(model, "method", (name) => (method.value = name)));
    onEnd(watch(model, "changed", showChanged));
    onEnd(watch(model, "tables", (found) => tables.replaceChildren(...found.map(tableNode))));
    let version = -1;
    onEnd(
      hear(model, {
        points(content, buffers) {
          if (content.version === version) return; // another view said hello
          version = content.version;
          names.splice(0, names.length, ...content.names);
          titles = content.titles;
          const [one, other, rbo] = buffers.map(floats);
          twins.setPoints(content, [one, other], rbo);
          const far = names.length > MOST_LINES;
          lines.querySelector("[value=all]").textContent = far ? `of the ${count(MOST_LINES, "page")} that moved farthest` : "of all pages";
          root.dataset.count = content.names.length;
          root.dataset.kinds = content.kinds.join(" ");
          say(`Two maps of ${count(content.names.length, "page")}: ${content.pair.join(" and ")}, ${content.kinds.join(" and ")}`);
        },
        selection: ({ names: selected, active }) => twins.setSelection(selected, active),
        page: ({ page }) => lookAt(page),
      }),
    );
    root.twins = twins; // for tests, and for the curious
    send("hello");
    return end;
  },
};
