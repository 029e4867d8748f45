// The two bars above the panes: the contract and its settings; views, panes and search.

import { button, change, el, number } from "./dom.js";
import { on, set, state } from "./store.js";
import { currentView, isShown, offeredPanes, openView, paneAt, shownPanes, toggle, VIEWS } from "./layout.js";
import { cancel, exportPage, withSettings } from "./actions.js";
import { helpDialog, openDialog } from "./dialogs.js";
import { currentTheme, switchTheme } from "./theme.js";

const SYMBOLS = { light: "☀", dark: "☾", system: "◐" };

function field(label, control) {
  return el("label", { class: "field" }, el("span", { text: label }), control);
}

function options(select, values, chosen) {
  select.replaceChildren(...values.map((value) => el("option", { value, text: value })));
  select.value = chosen;
}

function figure(label, pair, note) {
  const better = pair.after < pair.before ? "better" : pair.after > pair.before ? "worse" : "";
  return el(
    "div", { class: "figure", title: note },
    el("span", { class: "dim", text: label }), el("s", { text: number(pair.before) }), el("b", { text: number(pair.after) }),
    el("span", { class: `change ${better}`, text: change(pair.before, pair.after) }),
  );
}

export function makeBar() {
  const name = button("", () => openDialog(), { class: "name", title: "Open or paste another contract", "aria-haspopup": "dialog" });
  const object = el("select", { "aria-label": "Object", on: { change: () => withSettings({ object: object.value }) } });
  const fork = el("select", { "aria-label": "Fork", class: "fork", on: { change: () => withSettings({ fork: fork.value }) } });
  const runs = el("input", {
    type: "number", min: 0, step: 1, "aria-label": "Expected runs", class: "runs",
    on: { change: () => runs.validity.valid && runs.value !== "" && withSettings({ runs: Number(runs.value) }) },
  });
  const figures = el("div", { class: "figures" });
  const busy = el("div", { class: "busy", role: "progressbar", "aria-label": "Working", hidden: true }, el("span", { class: "spinner" }), el("span", { class: "what" }), button("Cancel", cancel, { class: "small" }));
  const theme = button("", () => switchTheme(), { class: "icon" });
  const share = button("Link", () => copyLink(share), { title: "A link to exactly this view; it works while fusevm explore runs" });
  const save = button("Export", () => exportPage(), { class: "primary", title: "Everything on this page as one HTML file" });
  const help = button("?", () => helpDialog(), { class: "icon", title: "Keys and hints (?)", "aria-label": "Help" });
  const brand = el("div", { class: "brand" }, el("span", { class: "mark", "aria-hidden": "true" }), el("span", { text: "fusevm" }), el("span", { class: "dim", text: "explorer" }));
  const objects = field("object", object);
  document.getElementById("bar").append(
    brand, name, objects, field("fork", fork), field("runs", runs), figures, el("span", { class: "space" }), busy, share, save, theme, help,
  );
  const draw = () => {
    const { doc, settings } = state;
    name.textContent = (settings || doc || { name: "" }).name;
    name.disabled = fork.disabled = object.disabled = runs.disabled = !state.live;
    save.hidden = !state.live;
    if (settings) {
      options(fork, state.forks.length ? state.forks : [settings.fork], settings.fork);
      if (document.activeElement !== runs) runs.value = settings.runs;
    }
    objects.hidden = !doc || doc.objects.length < 2;
    if (doc) {
      options(object, doc.objects, doc.object);
      const { bytes, gas } = doc.totals;
      figures.replaceChildren(
        figure("bytes", bytes, "Size of the code as written, and as optimised"),
        figure("gas", gas, "A static estimate: the sum over all instructions, each counted once"),
      );
      document.title = `${doc.name} · fusevm explorer`;
    }
  };
  on("document settings live", draw);
  on("busy", () => {
    busy.hidden = !state.busy;
    busy.querySelector(".what").textContent = state.busy || "";
  });
  const drawTheme = () => {
    theme.textContent = SYMBOLS[currentTheme()];
    theme.title = `Colours: ${currentTheme()}`;
    theme.setAttribute("aria-label", `Colours: ${currentTheme()}; switch`);
  };
  on("theme", drawTheme);
  drawTheme();
  draw();
}

async function copyLink(share) {
  try {
    await navigator.clipboard.writeText(location.href);
    set("said", { said: "The link is on the clipboard." });
  } catch {
    set("said", { said: `Copy it from the address bar: ${location.href.slice(0, 80)}…` });
  }
  share.blur();
}

export function makeViews() {
  const views = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Panes" });
  const search = el("input", {
    type: "search", id: "search", placeholder: "Search  /", "aria-label": "Search in all panes", maxlength: 200,
    on: {
      input: () => set("search", { search: search.value }),
      keydown: (event) => {
        if (event.key === "Enter") nextFound(event.shiftKey ? -1 : 1);
        if (event.key === "Escape") {
          search.value = "";
          set("search", { search: "" });
          search.blur();
        }
      },
    },
  });
  document.getElementById("views").append(views, chips, el("span", { class: "space" }), search);
  on("layout document live", () => {
    const view = currentView();
    views.replaceChildren(
      ...VIEWS.map(({ id, title }) => button(title, () => openView(id), { role: "tab", "aria-selected": String(view !== undefined && view.id === id) })),
    );
    chips.replaceChildren(
      ...offeredPanes().map(({ id, title }) => button(title, () => toggle(id), { class: "chip", "aria-pressed": String(isShown(id)), "data-toggle": id })),
    );
  });
}

// Goes on in the pane where the selection is, else in the first that found something.
function nextFound(step) {
  const own = state.selection && state.selection.pane;
  for (const id of [own, ...shownPanes()]) {
    const pane = id && paneAt(id);
    if (pane && pane.next && pane.next(step)) return;
  }
}
