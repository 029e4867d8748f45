// Size and gas after every step, as two stepped lines over one axis of steps.

import { number, svg } from "./dom.js";

const SIDE = { left: 58, right: 62, top: 14, bottom: 20 };

function scale(values, height) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = (high - low) * 0.08 || 1;
  const [bottom, top] = [low - room, high + room];
  return { low, high, y: (value) => SIDE.top + ((top - value) / (top - bottom)) * (height - SIDE.top - SIDE.bottom) };
}

function stepped(steps, key, x, y) {
  return steps.map((step, at) => `${at ? `H${x(at).toFixed(1)}V` : `M${x(0).toFixed(1)},`}${y(step[key]).toFixed(1)}`).join("");
}

function axis(kind, scaled, at, anchor, unit) {
  const { low, high, y } = scaled;
  const values = low === high ? [low] : [high, low];
  return values.map((value) =>
    svg("text", { class: `axis ${kind}`, x: at, y: y(value) + 4, "text-anchor": anchor, text: `${number(value)}${value === values[0] ? ` ${unit}` : ""}` }),
  );
}

export class Chart {
  constructor(pick, hover) {
    this.pick = pick;
    this.hover = hover;
    this.svg = svg("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": "Size and gas after every step" });
    this.svg.addEventListener("click", (event) => this.pick(this.stepAt(event)));
    this.svg.addEventListener("pointermove", (event) => this.hover(this.stepAt(event)));
    this.svg.addEventListener("pointerleave", () => this.hover(-1));
    new ResizeObserver(() => this.draw()).observe(this.svg);
    this.steps = [];
    this.chosen = -1;
  }

  show(steps, chosen) {
    this.steps = steps;
    this.chosen = chosen;
    this.draw();
  }

  stepAt(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - SIDE.left) / (box.width - SIDE.left - SIDE.right);
    return Math.max(0, Math.min(this.steps.length - 1, Math.round(share * (this.steps.length - 1))));
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.svg;
    const { steps } = this;
    if (!width || !height || !steps.length) {
      this.svg.replaceChildren();
      return;
    }
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const x = (at) => SIDE.left + (steps.length > 1 ? at / (steps.length - 1) : 0.5) * (width - SIDE.left - SIDE.right);
    const bytes = scale(steps.map((step) => step.bytes), height);
    const gas = scale(steps.map((step) => step.gas), height);
    const base = height - SIDE.bottom;
    const drawn = [svg("line", { class: "base", x1: SIDE.left, x2: width - SIDE.right, y1: base, y2: base })];
    steps.forEach((step, at) => {
      if (step.changed) drawn.push(svg("line", { class: "tick", x1: x(at), x2: x(at), y1: base, y2: base + 5 }));
    });
    drawn.push(svg("text", { class: "axis", x: SIDE.left, y: height - 3, text: "1" }));
    drawn.push(svg("text", { class: "axis", x: width - SIDE.right, y: height - 3, "text-anchor": "end", text: `${steps.length} steps` }));
    drawn.push(...axis("bytes", bytes, SIDE.left - 8, "end", "B"), ...axis("gas", gas, width - SIDE.right + 8, "start", "gas"));
    const line = stepped(steps, "bytes", x, bytes.y);
    drawn.push(svg("path", { class: "area bytes", d: `${line}V${base}H${x(0)}Z` }), svg("path", { class: "line bytes", d: line }));
    drawn.push(svg("path", { class: "line gas", d: stepped(steps, "gas", x, gas.y) }));
    const chosen = steps[this.chosen];
    if (chosen) {
      const at = x(this.chosen);
      drawn.push(svg("line", { class: "cursor", x1: at, x2: at, y1: SIDE.top - 8, y2: base + 5 }));
      drawn.push(svg("circle", { class: "dot bytes", cx: at, cy: bytes.y(chosen.bytes), r: 4 }));
      drawn.push(svg("circle", { class: "dot gas", cx: at, cy: gas.y(chosen.gas), r: 4 }));
    }
    this.svg.replaceChildren(...drawn);
  }
}
