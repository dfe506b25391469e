// The live stream of the room: open as long as the page is seen, and opened again
// whenever it ends, is refused, or falls silent.

// The server says something every 15 seconds.
const SILENCE = 40_000;
const SHORTEST_PAUSE = 1_000;
const LONGEST_PAUSE = 10_000;

// Calls onChange() when the room has to be read again, and onLive(true or false) as often as it hears.
export function follow(address, { onChange, onLive }) {
  let source = null;
  let timer = 0;
  let pause = SHORTEST_PAUSE;

  function open() {
    close();
    wait(SILENCE);
    source = new EventSource(address, { withCredentials: true });
    source.addEventListener("changed", () => {
      heard(true);
      onChange();
    });
    source.addEventListener("still", () => heard(true));
    source.addEventListener("lost", () => heard(false));
    source.addEventListener("error", () => {
      onLive(false);
      // After a cut the browser comes back by itself; after a refusal it does not.
      if (source.readyState !== EventSource.CLOSED) return;
      wait(pause * (0.75 + Math.random() / 2));
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    });
  }

  function heard(isLive) {
    pause = SHORTEST_PAUSE;
    wait(SILENCE);
    onLive(isLive);
  }

  function wait(milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      onLive(false);
      open();
    }, milliseconds);
  }

  function close() {
    clearTimeout(timer);
    source?.close();
  }

  // A page that nobody sees keeps no place at the server: browsers open only six to one host.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("online", open);
  addEventListener("pageshow", (event) => event.persisted && open());
  open();
}
