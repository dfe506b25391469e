// Makes a part of the page equal to a fresh one, in place. What is equal is not touched,
// and what has an id is found again wherever it went: nothing flickers, and focus,
// scroll and open menus stay.

export function morph(old, fresh) {
  const known = new Map([...old.querySelectorAll("[id]")].map((element) => [element.id, element]));
  morphNode(old, fresh, known);
}

function morphNode(old, fresh, known) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType === Node.TEXT_NODE) {
    old.data = fresh.data;
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) return;
  morphAttributes(old, fresh);
  morphChildren(old, fresh, known);
}

function morphAttributes(old, fresh) {
  // Whether something is folded out is the reader's own.
  const isOurs = (name) => !(old.nodeName === "DETAILS" && name === "open");
  for (const { name } of [...old.attributes]) {
    if (isOurs(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (isOurs(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function morphChildren(old, fresh, known) {
  const stays = new Set([...fresh.children].map((child) => child.id).filter(Boolean));
  let next = old.firstChild;
  const drop = () => {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  };
  for (const wanted of [...fresh.childNodes]) {
    const found = wanted.id ? known.get(wanted.id) : next;
    const mine = found && isSameKind(found, wanted) ? found : null;
    if (!mine) {
      old.insertBefore(wanted, next);
      continue;
    }
    // Rather take away what stands between than move what may have the focus.
    while (next && next !== mine && !stays.has(next.id)) drop();
    if (next === mine) next = next.nextSibling;
    else old.insertBefore(mine, next);
    morphNode(mine, wanted, known);
  }
  while (next) drop();
}

function isSameKind(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && (one.id ?? "") === (other.id ?? "");
}
