// Colours of code: one set of token classes for Yul, IR, assembly and machine code.

import { clipped } from "./dom.js";

const WORDS =
  "function|let|if|switch|case|default|for|break|continue|leave|object|code|data|true|false|contract|returns?|def|public|" +
  "external|view|pure|mapping|struct|event|error|emit|require|pragma|solidity|import|block|loop|jump|branch|phi";
const PATTERNS = (comment) =>
  [
    `(?<comment>//.*|/\\*.*?(?:\\*/|$)${comment})`,
    '(?<text>"(?:[^"\\\\]|\\\\.)*"?)',
    '(?<number>\\b0x[0-9a-fA-F]+\\b|\\b\\d[\\d_]*\\b|#[0-9a-fA-Fx]+\\b)',
    `(?<word>\\b(?:${WORDS})\\b)`,
    '(?<op>\\b[A-Z][A-Z0-9]+\\b)',
    '(?<value>[$%@][\\w.$]+)',
    '(?<call>[A-Za-z_$][\\w$.]*(?=\\())',
    '(?<name>[A-Za-z_$][\\w$.]*)',
  ].join("|");
const TOKEN = new RegExp(PATTERNS(""), "g");
const WITH_SEMICOLONS = new RegExp(PATTERNS("|;.*"), "g"); // assembly

export function coloured(text, semicolons = false) {
  const shown = clipped(text);
  const parts = [];
  let done = 0;
  for (const match of shown.matchAll(semicolons ? WITH_SEMICOLONS : TOKEN)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (kind === "name") continue;
    if (match.index > done) parts.push(shown.slice(done, match.index));
    const span = document.createElement("span");
    span.className = `t-${kind}`;
    span.textContent = match[0];
    parts.push(span);
    done = match.index + match[0].length;
  }
  if (done < shown.length) parts.push(shown.slice(done));
  return parts;
}
