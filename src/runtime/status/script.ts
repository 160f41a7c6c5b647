/**
 * The page's script. It fetches the page again each second, and puts what is new in place of what is there, element by
 * element, so that focus, selection, scrolling and open parts stay. What it inserts was escaped where the page was made;
 * a document that `DOMParser` made runs no script. In plain JavaScript of browsers of the last years.
 */
export const SCRIPT = `"use strict";
(() => {
  const EVERY_MS = 1000, LATE_MS = 8000;
  let paused = false, timer = 0;

  const sameKind = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName &&
    (a.nodeType !== 1 || a.dataset.key === b.dataset.key);

  function become(now, next) {
    if (now.nodeType !== 1) {
      if (now.data !== next.data) now.data = next.data;
      return;
    }
    for (const { name, value } of next.attributes)
      if (now.getAttribute(name) !== value) now.setAttribute(name, value);
    for (const { name } of [...now.attributes])
      // A reader opened it.
      if (!next.hasAttribute(name) && name !== "open") now.removeAttribute(name);
    children(now, next);
  }

  function children(now, next) {
    const keyed = new Map();
    for (const child of now.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
    let at = now.firstChild;
    for (const wanted of [...next.childNodes]) {
      const key = wanted.nodeType === 1 && wanted.dataset.key;
      const own = key ? keyed.get(key) : at && sameKind(at, wanted) && !(at.nodeType === 1 && at.dataset.key) ? at : undefined;
      if (own === undefined || !sameKind(own, wanted)) {
        now.insertBefore(document.importNode(wanted, true), at);
        continue;
      }
      if (own === at) at = at.nextSibling;
      else now.insertBefore(own, at);
      become(own, wanted);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  async function look() {
    try {
      const response = await fetch(location.pathname + location.search, { cache: "no-store", signal: AbortSignal.timeout(LATE_MS) });
      if (!response.ok) throw new Error("it answers " + response.status);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      if (!page.getElementById("live")) throw new Error("it answers with another page");
      if (paused) return;
      for (const id of ["about", "live", "updated"]) become(document.getElementById(id), page.getElementById(id));
      document.title = page.title;
      document.body.classList.remove("stale");
    } catch (error) {
      if (!document.body.classList.contains("stale")) {
        document.body.classList.add("stale");
        document.getElementById("updated").append(" – not reached since then");
      }
    }
  }

  async function go() {
    clearTimeout(timer);
    if (!paused && !document.hidden) await look();
    if (!paused) timer = setTimeout(go, EVERY_MS);
  }

  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Pause updates";
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Go on with updates" : "Pause updates";
    go();
  });
  document.querySelector("footer").append(button);
  document.addEventListener("visibilitychange", () => document.hidden || go());
  timer = setTimeout(go, EVERY_MS);
})();
`;
