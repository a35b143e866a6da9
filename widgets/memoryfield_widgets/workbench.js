// The workbench: the panels' views in one grid, tabs, and the keys that go from one region to the next.
import { element, tell, watch, shell, uniqueId } from "./panel.js";

const TAB_WORDS = { page: "Page", families: "Families", models: "Models", probes: "Probes" };
const LOOK_EVERY = 10_000; // milliseconds between two looks at what other programs did
const SHORTCUTS = [
  ["F6, Shift+F6", "next, previous region: search, map, tabs, status"],
  ["/", "to the question (where one does not type)"],
  ["?", "these keys (where one does not type)"],
  ["Arrows, Enter, Escape", "in the search: choose a page, open it, clear"],
  ["Shift+Enter", "in the search: add the page to the selection"],
  ["Left, Right, Home, End", "on the tabs: choose a tab"],
  ["Ctrl+S", "in the page: show the diff, then save"],
  ["s, d, u, n, b", "in the families: same, different, unsure, skip, back"],
  ["Shift, Alt with a lasso", "on the map: add to, remove from the selection"],
];

/** Returns the index of the tab that a key leads to, or null. */
export function tabAfter(key, at, length) {
  if (key === "ArrowRight" || key === "ArrowDown") return (at + 1) % length;
  if (key === "ArrowLeft" || key === "ArrowUp") return (at + length - 1) % length;
  if (key === "Home") return 0;
  if (key === "End") return length - 1;
  return null;
}

/** Says whether a person is typing text into an element. */
export function isTyping(node) {
  const tag = node?.tagName?.toLowerCase();
  if (tag === "textarea" || tag === "select") return true;
  if (tag === "input") return !["button", "checkbox", "radio", "range"].includes(node.type);
  return Boolean(node?.isContentEditable);
}

const FOCUSABLE =
  'button:not(:disabled):not([tabindex="-1"]), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), ' +
  'a[href], summary, [tabindex]:not([tabindex="-1"])';

function isShown(node) {
  return node.getClientRects().length > 0;
}

