// Calls: a form from the functions that are known, or from a signature; then output, logs and gas by family.

import { button, clipped, el, empty, highest, number } from "./dom.js";
import { currentRun, on, set, state } from "./store.js";
import { resetRuns, run } from "./actions.js";

const BY_SIGNATURE = "signature …";
const BY_DATA = "calldata …";
const MOST_LOGS = 100;

function example(type) {
  if (type.endsWith("]")) return "[]";
  if (/^u?int/.test(type)) return "5";
  if (type === "address") return `0x${"a1".repeat(20)}`;
  if (type === "bool") return "true";
  const fixed = /^bytes(\d+)$/.exec(type);
  if (fixed) return `0x${"00".repeat(Number(fixed[1]))}`;
  return type === "bytes" ? "0x" : "";
}

// The types between the first parentheses, those within inner ones kept together.
export function typesOf(signature) {
  const open = signature.indexOf("(");
  const types = [];
  let depth = 0;
  let text = "";
  for (const letter of open < 0 ? "" : signature.slice(open + 1)) {
    if (letter === ")" && depth === 0) break;
    if (letter === "(") depth++;
    if (letter === ")") depth--;
    if (letter === "," && depth === 0) {
      types.push(text.trim());
      text = "";
    } else text += letter;
  }
  return text.trim() ? [...types, text.trim()] : types;
}

function input(label, value, placeholder = "") {
  const control = el("input", { placeholder, spellcheck: "false", "aria-label": label, maxlength: 200000 });
  control.value = value;
  return { control, row: el("label", { class: "argument" }, el("span", { text: label }), control) };
}

export class RunPane {
  constructor() {
    this.chooser = el("select", { "aria-label": "Function", on: { change: () => this.choose() } });
    this.arguments = el("div", { class: "arguments" });
    this.value = input("value (wei)", "0");
    this.caller = input("caller", "", "a fixed address");
    const more = el("details", {}, el("summary", { text: "value, caller" }), this.value.row, this.caller.row);
    const form = el("form", { class: "call", on: { submit: (event) => this.submit(event) } }, this.chooser, this.arguments, more, el("div", { class: "call-end" }, el("button", { type: "submit", class: "primary", text: "Run" }), button("Reset state", () => resetRuns(), { class: "small" })));
    this.form = form;
    this.result = el("div", { class: "result scrolls", "aria-live": "polite" });
    this.body = el("div", { class: "run-pane" }, form, this.result);
    on("document live", () => this.load());
    on("run", () => this.show());
    this.load();
    this.show();
  }

  load() {
    this.form.hidden = !state.live;
    if (!state.doc) return;
    const before = this.chooser.value;
    this.functions = new Map((state.doc.functions || []).map((each) => [each.signature || each.name, each]));
    const values = [...this.functions.keys(), BY_SIGNATURE, BY_DATA];
    this.chooser.replaceChildren(...values.map((value) => el("option", { value, text: clipped(value, 90) })));
    if (values.includes(before)) this.chooser.value = before;
    if (before !== this.chooser.value || !this.inputs) this.choose();
  }

  choose() {
    const chosen = this.chooser.value;
    this.signature = this.data = null;
    const found = this.functions.get(chosen);
    if (chosen === BY_DATA || (found && !found.signature)) {
      this.data = input("calldata (hex)", found ? `0x${found.selector}` : "0x"); // of a function whose types nobody told
      this.inputs = [];
      this.arguments.replaceChildren(this.data.row);
    } else if (chosen === BY_SIGNATURE) {
      this.signature = input("signature", "", "balanceOf(address)(uint256)");
      this.signature.control.addEventListener("input", () => this.ask(typesOf(this.signature.control.value).map((type) => ({ name: "", type }))));
      this.ask([]);
    } else this.ask((found && found.inputs) || typesOf(chosen).map((type) => ({ name: "", type })));
  }

  ask(inputs) {
    const before = this.inputs || [];
    this.inputs = inputs.map(({ name, type }, at) => ({ ...input(name ? `${name} (${type})` : type, before[at] && before[at].type === type ? before[at].control.value : example(type)), type }));
    if (this.signature) {
      if (!this.signature.row.isConnected) this.arguments.replaceChildren(this.signature.row);
      while (this.signature.row.nextSibling) this.signature.row.nextSibling.remove();
      this.arguments.append(...this.inputs.map((each) => each.row));
    } else this.arguments.replaceChildren(...this.inputs.map((each) => each.row));
  }

  submit(event) {
    event.preventDefault();
    const signature = this.data ? "" : this.signature ? this.signature.control.value : this.chooser.value;
    run({ signature, arguments: this.inputs.map((each) => each.control.value), data: this.data ? this.data.control.value : "", value: this.value.control.value, caller: this.caller.control.value });
  }

  show() {
    const chosen = currentRun();
    if (!chosen) {
      this.result.replaceChildren(empty("No run yet", state.live ? "Choose a function and press Run. State is kept between runs until you reset it." : "This export has no run."));
      return;
    }
    const tabs = el("div", { class: "run-tabs", role: "tablist", "aria-label": "Runs" }, ...state.runs.map((each, at) => button(`${at + 1}. ${clipped(each.title || titleOf(each), 34)}`, () => set("run", { run: at, trace: 0 }), { role: "tab", class: "small", "aria-selected": String(at === state.run) })));
    const facts = el("div", { class: "run-facts" }, el("span", { class: `badge ${chosen.status}`, text: chosen.status }), el("b", { text: `${number(chosen.gas_used)} gas` }));
    const parts = [tabs, facts];
    if (chosen.reason) parts.push(el("p", { class: "reason", text: clipped(chosen.reason, 1000) }));
    if (chosen.decoded !== null && chosen.decoded !== undefined) parts.push(el("div", { class: "decoded" }, el("span", { class: "dim", text: "returns " }), el("code", { text: clipped(String(chosen.decoded), 2000) })));
    if (chosen.output && chosen.output !== "0x") parts.push(el("code", { class: "output", text: clipped(chosen.output, 2000) }));
    parts.push(...this.families(chosen), ...this.logs(chosen));
    for (const text of chosen.notes || []) parts.push(el("p", { class: "dim", text }));
    this.result.replaceChildren(...parts);
  }

  families({ families }) {
    if (!families || !families.length) return [];
    const largest = highest(families.map((each) => each.gas), 1);
    const rows = families.map(({ name, gas, count }) => {
      const bar = el("span", { class: "bar" });
      bar.style.setProperty("--share", (gas / largest).toFixed(4));
      return el("tr", {}, el("th", { scope: "row", text: name }), el("td", { class: "bars" }, bar), el("td", { text: number(gas) }), el("td", { class: "dim", text: `${number(count)} ×` }));
    });
    return [el("h3", { text: "Gas by family" }), el("table", { class: "families" }, ...rows)];
  }

  logs({ logs }) {
    if (!logs || !logs.length) return [];
    const items = logs.slice(0, MOST_LOGS).map((log) => el("li", {}, el("code", { text: clipped(log.decoded || `${log.topics.join(" ")} ${log.data}`, 1000) })));
    return [el("h3", { text: logs.length === 1 ? "1 log" : `${number(logs.length)} logs` }), el("ol", { class: "logs" }, ...items)];
  }
}

function titleOf({ asked, call }) {
  if (asked && asked.signature) return `${asked.signature.split("(")[0]}(${asked.arguments.join(", ")})`;
  return ((call && call.data) || "0x").slice(0, 18);
}
