"use strict";
// New mail appears by itself; who reads or steps through the list by keyboard keeps their place.
const live = document.querySelector("main[data-live]");
async function refresh() {
  try {
    const answer = await fetch(location.href);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    if (answer.ok && fresh && fresh.innerHTML !== live.innerHTML) {
      const focused = document.activeElement?.getAttribute("href");
      live.replaceChildren(...fresh.childNodes);
      if (focused) live.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    }
  } catch { /* The simulator is away; the next turn asks again. */ }
  setTimeout(refresh, 2000);
}
if (live) setTimeout(refresh, 2000);

// A mail is as high as its content. Its frame runs no script, so this page measures it.
const frame = document.querySelector("iframe");
function fit() {
  const content = frame.contentDocument?.documentElement;
  if (!content) return;
  frame.style.height = 0; // A document is never shorter than its frame.
  frame.style.height = `${content.scrollHeight + 2}px`;
}
if (frame) {
  frame.addEventListener("load", fit);
  addEventListener("resize", fit);
  if (frame.contentDocument?.readyState === "complete") fit();
}

// Asking all the links takes a while, and a second press asks them again.
for (const form of document.forms) {
  form.addEventListener("submit", () => { form.querySelector("button").disabled = true; });
}