export default {
  render({ model, el }) {
    const { root, onEnd, end } = shell(model, el, "workbench");
    const ids = Object.fromEntries(Object.keys(TAB_WORDS).map((name) => [name, [uniqueId("tab"), uniqueId("tabpanel")]]));

    const title = element("h2", {});
    const hint = element("span", { class: "mf-hint" });
    const help = element("button", { type: "button", text: "Keys", "aria-haspopup": "dialog", "aria-expanded": "false" });
    const head = element("div", { class: "mf-title-row" }, element("div", { class: "mf-row" }, title, hint), help);
    const keys = element("dl", { class: "mf-keys" });
    for (const [key, words] of SHORTCUTS) {
      keys.append(element("div", {}, element("dt", {}, element("kbd", { text: key })), element("dd", { text: words })));
    }
    const closeHelp = element("button", { type: "button", text: "Close" });
    const popover = element("div", { class: "mf-help", role: "dialog", "aria-label": "Keys", hidden: true }, keys, closeHelp);

    const slots = {};
    for (const name of ["search", "map", "status"]) slots[name] = element("div", { class: `mf-slot mf-slot-${name}` });
    const tabs = {};
    const tablist = element("div", { class: "mf-tabs", role: "tablist", "aria-label": "Panels" });
    const panels = element("div", { class: "mf-panels" });
    for (const [name, words] of Object.entries(TAB_WORDS)) {
      const [tabId, panelId] = ids[name];
      tabs[name] = element("button", { type: "button", role: "tab", id: tabId, "aria-controls": panelId, text: words });
      slots[name] = element("div", { class: "mf-slot", role: "tabpanel", id: panelId, "aria-labelledby": tabId, hidden: true });
      tablist.append(tabs[name]);
      panels.append(slots[name]);
    }
    const gone = element("p", { class: "mf-gone", role: "alert", hidden: true });
    const side = element("div", { class: "mf-side" }, tablist, panels);
    const grid = element("div", { class: "mf-grid" }, slots.search, slots.map, side);
    root.append(head, popover, gone, grid, slots.status);

    // --- the panels' views ------------------------------------------------------------------------------------------
    const views = new Map(); // by name: the reference and the promise of the view
    let ended = false;
    const place = async (name, reference) => {
      const known = views.get(name);
      if (known?.reference === reference) return;
      const mine = { reference, view: null };
      views.set(name, mine);
      known?.view?.remove();
      try {
        const child = await model.widget_manager.get_model(reference.replace(/^IPY_MODEL_/, ""));
        const view = await model.widget_manager.create_view(child);
        if (ended || views.get(name) !== mine) return view.remove();
        mine.view = view;
        slots[name].replaceChildren(view.el);
      } catch (error) {
        slots[name].replaceChildren(element("p", { class: "mf-soft", text: `This panel is gone: run the cell again. (${error.message})` }));
      }
    };
    onEnd(() => {
      ended = true;
      for (const { view } of views.values()) view?.remove();
    });
    onEnd(
      watch(model, "parts", (parts) => {
        for (const [name, reference] of Object.entries(parts ?? {})) {
          if (slots[name]) place(name, typeof reference === "string" ? reference : `IPY_MODEL_${reference.model_id}`);
        }
      }),
    );

    // --- tabs -------------------------------------------------------------------------------------------------------
    let current = "";
    const showTab = (name) => {
      if (!tabs[name]) return;
      current = name;
      for (const [other, tab] of Object.entries(tabs)) {
        tab.setAttribute("aria-selected", String(other === name));
        tab.tabIndex = other === name ? 0 : -1;
        slots[other].hidden = other !== name;
      }
      if (!slots[name].childElementCount) slots[name].append(element("p", { class: "mf-soft mf-wait", text: "One moment…" }));
    };
    const choose = (name, focus = false) => {
      showTab(name); // at once; Python makes the panel if it was never open
      tell(model, "tab", { name });
      if (focus) tabs[name].focus();
    };
    for (const [name, tab] of Object.entries(tabs)) tab.addEventListener("click", () => choose(name));
    tablist.addEventListener("keydown", (event) => {
      const names = Object.keys(tabs);
      const to = tabAfter(event.key, names.indexOf(current), names.length);
      if (to === null || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      choose(names[to], true);
    });
    onEnd(watch(model, "tab", showTab));
    let opened = model.get("active");
    onEnd(
      watch(model, "active", (active) => {
        const here = document.activeElement;
        const asked = slots.search.contains(here) || slots.map.contains(here);
        if (active && active !== opened && asked && current !== "page") choose("page");
        opened = active;
      }),
    );

    // --- keys between regions ---------------------------------------------------------------------------------------
    const regions = () => [slots.search, slots.map, tablist, slots[current], slots.status];
    const enter = (region) => {
      if (region === tablist) return tabs[current].focus(), true;
      const target = [...region.querySelectorAll(FOCUSABLE)].find(isShown);
      target?.focus();
      return Boolean(target);
    };
    const toggleHelp = (open) => {
      popover.hidden = !open;
      help.setAttribute("aria-expanded", String(open));
      (open ? closeHelp : help).focus();
    };
    help.addEventListener("click", () => toggleHelp(popover.hidden));
    closeHelp.addEventListener("click", () => toggleHelp(false));
    popover.addEventListener("keydown", (event) => event.key === "Escape" && toggleHelp(false));
    // On the way down: panels keep their keys, none of them comes up again.
    root.addEventListener(
      "keydown",
      (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "F6") {
          event.preventDefault();
          event.stopPropagation();
          const all = regions();
          const at = all.findIndex((region) => region.contains(document.activeElement));
          const step = event.shiftKey ? -1 : 1;
          for (let i = 1; i <= all.length; i += 1) {
            if (enter(all[(((at < 0 ? (step > 0 ? -1 : 0) : at) + step * i) % all.length + all.length) % all.length])) return;
          }
        } else if ((event.key === "/" || event.key === "?") && !isTyping(event.target)) {
          event.preventDefault();
          event.stopPropagation();
          if (event.key === "/") slots.search.querySelector("input")?.focus();
          else toggleHelp(true);
        }
      },
      true,
    );

    // --- what happens around us -------------------------------------------------------------------------------------
    const look = () => document.visibilityState === "visible" && isShown(root) && tell(model, "look");
    window.addEventListener("focus", look);
    document.addEventListener("visibilitychange", look);
    const timer = setInterval(look, LOOK_EVERY);
    onEnd(() => window.removeEventListener("focus", look));
    onEnd(() => document.removeEventListener("visibilitychange", look));
    onEnd(() => clearInterval(timer));
    const lost = () => {
      gone.hidden = false;
      gone.textContent = "The kernel was restarted, or this workbench was closed: run the cell again.";
      clearInterval(timer);
    };
    model.on("comm_live_update", lost);
    onEnd(() => model.off("comm_live_update", lost));
    onEnd(watch(model, "title", (text) => (title.textContent = text)));
    onEnd(
      watch(model, "hint", (text) => {
        hint.textContent = text;
        hint.hidden = !text;
      }),
    );
    return end;
  },
};
