// The status line: jobs with progress and a way to cancel them, the last message, the last error.
import { element, tell, hear, watch, shell, duration, count } from "./panel.js";

/** Returns the words for one job: what it does, how far it is, how long it will take. */
export function jobWords(job) {
  const parts = [job.title];
  if (job.total > 0) parts.push(`${job.done.toLocaleString("en")} of ${count(job.total, "page")}`);
  if (job.left !== null && job.left !== undefined && job.total > job.done) {
    parts.push(`about ${duration(job.left)} left`);
  }
  return parts.join(", ");
}

/** Makes the list of indexes: what each is, and buttons to build, update and delete. */
function indexList(model, onEnd) {
  const body = element("div");
  const button = (text, label, click, attributes = {}) =>
    element("button", { type: "button", text, "aria-label": label, on: { click }, ...attributes });
  const list = element(
    "details",
    { class: "mf-indexes mf-tight", on: { toggle: (event) => tell(model, "indexes", { open: event.currentTarget.open }) } },
    element("summary", { text: "Indexes" }),
    body,
  );
  const remove = (row) => {
    // the first press asks, the second does it
    const act = (event) => {
      const own = event.currentTarget;
      if (own.dataset.asked) {
        tell(model, "delete", { file: row.file });
        return;
      }
      own.dataset.asked = "yes";
      own.textContent = "Really delete?";
      own.setAttribute("aria-label", `Really delete the index of ${row.model}, recipe ${row.recipe}?`);
      own.addEventListener("blur", () => {
        delete own.dataset.asked;
        own.textContent = "Delete";
      });
    };
    return button("Delete", `Delete the index of ${row.model}, recipe ${row.recipe}`, act);
  };
  const line = (row) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", text: row.model }),
      element("td", { text: row.recipe }),
      element("td", { text: count(row.rows, "page") }),
      element("td", { text: row.problem || row.state }),
      element(
        "td",
        {},
        button("Update", `Update the index of ${row.model}, recipe ${row.recipe}`, () =>
          tell(model, "build", { model: row.model, recipe: row.recipe }),
        ),
        " ",
        remove(row),
      ),
    );
  onEnd(
    hear(model, {
      indexes({ rows, models }) {
        const heads = ["Model", "Recipe", "Holds", "State", ""];
        const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", text })));
        const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows.map(line)));
        const choice = element(
          "select",
          { "aria-label": "Model of a new index" },
          ...models.map((code) => element("option", { value: code, text: code })),
        );
        const build = button("Build", "Build an index with this model", () => tell(model, "build", { model: choice.value }));
        body.replaceChildren(
          rows.length ? table : element("p", { class: "mf-soft", text: "No index yet: a search makes one." }),
          models.length ? element("div", { class: "mf-row" }, "Another model that is ready:", choice, build) : "",
        );
      },
    }),
  );
  return list;
}

export default {
  render({ model, el }) {
    const { root, say, onEnd, end } = shell(model, el, "status");
    const jobs = element("ul", { class: "mf-tight", "aria-label": "What is running" });
    const message = element("p", { class: "mf-message", role: "status", "aria-live": "polite" });
    const words = element("span");
    const mark = element("strong", { text: "Error: " });
    const dismiss = element("button", { type: "button", text: "Dismiss", on: { click: () => tell(model, "dismiss") } });
    const error = element("div", { class: "mf-error mf-heed mf-is-bad mf-tight" }, element("span", {}, mark, words), dismiss);
    const alert = element("div", { role: "alert" });
    root.append(jobs, message, alert, indexList(model, onEnd));

    const rows = new Map(); // by job id, so that a Cancel button keeps its focus while numbers change
    onEnd(
      watch(model, "jobs", (shown) => {
        for (const [id, row] of rows) {
          if (!shown.some((job) => job.id === id)) {
            row.item.remove();
            rows.delete(id);
          }
        }
        for (const job of shown) {
          let row = rows.get(job.id);
          if (!row) {
            const text = element("span");
            const bar = element("progress", { "aria-label": job.title });
            const cancel = element("button", {
              type: "button",
              text: "Cancel",
              "aria-label": `Cancel: ${job.title}`,
              on: { click: () => tell(model, "cancel", { id: job.id }) },
            });
            row = { text, bar, item: element("li", {}, text, bar, cancel) };
            rows.set(job.id, row);
            jobs.append(row.item);
          }
          row.text.textContent = jobWords(job);
          if (job.total > 0) {
            row.bar.max = job.total;
            row.bar.value = job.done;
          } else row.bar.removeAttribute("value");
        }
        jobs.hidden = shown.length === 0;
      }),
    );
    onEnd(watch(model, "message", (text) => (message.textContent = text || "Ready")));
    onEnd(
      watch(model, "error", (text) => {
        words.textContent = text;
        if (text) alert.replaceChildren(error);
        else alert.replaceChildren();
      }),
    );
    // What begins is said once; numbers that run are for the eye.
    let known = new Set();
    onEnd(
      watch(model, "jobs", (shown) => {
        const fresh = shown.filter((job) => !known.has(job.id) && job.total !== 1);
        if (fresh.length) say(fresh.map((job) => job.title).join(", "));
        known = new Set(shown.map((job) => job.id));
      }),
    );
    return end;
  },
};
