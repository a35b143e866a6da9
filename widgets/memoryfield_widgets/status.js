// The status line: jobs with progress and a way to cancel them, the last message, the last error.
import { element, tell, watch, shell, duration, count } from "./panel.js";

/** Returns the words for one job: what it does, how far it is, how long it will take. */
export function jobWords(job) {
  const parts = [job.title];
  if (job.total > 0) parts.push(`${job.done.toLocaleString("en")} of ${count(job.total, "page")}`);
  if (job.left !== null && job.left !== undefined && job.total > job.done) {
    parts.push(`about ${duration(job.left)} left`);
  }
  return parts.join(", ");
}

export default {
  render({ model, el }) {
    const { root, say, onEnd, end } = shell(model, el, "status");
    const jobs = element("ul", { "aria-label": "What is running" });
    const message = element("p", { class: "mf-message", role: "status", "aria-live": "polite" });
    const words = element("span");
    const mark = element("strong", { text: "Error: " });
    const dismiss = element("button", { type: "button", text: "Dismiss", on: { click: () => tell(model, "dismiss") } });
    const error = element("div", { class: "mf-error" }, element("span", {}, mark, words), dismiss);
    const alert = element("div", { role: "alert" });
    root.append(jobs, message, alert);

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
