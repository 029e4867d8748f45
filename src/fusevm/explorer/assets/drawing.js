// How blocks, edges and groups of a graph look on a canvas.

import { clipped } from "./dom.js";

const LINE = 14; // pixels, as the layout counts them
const FONT = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace";

export function palette(node) {
  const style = getComputedStyle(node);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    panel: value("--panel"), text: value("--fg"), dim: value("--dim"), line: value("--line-strong"), hot: value("--hot"), chosen: value("--accent"),
    lit: value("--lit-line"), jump: value("--edge-jump"), true: value("--edge-true"), false: value("--edge-false"), fall: value("--edge-fall"),
    back: value("--edge-back"), hues: [0, 1, 2, 5, 6, 3].map((at) => value(`--s${at}`)),
  };
}

export function boxAround(items) {
  if (!items.length) return null;
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y, w, h } of items) {
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + w);
    bottom = Math.max(bottom, y + h);
  }
  return { x: left, y: top, w: right - left, h: bottom - top };
}

// Functions and loops: a field of one colour around all their blocks, those of loops within those of functions.
export function drawGroup(context, { name, members, first }, room, colour, strength, colours, scale) {
  context.fillStyle = colour;
  context.globalAlpha = strength;
  context.beginPath();
  for (const { x, y, w, h } of members) context.roundRect(x - room, y - room, w + 2 * room, h + 2 * room, room);
  context.fill();
  context.globalAlpha = 1;
  if (!name || !first || scale < 0.38) return;
  context.font = `italic ${FONT}`;
  context.fillStyle = colours.dim;
  context.fillText(clipped(name, 40), first.x, first.y - 5);
}

export function drawEdge(context, { points, kind }, colours, scale, isLit) {
  if (points.length < 2) return;
  context.strokeStyle = context.fillStyle = isLit ? colours.chosen : colours[kind] || colours.jump;
  context.lineWidth = (isLit ? 2.2 : 1.2) / Math.max(scale, 0.35);
  if (kind === "back") context.setLineDash([6, 3]);
  context.beginPath();
  points.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
  context.setLineDash([]);
  if (scale < 0.12) return;
  const [[fromX, fromY], [x, y]] = points.slice(-2);
  const angle = Math.atan2(y - fromY, x - fromX);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 8 * Math.cos(angle - 0.4), y - 8 * Math.sin(angle - 0.4));
  context.lineTo(x - 8 * Math.cos(angle + 0.4), y - 8 * Math.sin(angle + 0.4));
  context.fill();
}

export function drawBlock(context, block, share, colours, scale, mark) {
  const { x, y, w, h } = block;
  context.fillStyle = colours.panel;
  context.beginPath();
  if (scale > 0.2) context.roundRect(x, y, w, h, 4);
  else context.rect(x, y, w, h);
  context.fill();
  if (share > 0) {
    context.globalAlpha = 0.1 + 0.6 * share;
    context.fillStyle = colours.hot;
    context.fill();
    context.globalAlpha = 1;
  }
  context.strokeStyle = mark === "chosen" ? colours.chosen : mark === "lit" ? colours.lit : colours.line;
  context.lineWidth = (mark ? 3 : 1) / Math.max(scale, 0.3);
  context.stroke();
  if (scale < 0.38) return;
  context.save();
  context.clip();
  context.font = FONT;
  const most = Math.round((h - 16) / LINE);
  block.lines.slice(0, most).forEach((text, at) => {
    context.fillStyle = at || !mark ? colours.text : colours.chosen;
    const last = at === most - 1 && block.lines.length > most;
    context.fillText(last ? `… ${block.lines.length - most + 1} more` : clipped(text, 60), x + 8, y + 19 + at * LINE);
  });
  context.restore();
}
