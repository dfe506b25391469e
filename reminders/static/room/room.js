// Keeps an open room as it is at the server, and takes the taps on its cards.

import { morph } from "./morph.js";
import { follow } from "./stream.js";

const live = document.getElementById("live");
const acts = document.getElementById("acts");
const pulse = document.getElementById("pulse");
const notLive = document.getElementById("not-live");
const notRead = document.getElementById("not-read");

const GRACE = 3_000; // a stream that ends by itself is back before anybody needs to know
const READ_EVERY = 10_000; // while it is not live
const AIM = 400; // what moved so shortly ago was not what the finger aimed at
const PATIENCE = 15_000;

// --- Reading the room again

let isReading = false;
let isWanted = false;
let failedSince = null;

async function read() {
  isWanted = true;
  if (isReading) return;
  isReading = true;
  while (isWanted) {
    isWanted = false;
    const began = performance.now();
    try {
      await readOnce();
      failedSince = null;
    } catch {
      failedSince ??= new Date();
      setTimeout(read, READ_EVERY);
    }
    tellTrouble();
    // A server that is slow is asked less often.
    await new Promise((resolve) => setTimeout(resolve, 2 * (performance.now() - began)));
  }
  isReading = false;
}

async function readOnce() {
  const answer = await ask(location.href);
  if (answer.status === 404) return location.assign(location.pathname);
  if (!answer.ok) throw new Error(answer.status);
  const fresh = live.cloneNode(false);
  fresh.append(document.createRange().createContextualFragment(await answer.text()));
  const day = fresh.querySelector("#day");
  if (!day) return location.reload();
  show(fresh);
  document.getElementById("read-at").textContent = day.dataset.readAt;
}

async function ask(address, options = {}) {
  const answer = await fetch(address, {
    ...options,
    headers: { "X-Room": "again" },
    redirect: "manual",
    signal: AbortSignal.timeout(PATIENCE),
  });
  // To the login, which then leads back here.
  if (answer.type === "opaqueredirect" || answer.status === 403) location.reload();
  return answer;
}

// --- Showing it without moving what is looked at

const movedAt = new WeakMap();

function show(fresh) {
  const focused = document.activeElement;
  const cardOfFocus = focused?.closest(".card");
  const places = [...live.querySelectorAll(".card, h2")].map((element) => ({
    element,
    list: element.parentElement,
    top: element.getBoundingClientRect().top,
    bottom: element.getBoundingClientRect().bottom,
  }));
  morph(live, fresh);
  const stayed = ({ element, list }) => element.isConnected && element.parentElement === list;
  const anchor = scrollY > 0 && places.find((place) => place.bottom > 0 && stayed(place));
  if (anchor) scrollBy(0, anchor.element.getBoundingClientRect().top - anchor.top);
  for (const { element, top } of places) {
    if (Math.abs(element.getBoundingClientRect().top - top) > 4) movedAt.set(element, performance.now());
  }
  if (cardOfFocus && document.activeElement !== focused) {
    const again = focused.isConnected ? focused : document.getElementById(cardOfFocus.id);
    again?.focus({ preventScroll: true });
  }
}

// --- Live or not

let lostSince = null;
let grace = 0;
let polling = 0;

function onLive(isLive) {
  if (isLive === (lostSince === null)) return;
  clearTimeout(grace);
  clearInterval(polling);
  lostSince = isLive ? null : new Date();
  if (isLive) {
    pulse.dataset.live = "yes";
    tellTrouble();
  } else {
    grace = setTimeout(() => {
      pulse.dataset.live = "no";
      tellTrouble();
      polling = setInterval(read, READ_EVERY);
    }, GRACE);
  }
}

function tellTrouble() {
  tell(notRead, failedSince);
  tell(notLive, pulse.dataset.live === "no" && !failedSince ? lostSince : null);
}

function tell(notice, since) {
  if (since) notice.querySelector("[data-since]").textContent = asTold(since);
  notice.hidden = !since;
}

function asTold(moment) {
  const timeZone = document.body.dataset.zone;
  const told = moment.toLocaleTimeString("en-US", { timeZone, hour: "numeric", minute: "2-digit" });
  return told.replace(/\sAM$/, " a. m.").replace(/\sPM$/, " p. m.");
}

// --- Taps

acts?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.submitter;
  const card = button.closest(".card");
  if (button.getAttribute("aria-busy")) return;
  if (performance.now() - (movedAt.get(card) ?? -AIM) < AIM) return say("refused", acts.dataset.moved);
  button.setAttribute("aria-busy", "true");
  button.closest("details.more")?.removeAttribute("open");
  try {
    const answer = await ask(button.formAction, { method: "POST", body: new FormData(acts) });
    if (answer.ok) {
      const outcome = await answer.json();
      say(outcome.isRefused ? "refused" : "done", outcome.sentence);
    } else {
      say("refused", answer.status === 404 ? acts.dataset.gone : acts.dataset.failed);
    }
  } catch {
    say("refused", acts.dataset.failed);
  }
  button.removeAttribute("aria-busy");
  read();
});

const hiding = {};

function say(name, sentence) {
  for (const each of ["done", "refused"]) document.getElementById(each).hidden = true;
  const notice = document.getElementById(name);
  notice.textContent = sentence;
  notice.hidden = false;
  clearTimeout(hiding[name]);
  hiding[name] = setTimeout(() => (notice.hidden = true), name === "done" ? 5_000 : 12_000);
}

// --- Menus, stages, the choice of a doctor

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.more[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  const stage = event.target.closest(".stages a");
  const aim = stage && document.querySelector(stage.getAttribute("href"));
  if (aim?.nodeName === "DETAILS") aim.open = true;
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.more[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

document.getElementById("medico")?.addEventListener("change", (event) => event.target.form.submit());

// --- Start

onLive(false);
follow(document.body.dataset.stream, { onChange: read, onLive });

// Somebody becomes late by the clock alone; and nothing that no event told of stays hidden for longer.
const untilNextMinute = 60_000 - (Date.now() % 60_000);
setTimeout(() => {
  read();
  setInterval(read, 60_000);
}, untilNextMinute + 1_000);
