import type { AskedStatus, StatusResponse } from "./asked.js";
import { limited, type Overview } from "./overview.js";
import { statusPage } from "./page.js";

/** The page's own files are at its own address, with a query: so they are found at any path. */
const LINKS = { script: "?script", style: "?style", icon: "?icon" };

/** The response for the requested part. */
export async function statusResponse(
  asked: AskedStatus,
  now: () => Promise<Overview>,
): Promise<StatusResponse> {
  switch (asked.part) {
    case "script":
      return { contentType: "text/javascript; charset=utf-8", body: SCRIPT };
    case "style":
      return { contentType: "text/css; charset=utf-8", body: STYLE };
    case "icon":
      return { contentType: "image/svg+xml", body: ICON };
    case "json":
      return {
        contentType: "application/json; charset=utf-8",
        body: `${JSON.stringify(limited(await now(), asked))}\n`,
      };
    case "page":
      return {
        contentType: "text/html; charset=utf-8",
        body: statusPage(limited(await now(), asked), LINKS),
      };
  }
}

/**
 * The page's script. It fetches the page again each second, and replaces changed content element by element, so that
 * focus, selection, scrolling and open parts stay. Inserted text was escaped when the page was made, and a document
 * from `DOMParser` runs no script. Plain JavaScript for browsers of the last years.
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
      if (!response.ok) throw new Error("the server responded with " + response.status);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      if (!page.getElementById("live")) throw new Error("the server responded with another page");
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

/** The icon: a line through a gate. If there were none, browsers would ask the application for `/favicon.ico`. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2563b5"/><path d="M9 25V14a7 7 0 0 1 14 0v11M5 25h22M16 25v-9" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round"/></svg>
`;

/** The page's style sheet: one accent, and other colours only for problems. */
export const STYLE = `:root{color-scheme:light dark;--ground:#f7f8f9;--card:#fff;--ink:#1b2430;--soft:#566372;--faint:#e4e8ec;--accent:#2563b5;--fill:#2563b51a;--second:#8a5a12;--good:#1f7a45;--warn:#8a5a00;--bad:#b3261e;--warnfill:#fff5de;--badfill:#fdecea;--edge:#b9c3cd}
@media(prefers-color-scheme:dark){:root{--ground:#0f1419;--card:#171d24;--ink:#e4e9ee;--soft:#9aa8b6;--faint:#28313b;--accent:#74a9ee;--fill:#74a9ee22;--second:#d9a95a;--good:#63c28b;--warn:#e3b35c;--bad:#f2867d;--warnfill:#2e2512;--badfill:#331a19;--edge:#46525f}}
*{box-sizing:border-box}
html{font:400 16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;background:var(--ground);color:var(--ink);font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:2rem 1.5rem 3rem;max-width:76rem}
header{display:flex;flex-wrap:wrap;gap:.25rem 2rem;align-items:baseline;justify-content:space-between;margin-bottom:1.25rem}
h1{font-size:1.5rem;font-weight:650;letter-spacing:-.01em;line-height:1.2;margin:0}
h2{font-size:1rem;font-weight:600;margin:0 0 .75rem}
.count{color:var(--soft);font-weight:400;margin-left:.25rem}
header p,footer p{color:var(--soft);font-size:.8125rem;margin:0}
header p{text-align:right}
section,figure{background:var(--card);border:1px solid var(--faint);border-radius:10px;padding:1.125rem 1.25rem;margin:0 0 1rem;min-width:0}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:1rem;background:none;border:0;padding:0;margin-bottom:1rem}
.pair>*{margin:0}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.well,.troubles{margin:0 0 1rem;padding:0;list-style:none}
.well{color:var(--good);font-weight:550}
.troubles li{padding:.625rem 1rem;border-radius:8px;margin-bottom:.5rem;background:var(--warnfill);border-left:3px solid var(--warn);overflow-wrap:anywhere}
.troubles .error{background:var(--badfill);border-color:var(--bad)}
.sub{color:var(--soft);font-size:.8125rem;line-height:1.4}
th .sub,td .sub{display:block;font-weight:400}
td.url .sub:not(.why){display:inline}
figcaption{display:flex;flex-wrap:wrap;gap:0 1rem;justify-content:space-between;align-items:baseline;margin-bottom:.5rem}
.label{font-weight:600}
.figures{color:var(--soft);font-size:.875rem}
.figures b{color:var(--ink);font-size:1.375rem;font-weight:600;letter-spacing:-.01em;margin-right:.1rem}
.figures .sub{margin-left:.75rem}
.key{display:inline-block;width:.75rem;height:3px;border-radius:2px;vertical-align:middle;margin:0 .375rem 0 .5rem;background:var(--accent)}
.key2{background:var(--second)}
.frame{color:var(--soft);font-size:.75rem}
.frame .top{display:block;text-align:right;margin-bottom:.125rem}
.plot{display:block;width:100%;height:6rem}
.plot path{fill:none;vector-effect:non-scaling-stroke}
.plot .grid{stroke:var(--faint)}
.plot .line{stroke:var(--accent);stroke-width:1.75;stroke-linejoin:round}
.plot .line2{stroke:var(--second)}
.plot .area{fill:var(--fill)}
.ends{display:flex;justify-content:space-between;margin-top:.25rem}
table{border-collapse:collapse;width:100%;font-size:.9375rem}
th,td{text-align:left;vertical-align:top;padding:.5rem .75rem .5rem 0;border-top:1px solid var(--faint);font-weight:400;overflow-wrap:break-word}
th:last-child,td:last-child{padding-right:0}
thead th{border:0;padding-top:0;color:var(--soft);font-size:.8125rem}
tbody th{font-weight:500}
.long{overflow-wrap:anywhere}
.number{text-align:right;white-space:nowrap}
.what{display:flex;gap:.375rem;align-items:baseline}
.kind{color:var(--accent)}
.path{min-width:0}
.path b{font-weight:600}
.progress{width:34%}
.none{color:var(--soft);margin:0}
table+.none{margin-top:.75rem}
progress{display:block;appearance:none;-webkit-appearance:none;width:100%;height:.5rem;margin:.4375rem 0 .25rem;border:0;border-radius:4px;overflow:hidden;background:var(--faint)}
progress::-webkit-progress-bar{background:var(--faint)}
progress::-webkit-progress-value{background:var(--accent);border-radius:4px;transition:inline-size .8s linear}
progress::-moz-progress-bar{background:var(--accent)}
.state{font-weight:550;white-space:nowrap}
.state::before{content:"";display:inline-block;width:.5rem;height:.5rem;border-radius:50%;background:currentColor;margin-right:.4375rem;vertical-align:.0625rem}
.good{color:var(--good)}.warn .state,.state.warn{color:var(--warn)}.state.bad{color:var(--bad)}.idle{color:var(--soft)}
.why{display:block}
.events{list-style:none;margin:0;padding:0;font-size:.9375rem}
.events li{display:grid;grid-template-columns:8.5rem 1fr;gap:0 1rem;padding:.5rem 0;border-top:1px solid var(--faint);overflow-wrap:anywhere}
.events li:first-child{border:0;padding-top:0}
.events time{color:var(--soft);font-size:.8125rem;line-height:1.75}
.events p{margin:0}
.scroll{overflow-x:auto;border-radius:6px}
.topology{display:block;height:auto;max-width:100%;min-width:44rem;margin:0 auto}
.topology text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--ink)}
.topology .heading,.topology .more{fill:var(--soft)}
.topology .rate{fill:var(--accent);font-weight:600;font-size:11px;paint-order:stroke;stroke:var(--card);stroke-width:4px}
.topology .edge{fill:none;stroke:var(--edge);stroke-width:1.25}
.topology .flow1{stroke:var(--accent);stroke-width:1.75}.topology .flow2{stroke:var(--accent);stroke-width:2.5}.topology .flow3{stroke:var(--accent);stroke-width:3.5}
.topology rect{fill:var(--ground);stroke:var(--edge)}
.topology .upstream rect{stroke:var(--accent)}
.topology .trouble rect{fill:var(--badfill);stroke:var(--bad);stroke-width:1.5}
details{margin-top:.75rem;color:var(--soft);font-size:.8125rem}
summary{cursor:pointer;width:max-content}
footer{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;margin-top:1.5rem}
button{font:inherit;font-size:.8125rem;color:var(--ink);background:var(--card);border:1px solid var(--edge);border-radius:6px;padding:.25rem .75rem;cursor:pointer}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.stale main{opacity:.55}
.stale #updated{color:var(--bad)}
@media(max-width:40rem){body{padding:1.25rem .875rem 2rem}header p{text-align:left}.wide{display:none}section,figure{padding:1rem}.events li{grid-template-columns:1fr}table{font-size:.9375rem}.stack thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}.stack tr{display:grid;grid-template-columns:1fr auto;gap:.125rem .75rem;padding:.625rem 0;border-top:1px solid var(--faint)}.stack tr:first-child{border:0;padding-top:0}.stack th,.stack td{border:0;padding:0;width:auto}.stack th{grid-column:1/-1}.stack .wide{display:none}}
@media(prefers-reduced-motion:reduce){progress::-webkit-progress-value{transition:none}}
@media print{button{display:none}section,figure{break-inside:avoid}}
`;
