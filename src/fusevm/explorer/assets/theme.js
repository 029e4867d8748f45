// Light, dark, or as the system has it; kept for the next visit where the browser allows it.

import { emit } from "./store.js";

const ORDER = ["system", "light", "dark"];
let theme = "system";

export function currentTheme() {
  return theme;
}

export function setTheme(name) {
  theme = ORDER.includes(name) ? name : "system";
  document.documentElement.dataset.theme = theme;
  emit("theme");
}

export function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  // The first switch always changes what is seen.
  const order = dark ? ["system", "light", "dark"] : ["system", "dark", "light"];
  setTheme(order[(order.indexOf(theme) + 1) % order.length]);
  try {
    localStorage.setItem("fusevm-theme", theme);
  } catch {
    // A page without storage keeps it until it is closed.
  }
}

export function keptTheme() {
  try {
    setTheme(localStorage.getItem("fusevm-theme"));
  } catch {
    setTheme("system");
  }
}
