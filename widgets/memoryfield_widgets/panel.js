// What every panel's script uses. Page text reaches the document as text only: there is no innerHTML here.

const THEME_ATTRIBUTES = ["data-jp-theme-light", "data-jp-theme-name", "class", "style"];
let lastId = 0;

/** Returns an id that no other element of the page has. */
export function uniqueId(prefix = "mf") {
  lastId += 1;
  return `${prefix}-${Date.now().toString(36)}-${lastId}`;
}

/**
 * Makes an element. Attributes: `text` is the text content, `on` an object of listeners, `style` an object of
 * properties, anything else an attribute (true: present, false or null: absent).
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") made.textContent = value;
    else if (key === "on") for (const [event, call] of Object.entries(value)) made.addEventListener(event, call);
    else if (key === "style") for (const [name, v] of Object.entries(value)) made.style.setProperty(name, v);
    else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(key, value === true ? "" : String(value));
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Sends a message to Python, where `heard_<kind>` is called. */
export function tell(model, kind, content = {}) {
  model.send({ kind, ...content });
}

/** Calls `handlers[kind](content, buffers)` for messages from Python. Returns a function that ends it. */
export function hear(model, handlers) {
  const listener = (content, buffers) => handlers[content?.kind]?.(content, buffers ?? []);
  model.on("msg:custom", listener);
  return () => model.off("msg:custom", listener);
}

/** Calls `call(value)` now and whenever the trait changes. Returns a function that ends it. */
export function watch(model, trait, call) {
  const listener = () => call(model.get(trait));
  model.on(`change:${trait}`, listener);
  listener();
  return () => model.off(`change:${trait}`, listener);
}

/** Says whether a CSS colour is dark; only the forms that getComputedStyle gives are read. */
export function isDark(color) {
  const parts = (color.match(/[\d.]+/g) ?? []).map(Number);
  if (parts.length < 3 || (parts.length > 3 && parts[3] === 0)) return false;
  const [red, green, blue] = color.startsWith("color(") ? parts.slice(-3).map((v) => v * 255) : parts;
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}

/** The background that is behind an element: that of the nearest ancestor that paints one. */
function backgroundOf(node) {
  for (let at = node; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (color && color !== "transparent" && !/,\s*0\)$/.test(color)) return color;
  }
  return "rgb(255, 255, 255)";
}

/** Says whether the theme around an element is dark: JupyterLab's attribute, else the background. */
export function isDarkTheme(node) {
  const said = document.body.getAttribute("data-jp-theme-light");
  if (said === "true" || said === "false") return said === "false";
  const vscode = document.body.className;
  if (/vscode-(dark|high-contrast)\b/.test(vscode)) return true;
  return isDark(backgroundOf(node.parentElement ?? document.body));
}

/** Says whether the reader asked for less motion. */
export function reducedMotion() {
  return window.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
}

/**
 * Keeps the keys that are pressed in an element from the notebook around it: its commands would act on cells. They
 * listen on the document before we do, so the attribute tells Lumino, and stopping the event tells all others.
 */
export function keepKeys(node) {
  node.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const event of ["keydown", "keypress", "keyup"]) node.addEventListener(event, (e) => e.stopPropagation());
}

/**
 * Makes the frame of a panel inside `el`: a labelled region with the theme's class whose keys stay inside.
 *
 * Returns `root` (append to it), `say(text)` (read aloud politely), `onTheme(call)` (called now and when the theme
 * changes), `onEnd(call)`, and `end` (what `render` returns).
 */
export function shell(model, el, name) {
  const root = element("section", { class: `mf mf-${name}`, role: "region" });
  const live = element("div", { class: "mf-hidden", "aria-live": "polite", role: "status" });
  root.append(live);
  el.append(root);
  keepKeys(root);
  const ends = [];
  const onEnd = (call) => ends.push(call);
  onEnd(watch(model, "label", (label) => root.setAttribute("aria-label", label || name)));
  const dismiss = element("button", { type: "button", text: "Dismiss", on: { click: () => tell(model, "dismiss") } });
  const alert = element("div", { class: "mf-fault mf-heed mf-is-bad", role: "alert", hidden: true }); // hidden inside a workbench
  root.append(alert);
  onEnd(
    watch(model, "fault", (text) => {
      alert.hidden = !text;
      alert.replaceChildren(...(text ? [element("strong", { text: "Error: " }), element("span", { text }), dismiss] : []));
    }),
  );

  const themed = [];
  let dark = null;
  const look = () => {
    const now = isDarkTheme(root);
    root.classList.toggle("mf-dark", now);
    dark = now;
    for (const call of themed) call(now);
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { attributes: true, attributeFilter: THEME_ATTRIBUTES });
  // The theme's style sheet arrives after the attribute changed: look again once it is there.
  const late = (event) => event.target?.tagName === "LINK" && look();
  document.addEventListener("load", late, true);
  onEnd(() => observer.disconnect());
  onEnd(() => document.removeEventListener("load", late, true));
  requestAnimationFrame(look); // now the element is not in the document yet

  return {
    root,
    say(text) {
      // The same words twice are not read twice: a no-break space makes them differ.
      live.textContent = live.textContent === text ? `${text}\u00a0` : text;
    },
    onTheme(call) {
      themed.push(call);
      if (dark !== null) call(dark);
    },
    onEnd,
    end() {
      for (const call of ends.splice(0)) call();
    },
  };
}

/** Returns seconds in the words of a person who waits. */
export function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "";
  if (seconds < 1.5) return "1 second";
  if (seconds < 90) return `${Math.round(seconds)} seconds`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} minutes`;
  return `${Math.round(seconds / 3600)} hours`;
}

/** Returns a number with its noun: 1 page, 1,200 pages. */
export function count(number, noun, many = `${noun}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : many}`;
}

/** Calls `call` once there was no further call for so many milliseconds; `.now()` does not wait, `.stop()` forgets. */
export function debounced(call, milliseconds) {
  let timer = null;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
  later.now = (...values) => {
    clearTimeout(timer);
    call(...values);
  };
  later.stop = () => clearTimeout(timer);
  return later;
}
